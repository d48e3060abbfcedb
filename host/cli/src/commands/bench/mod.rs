//! `toolcell bench TOOL ARGUMENTS`: measures one tool, with one call at a time and with calls on
//! every core.
mod series;
mod subject;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell_mcp::Patience;
use toolcell_policy::quantity::show_count;
use toolcell_server::Ready;

use crate::args::{BenchArgs, SketchRights};
use crate::commands::{calibrate, sample};
use crate::exit::{Exit, Failure};
use crate::manifest::open_again_or_report;
use crate::terminal::{self, Progress};

use series::Series;
use subject::{BenchPlan, BenchSubject};

/// Calls without a number on the command line, if time allows: enough for a stable 99th percentile.
const CALLS_MAX: u32 = 10_000;

/// Time for them, one at a time and again on every core: as long as people are willing to wait.
const TIME_MAX: Duration = Duration::from_secs(3);

/// Concurrent calls for each core: while one waits, another computes.
const CALLS_PER_CORE: usize = 2;

/// Percentiles to show, before the maximum.
const PERCENTILES: [usize; 3] = [50, 90, 99];

/// Result of a measurement.
struct Measurement {
    cores: usize,
    serial: Series,
    parallel: Series,
}

/// Measures and prints.
pub fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    let arguments = sample::arguments(&args.arguments)?;
    let (_, ready) = open_again_or_report(&args.manifest.manifest, &SketchRights::default(), &args.code)?;
    let Ready { manifest, catalog, machine, .. } = ready;
    let (index, tool) = sample::tool(&catalog, &args.tool)?;
    tool.check_arguments(&arguments, &Patience::default())
        .map_err(|problems| Failure::at_fault(calibrate::text_of(&tool.refuse_arguments(&problems)), ""))?;
    let subject = Arc::new(BenchSubject::new(catalog, index, arguments));
    let plan =
        args.runs.map_or(BenchPlan { calls: CALLS_MAX, time: Some(TIME_MAX) }, |calls| BenchPlan { calls, time: None });
    let progress = Progress::new("calls", plan.calls as usize * 2);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (cores * CALLS_PER_CORE).min(manifest.server().calls());
    let measured = machine.runtime.block_on(async {
        subject.warm_up().await?;
        subject.one_by_one(plan, &progress).await
    });
    let measured = measured.and_then(|serial| {
        let parallel = subject.at_once(at_once, plan, &machine.workers, &progress)?;
        Ok(Measurement { cores, serial, parallel })
    });
    drop(progress);
    let hint = "only calls that the tool answers are measured; `toolcell call` shows what it says";
    let measured =
        measured.map_err(|error| Failure::at_fault(format!("the tool answers with an error: {error}"), hint))?;
    let text = if args.json { format!("{:#}\n", measured.to_json(&args.tool)) } else { measured.to_text() };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

impl Measurement {
    fn to_text(&self) -> String {
        let mut text = format!("{:<16}{:>8}", "", "calls");
        for heading in ["p50 ms", "p90 ms", "p99 ms", "max ms"] {
            // Writing to a string does not fail.
            let _ = write!(text, "{heading:>10}");
        }
        let _ = writeln!(text, "{:>11}", "calls/s");
        let cores = if self.cores == 1 { "on 1 core".to_owned() } else { format!("on {} cores", self.cores) };
        for (name, series) in [("one by one", &self.serial), (cores.as_str(), &self.parallel)] {
            let _ = write!(text, "{name:<16}{:>8}", series.calls());
            for latency in PERCENTILES.map(|percent| series.percentile(percent)).into_iter().chain([series.slowest()]) {
                let _ = write!(text, "{:>10.3}", latency.as_secs_f64() * 1e3);
            }
            let _ = writeln!(text, "{:>11.0}", series.calls_per_second());
        }
        let (least, most) = self.fuel();
        let fuel =
            if least == most { show_count(most) } else { format!("{} to {}", show_count(least), show_count(most)) };
        let _ = writeln!(text, "fuel {fuel}, peak memory {} KiB", self.memory_peak_bytes().div_ceil(1024));
        text
    }

    fn to_json(&self, tool: &str) -> Value {
        let (fuel_min, fuel_max) = self.fuel();
        json!({
            "tool": tool,
            "cores": self.cores,
            "one_by_one": series_json(&self.serial),
            "on_every_core": series_json(&self.parallel),
            "fuel_min": fuel_min,
            "fuel_max": fuel_max,
            "memory_peak_bytes": self.memory_peak_bytes(),
        })
    }

    fn fuel(&self) -> (u64, u64) {
        let serial = self.serial.fuel();
        let parallel = self.parallel.fuel();
        (serial.0.min(parallel.0), serial.1.max(parallel.1))
    }

    fn memory_peak_bytes(&self) -> u64 {
        self.serial.memory_peak_bytes().max(self.parallel.memory_peak_bytes())
    }
}

fn series_json(series: &Series) -> Value {
    let micros = |latency: Duration| latency.as_secs_f64() * 1e6;
    let [p50, p90, p99] = PERCENTILES.map(|percent| micros(series.percentile(percent)));
    json!({
        "calls": series.calls(),
        "calls_per_second": series.calls_per_second(),
        "latency_us": {"p50": p50, "p90": p90, "p99": p99, "max": micros(series.slowest())},
    })
}
