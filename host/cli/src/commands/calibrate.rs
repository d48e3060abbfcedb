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
use crate::exit::{Exit, Failure};
use crate::manifest::open_again_or_report;
use crate::terminal::{self, Progress, counted};

/// Where the tool's limits belong in the manifest.
struct LimitsTable {
    component: String,
    /// The tool's own name, without the manifest's prefix.
    tool: String,
    /// True if the manifest has a table for the tool.
    taken: bool,
}

/// Calibrates and prints the proposal.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    if args.samples.iter().filter(|given| *given == "-").count() > 1 {
        return Err(Failure::usage("stdin can be read only once", "put the samples into files: @FILE").into());
    }
    let samples = args.samples.iter().map(|given| sample::arguments(given)).collect::<Result<Vec<_>, _>>()?;
    let (_, ready) = open_again_or_report(&args.manifest.manifest, &SketchRights::default(), &args.code)?;
    let (index, tool) = sample::tool(&ready.catalog, &args.tool)?;
    let place = LimitsTable::of(&ready, index, tool);
    let Ready { catalog, machine, .. } = ready;
    let measuring = Measuring { catalog: Arc::new(catalog), machine, index };
    let used = measuring.all(&samples, args.runs)?;
    let proposal = Proposal::of(&used);
    let calls = counted(samples.len() as u64, "sample call");
    let made = format!("{calls}, {} of each", counted(u64::from(args.runs), "run"));
    let snippet = proposal.manifest_lines(&place.component, &place.tool, &made);
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
    fn all(&self, samples: &[Box<RawValue>], runs: u32) -> Result<PeakUsage, Failure> {
        let Some(tool) = self.catalog.tools().tools().get(self.index) else { return Ok(PeakUsage::default()) };
        let progress = Progress::new("calling", samples.len().saturating_mul(runs as usize));
        let mut most = PeakUsage::default();
        let mut done = 0;
        for (number, arguments) in (1..).zip(samples) {
            tool.check_arguments(arguments, &Patience::default())
                .map_err(|problems| refused(number, &tool.refuse_arguments(&problems)))?;
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
fn used(tool: &McpTool, arguments: &RawValue, number: usize, measured: Measured) -> Result<PeakUsage, Failure> {
    let Measured { outcome, usage, log_dropped_bytes, .. } = measured;
    let output_items = measured.result.content.len() as u64;
    let result = measured.finish(tool);
    if matches!(outcome, Outcome::OutOfFuel | Outcome::OutOfMemory | Outcome::LimitExceeded | Outcome::Deadline) {
        let hint = "raise that limit in the manifest while you calibrate, or give a smaller sample";
        return Err(Failure::at_fault(format!("sample {number} meets a limit: {}", text_of(&result)), hint));
    }
    if result.is_error {
        return Err(refused(number, &result));
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

fn refused(number: usize, result: &CallResult) -> Failure {
    let hint = "samples must be calls that the tool answers; `toolcell call` shows what it says";
    Failure::at_fault(format!("sample {number} is an error: {}", text_of(result)), hint)
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
