//! `toolcell calibrate TOOL --with ARGUMENTS…`: runs a tool over sample calls and proposes limits
//! that leave head-room.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcell_audit::Outcome;
use toolcell_mcp::{CallResult, Cancellation, ContentKind, McpTool, Patience, ServedCatalog as _, sanitize};
use toolcell_policy::{PeakUsage, Proposal, Unit};
use toolcell_server::catalog::Catalog;
use toolcell_server::machine::Machine;
use toolcell_server::{Measured, Ready};

use crate::args::{CalibrateArgs, SketchRights};
use crate::commands::sample;
use crate::exit::Exit;
use crate::manifest::open_again_or_report;
use crate::terminal::{self, Progress};

/// Where the tool's limits belong in the manifest.
struct LimitsTable {
    component: String,
    /// The tool's own name, without the manifest's prefix.
    tool: String,
    /// True if the manifest has a table for the tool.
    taken: bool,
}

/// Why a sample cannot be used.
struct UnusableSample {
    message: String,
    hint: Option<String>,
}

/// Calibrates and prints the proposal.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    if args.samples.iter().filter(|given| *given == "-").count() > 1 {
        terminal::error("stdin can be read only once", Some("put the samples into files: @FILE"));
        return Ok(Exit::Usage);
    }
    let mut samples = Vec::new();
    for given in &args.samples {
        let Some(arguments) = sample::arguments_or_report(given) else { return Ok(Exit::Usage) };
        samples.push(arguments);
    }
    let Some((_, ready)) = open_again_or_report(&args.manifest.manifest, &SketchRights::default(), &args.code)? else {
        return Ok(Exit::AtFault);
    };
    let Some((index, tool)) = sample::tool_or_report(&ready.catalog, &args.tool) else { return Ok(Exit::Usage) };
    let place = LimitsTable::of(&ready, index, tool);
    let Ready { catalog, machine, .. } = ready;
    let measuring = Measuring { catalog: Arc::new(catalog), machine, index };
    let used = match measuring.all(&samples, args.runs) {
        Ok(used) => used,
        Err(unusable) => {
            terminal::error(&unusable.message, unusable.hint.as_deref());
            return Ok(Exit::AtFault);
        }
    };
    let proposal = Proposal::of(&used);
    let snippet = proposal.manifest_lines(&place.component, &place.tool, &counted(samples.len(), args.runs));
    if args.json {
        terminal::print(&format!("{:#}\n", report(args, &place, &used, &proposal, &snippet)))?;
    } else {
        terminal::print(&snippet)?;
        if place.taken {
            let LimitsTable { component, tool, .. } = &place;
            terminal::eprint(&format!(
                "\nThe manifest has [components.{component}.tools.{tool}] already: merge the two.\n"
            ));
        }
    }
    Ok(Exit::Done)
}

/// The tool that is measured.
struct Measuring {
    catalog: Arc<Catalog>,
    machine: Machine,
    index: usize,
}

impl Measuring {
    /// Peak usage of all calls.
    fn all(&self, samples: &[Box<RawValue>], runs: u32) -> Result<PeakUsage, UnusableSample> {
        let Some(tool) = self.catalog.tools().tools().get(self.index) else { return Ok(PeakUsage::default()) };
        let progress = Progress::new("calling", samples.len().saturating_mul(runs as usize));
        let mut most = PeakUsage::default();
        let mut done = 0;
        for (number, arguments) in (1..).zip(samples) {
            tool.check_arguments(arguments, &Patience::default())
                .map_err(|problems| UnusableSample::refused(number, &tool.refuse_arguments(&problems)))?;
            for _ in 0..runs {
                let call = sample::call(self.index, arguments.clone(), Cancellation::new());
                let measured = self.machine.runtime.block_on(self.catalog.measure(call));
                most = most.max(used(tool, arguments, number, measured)?);
                done += 1;
                progress.at(done);
            }
        }
        Ok(most)
    }
}

/// Usage of one call, if it was answered.
fn used(tool: &McpTool, arguments: &RawValue, number: usize, measured: Measured) -> Result<PeakUsage, UnusableSample> {
    let Measured { outcome, usage, log_dropped_bytes, .. } = measured;
    let output_items = measured.result.content.len() as u64;
    let result = measured.finish(tool);
    if matches!(outcome, Outcome::OutOfFuel | Outcome::OutOfMemory | Outcome::LimitExceeded | Outcome::Deadline) {
        return Err(UnusableSample::limited(number, &result));
    }
    if result.is_error {
        return Err(UnusableSample::refused(number, &result));
    }
    Ok(PeakUsage {
        fuel: usage.fuel,
        duration: usage.duration,
        memory_bytes: usage.memory_peak_bytes,
        output_bytes: usage.output_bytes,
        output_items,
        // Output beyond the limit is dropped, but counts here.
        log_bytes: usage.log_bytes.saturating_add(log_dropped_bytes),
        arguments_bytes: arguments.get().len() as u64,
    })
}

impl UnusableSample {
    fn limited(number: usize, result: &CallResult) -> Self {
        let hint = "raise that limit in the manifest while you calibrate, or give a smaller sample";
        Self { message: format!("sample {number} meets a limit: {}", text_of(result)), hint: Some(hint.to_owned()) }
    }

    fn refused(number: usize, result: &CallResult) -> Self {
        let hint = "samples must be calls that the tool answers; `toolcell call` shows what it says";
        Self { message: format!("sample {number} is an error: {}", text_of(result)), hint: Some(hint.to_owned()) }
    }
}

/// Texts of a result, safe for a terminal.
pub(super) fn text_of(result: &CallResult) -> String {
    let texts = result.content.iter().filter_map(|content| match &content.kind {
        ContentKind::Text(text) => Some(sanitize::text(text)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl LimitsTable {
    fn of(ready: &Ready, index: usize, tool: &McpTool) -> Self {
        let component = ready.catalog.tool_source(index).map_or("", |(component, _)| component.name());
        let policy = ready.manifest.component(component);
        let exposed = tool.definition().name.as_str();
        let prefix = policy.and_then(|policy| policy.prefix()).unwrap_or_default();
        let own = exposed.strip_prefix(prefix).unwrap_or(exposed);
        let taken = policy.is_some_and(|policy| policy.tool(own).is_some());
        Self { component: component.to_owned(), tool: own.to_owned(), taken }
    }
}

fn counted(samples: usize, runs: u32) -> String {
    let many = |count: u64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    format!("{}, {} of each", many(samples as u64, "sample call"), many(u64::from(runs), "run"))
}

fn report(args: &CalibrateArgs, place: &LimitsTable, used: &PeakUsage, proposal: &Proposal, snippet: &str) -> Value {
    let limits: Map<String, Value> = proposal
        .lines()
        .map(|line| {
            let spec = line.limit.spec();
            let value = if spec.unit == Unit::Count { json!(line.value) } else { json!(spec.show(line.value)) };
            (spec.key.to_owned(), value)
        })
        .collect();
    json!({
        "tool": args.tool,
        "component": place.component,
        "samples": args.samples.len(),
        "runs": args.runs,
        "used": {
            "fuel": used.fuel,
            "duration_us": u64::try_from(used.duration.as_micros()).unwrap_or(u64::MAX),
            "memory_peak_bytes": used.memory_bytes,
            "output_bytes": used.output_bytes,
            "output_items": used.output_items,
            "log_bytes": used.log_bytes,
            "arguments_bytes": used.arguments_bytes,
        },
        "limits": limits,
        "manifest": snippet,
    })
}
