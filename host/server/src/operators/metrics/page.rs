//! The page: each figure with its name, unit and meaning (OpenMetrics 1.0).
//!
//! Counters start at zero with the process, and those of a tool with the tool.
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use toolcell_audit::Outcome;
use toolcell_mcp::http::Traffic;
use toolcell_mcp::{Host as _, Method, ServedCatalog as _};
use toolcell_sandbox::Standing;

use super::process;
use super::tools::{NamedTools, Ranges, ToolFigures};
use crate::catalog::Catalog;
use crate::catalog::caller_figures::CallerFigures;
use crate::http::shown_certificates;
use crate::observing::alerts::{AlertRule, Alerts};
use crate::observing::requests::RequestCounters;
use crate::observing::traces::SpanCounters;
use crate::operators::health::{Health, HealthPart};
use crate::recordings::RecordingKeeper;
use crate::reload::Current;

/// Prefix of this program's own figures.
const PREFIX: &str = "toolcell";

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// Characters of a label with a text from outside: a reference with its digest, or two signers.
const LABEL_CHARS_MAX: usize = 400;

#[derive(Clone)]
pub struct MetricSources {
    /// The current catalog.
    pub current: Arc<Current>,
    /// Counters of the HTTP transport, if there is one.
    pub traffic: Option<Arc<Traffic>>,
    pub health: Arc<Health>,
    /// Tools with their own series.
    pub tools: Arc<NamedTools>,
    /// Callers with their own series; 0: callers are not counted.
    pub callers: usize,
    /// When the process began to serve.
    pub started: SystemTime,
}

/// The page.
pub struct Page(Registry);

impl Page {
    pub fn new(sources: MetricSources) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(sources));
        Self(registry)
    }

    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.0)?;
        Ok(text)
    }
}

impl fmt::Debug for MetricSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricSources").finish_non_exhaustive()
    }
}

impl Collector for MetricSources {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut figures = FigureWriter(encoder);
        let catalog = self.current.snapshot();
        self.of_process(&mut figures)?;
        self.of_catalog(&mut figures, &catalog)?;
        of_requests(&mut figures, &self.current.requests)?;
        let services = &self.current.services;
        let refused = services.refusals.counts.read().map(|(reason, count)| ([("reason", reason.name())], count));
        figures.counts(
            "refused_requests",
            "Requests that were refused before they were calls, by the reason",
            refused,
        )?;
        of_tools(&mut figures, &self.tools.read(&catalog, &self.current.held()))?;
        of_denials(&mut figures, &catalog)?;
        if self.callers > 0 {
            of_callers(&mut figures, &services.caller_figures.read(self.callers))?;
        }
        of_alerts(&mut figures, services.alerts.as_deref())?;
        of_recordings(&mut figures, services.recordings.as_deref())?;
        services.traces.as_ref().map_or(Ok(()), |traces| of_traces(&mut figures, &traces.sent))?;
        self.traffic.as_ref().map_or(Ok(()), |traffic| of_http(&mut figures, traffic))
    }
}

impl MetricSources {
    fn of_process(&self, figures: &mut FigureWriter<'_>) -> fmt::Result {
        figures.infos("build", "The program that serves", [[("version", env!("CARGO_PKG_VERSION"))]])?;
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        figures.standard("process_start_time", "When the process began to serve", Some(Unit::Seconds), started)?;
        if let Some(bytes) = process::resident_bytes() {
            figures.standard("process_resident_memory", "Memory of the process in RAM", Some(Unit::Bytes), bytes)?;
        }
        if let Some(count) = process::descriptors() {
            figures.standard("process_open_fds", "Descriptors that the process has open", None, count)?;
        }
        let problems = self.health.problems();
        let is_unwell = |part| problems.iter().any(|problem| problem.part == part);
        let unwell = HealthPart::ALL.map(|part| ([("part", part.name())], usize::from(is_unwell(part))));
        figures.gauges("unhealthy", "1 if a part is unhealthy: `status` says why", unwell.into_iter())?;
        let shown = shown_certificates();
        let ends = shown.iter().map(|(file, ends)| {
            let seconds = ends.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            ([("file", file.as_str())], usize::try_from(seconds).unwrap_or(usize::MAX))
        });
        figures.gauges("certificate_end", "When a certificate that is shown ends, in seconds since 1970", ends)?;
        figures.count(
            "audit_failures",
            "Audit records that could not be made",
            self.current.services.sink.missing(),
        )?;
        let dropped = self.current.services.sink.dropped();
        figures.count("audit_records_dropped", "Audit records that rotation removed", dropped.records)?;
        let meaning = "Age of the newest record that rotation removed last";
        figures.seconds("audit_dropped_age", meaning, dropped.age)?;
        let dropped = self.current.services.log.lines_dropped();
        figures.count("log_lines_dropped", "Lines of the operator's log that nobody read in time", dropped)
    }

    fn of_catalog(&self, figures: &mut FigureWriter<'_>, catalog: &Catalog) -> fmt::Result {
        figures.gauge("generation", "The number of the catalog that serves", catalog.tools().generation())?;
        figures.gauge("components", "Components that are served", catalog.components().len())?;
        let left_out = catalog.left_out().len();
        figures.gauge("left_out_components", "Components that are broken, and not served", left_out)?;
        of_components(figures, catalog)?;
        let entries = catalog.tools().tools();
        let tools = entries.iter().filter(|entry| entry.is_tool()).count();
        figures.gauge("tools", "Tools that are served", tools)?;
        let prompts = entries.iter().filter(|entry| entry.prompt().is_some()).count();
        figures.gauge("prompts", "Prompts that are served", prompts)?;
        let quarantined = self.current.journal.quarantined().len();
        figures.gauge(
            "quarantined_components",
            "Components that changed, and serve as the lock pins them",
            quarantined,
        )?;
        let standings = catalog.components().iter().map(|component| catalog.walled.standing(component));
        figures.gauge(
            "held_back_components",
            "Components that do not run, since their calls ended their sandboxes",
            standings.filter(|standing| *standing == Some(Standing::HeldBack)).count(),
        )?;
        let (replaced, refused) = self.current.journal.counts();
        let reloads = [("replaced", replaced), ("refused", refused), ("unchanged", self.current.journal.unchanged())];
        figures.counts(
            "reloads",
            "Checks of the manifest and its components, by result",
            reloads.map(|(outcome, count)| ([("outcome", outcome)], count)),
        )
    }
}

/// The origin of each component, as labels of a figure that is always 1.
fn of_components(figures: &mut FigureWriter<'_>, catalog: &Catalog) -> fmt::Result {
    let infos = catalog.components().iter().map(|component| {
        let source = label(&component.policy().source().to_string());
        let signer = label(&component.signed().by.join("; "));
        (component.name(), source, component.digest(), signer)
    });
    let infos: Vec<_> = infos.collect();
    let labels = infos.iter().map(|(name, source, digest, signer)| {
        [("component", *name), ("source", source.as_str()), ("digest", *digest), ("signer", signer.as_str())]
    });
    figures.infos("component", "The components that are served, and who signed them", labels)
}

/// A text of the manifest or of a signature as a label.
fn label(text: &str) -> String {
    text.chars().take(LABEL_CHARS_MAX).collect()
}

fn of_requests(figures: &mut FigureWriter<'_>, requests: &RequestCounters) -> fmt::Result {
    let came = requests.came().map(|(method, era, count)| ([("method", Method::label(method)), ("era", era)], count));
    figures.counts("requests", "Requests that came, including calls of tools", came)?;
    let errors: Vec<_> =
        requests.errors().into_iter().map(|(method, code, count)| (method, code.to_string(), count)).collect();
    let errors = errors
        .iter()
        .map(|(method, code, count)| ([("method", Method::label(*method)), ("code", code.as_str())], *count));
    figures.counts("request_errors", "Requests that were answered with an error, by its code", errors)
}

fn of_tools(figures: &mut FigureWriter<'_>, tools: &[ToolFigures]) -> fmt::Result {
    let outcomes = tools.iter().flat_map(|of| {
        let [tool, component] = of.labels();
        let named = Outcome::ALL.into_iter().zip(of.outcomes);
        named.map(move |(outcome, count)| ([tool, component, ("outcome", outcome.name())], count))
    });
    let meaning = "Calls of tools, and of prompts, that ended, by how they ended";
    figures.counts("calls", meaning, outcomes)?;
    let guests = || tools.iter().filter_map(|of| Some((of.labels(), of.guests.as_ref()?)));
    let fuel = guests().map(|(labels, guests)| (labels, guests.fuel));
    figures.counts("call_fuel", "Fuel that calls burned", fuel)?;
    let durations = guests().map(|(labels, guests)| (labels, &guests.durations));
    let meaning = "How long guests ran, waits for the host and the network included";
    figures.histograms("call_duration", meaning, Unit::Seconds, durations)?;
    let waits = guests().map(|(labels, guests)| (labels, &guests.waits));
    let meaning = "How long calls waited that found every place of their tool taken";
    figures.histograms("call_wait", meaning, Unit::Seconds, waits)?;
    let memory = guests().map(|(labels, guests)| (labels, &guests.memory));
    let meaning = "The most memory that a guest had at one time";
    figures.histograms("call_memory_peak", meaning, Unit::Bytes, memory)?;
    let running = guests().map(|(labels, guests)| (labels, guests.running));
    figures.gauges("calls_running", "Calls that have a place of their tool, also on earlier generations", running)?;
    let waiting = guests().map(|(labels, guests)| (labels, guests.waiting));
    figures.gauges("calls_waiting", "Calls that wait for a place of their tool", waiting)
}

/// The calls of each caller.
fn of_callers(figures: &mut FigureWriter<'_>, callers: &[(String, CallerFigures)]) -> fmt::Result {
    type Value = fn(&CallerFigures) -> u64;
    let counts: [(&str, &str, Value); 4] = [
        ("caller_calls", "Calls of a caller that ended, those that tools made included", |of| of.calls),
        ("caller_failed_calls", "Those of them that gave no result", |of| of.failed),
        ("caller_fuel", "Fuel that calls of a caller burned", |of| of.fuel),
        ("caller_bytes", "Bytes of arguments and results of a caller's calls", |of| of.bytes),
    ];
    for (name, meaning, value) in counts {
        let values = callers.iter().map(|(caller, of)| ([("caller", label(caller))], value(of)));
        figures.counts(name, meaning, values)?;
    }
    Ok(())
}

fn of_denials(figures: &mut FigureWriter<'_>, catalog: &Catalog) -> fmt::Result {
    let denials = catalog.components().iter().flat_map(|component| {
        let name = ("component", component.name());
        let counts = component.denied.read().filter(|(_, count)| *count > 0);
        counts.map(move |(capability, count)| ([name, ("capability", capability.name())], count))
    });
    figures.counts("denials", "What guests asked for that no grant allows", denials)
}

/// The alerts, all zero if the manifest has none: rules of Prometheus refer to them.
fn of_alerts(figures: &mut FigureWriter<'_>, alerts: Option<&Alerts>) -> fmt::Result {
    let count_of = |rule| alerts.and_then(|alerts| alerts.raised.read().find(|(known, _)| *known == rule));
    let raised = AlertRule::ALL.map(|rule| ([("rule", rule.name())], count_of(rule).map_or(0, |(_, count)| count)));
    figures.counts("alerts", "Alerts that were raised, by the rule", raised)?;
    let messages = alerts
        .map_or([("sent", 0), ("failed", 0), ("dropped", 0)], Alerts::messages)
        .map(|(outcome, count)| ([("outcome", outcome)], count));
    figures.counts("alert_messages", "Alert messages, by result", messages)
}

fn of_recordings(figures: &mut FigureWriter<'_>, recordings: Option<&RecordingKeeper>) -> fmt::Result {
    let counts = recordings.into_iter().flat_map(RecordingKeeper::counts);
    figures.counts(
        "recordings",
        "Recordings of calls: written, not written, or dropped since too many waited",
        counts.map(|(outcome, count)| ([("outcome", outcome)], count)),
    )
}

fn of_traces(figures: &mut FigureWriter<'_>, sent: &SpanCounters) -> fmt::Result {
    let ends = [("taken", sent.taken()), ("dropped", sent.dropped()), ("refused", sent.refused())];
    figures.counts(
        "spans",
        "Spans of traces: taken by the collector, refused by it, or dropped since too many waited",
        ends.map(|(end, count)| ([("outcome", end)], count)),
    )?;
    figures.gauge("spans_waiting", "Spans of traces that wait to be sent", sent.waiting())
}

fn of_http(figures: &mut FigureWriter<'_>, traffic: &Traffic) -> fmt::Result {
    let statuses: Vec<(String, u64)> = traffic.statuses().map(|(status, count)| (status.to_string(), count)).collect();
    let responses = statuses.iter().map(|(status, count)| ([("status", status.as_str())], *count));
    figures.counts("http_responses", "Requests over HTTP that were answered, by the status", responses)?;
    let turned_away = traffic.turned_away();
    figures.count("http_connections_refused", "Connections for which there was no room", turned_away)?;
    let load = traffic.load();
    figures.gauge("http_connections", "Connections that are open", load.connections)?;
    figures.gauge("http_requests_in_progress", "Requests that are being answered", load.requests)?;
    figures.gauge("http_streams", "Streams that stay open to tell clients of changes", load.streams)?;
    figures.gauge("http_sessions", "Sessions of clients before 2026-07-28", load.sessions)
}

struct FigureWriter<'a>(DescriptorEncoder<'a>);

impl FigureWriter<'_> {
    /// Figures that are always 1, with informative labels.
    fn infos<'l, const LABELS: usize>(
        &mut self,
        name: &str,
        meaning: &str,
        all: impl IntoIterator<Item = [(&'l str, &'l str); LABELS]>,
    ) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, None, MetricType::Info)?;
        all.into_iter().try_for_each(|labels| figure.encode_info(&labels))
    }

    /// A gauge with a name that other programs use too.
    fn standard(&mut self, name: &str, meaning: &str, unit: Option<Unit>, value: impl EncodeGaugeValue) -> fmt::Result {
        self.0.encode_descriptor(name, meaning, unit.as_ref(), MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauge(&mut self, name: &str, meaning: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.standard(&named(name), meaning, None, value)
    }

    /// A time, if there is one yet.
    fn seconds(&mut self, name: &str, meaning: &str, value: Option<Duration>) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, Some(&Unit::Seconds), MetricType::Gauge)?;
        value.map_or(Ok(()), |value| figure.encode_gauge(&value.as_secs_f64()))
    }

    fn count(&mut self, name: &str, meaning: &str, value: u64) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, None, MetricType::Counter)?;
        figure.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        meaning: &str,
        values: impl Iterator<Item = (L, usize)>,
    ) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, None, MetricType::Gauge)?;
        for (labels, value) in values {
            figure.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counts<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        meaning: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, None, MetricType::Counter)?;
        for (labels, value) in values {
            figure.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    /// Histograms whose values are nanoseconds where the unit is seconds.
    fn histograms<'m, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        meaning: &str,
        unit: Unit,
        values: impl Iterator<Item = (L, &'m Ranges)>,
    ) -> fmt::Result {
        let name = named(name);
        let mut figure = self.0.encode_descriptor(&name, meaning, Some(&unit), MetricType::Histogram)?;
        let divisor = if matches!(unit, Unit::Seconds) { NANOS } else { 1.0 };
        for (labels, Ranges { ranges, sum }) in values {
            let count = ranges.iter().map(|(_, count)| count).sum();
            let scaled = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| as_float(bound) / divisor);
            let buckets: Vec<(f64, u64)> = ranges.iter().map(|(bound, count)| (scaled(*bound), *count)).collect();
            let mut figure = figure.encode_family(&labels)?;
            figure.encode_histogram::<NoLabelSet>(as_float(*sum) / divisor, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn named(name: &str) -> String {
    format!("{PREFIX}_{name}")
}

#[expect(clippy::cast_precision_loss, reason = "what is written out has no more digits")]
fn as_float(value: u64) -> f64 {
    value as f64
}
