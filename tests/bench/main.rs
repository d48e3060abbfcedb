//! `make bench`: `toolcell serve` as a client sees it, measured from outside, and compared with the
//! cost of the machine itself.
//!
//! It starts the real binary, speaks MCP with it, checks every answer, and prints tables and how
//! far the goals are met. Must not hold: a figure that was not measured in this run; code that runs
//! inside the host's process. Two measurements are excepted: policy decisions, which need no host,
//! and the figures that `toolcell bench` takes itself.

mod console;
mod decision;
mod edit;
mod fetch;
mod frame;
mod goals;
mod granted;
mod lane;
mod languages;
mod link;
mod load;
mod loops;
mod machine;
mod memory;
mod native;
mod options;
mod page;
mod peers;
mod pipelined;
mod placed;
mod plain;
mod process;
mod registry;
mod reload;
mod replicas;
mod report;
mod samples;
mod saturation;
mod sdk;
mod serial;
mod serving;
mod start;
mod stream;
mod subject;
mod walls;
mod web;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use options::{Asked, Options};
use report::{Report, Section};
use toolcell_tests::Watch;

/// A measurement: its name, for `--filter`, and the function that makes its table.
type Measurement = (&'static str, fn(&Options) -> anyhow::Result<Section>);

const MEASUREMENTS: [Measurement; 19] = [
    ("serial", serial::measure),
    ("placed", placed::measure),
    ("pipelined", pipelined::measure),
    ("saturation", saturation::measure),
    ("start", start::measure),
    ("loops", loops::measure),
    ("walls", walls::measure),
    ("memory", memory::measure),
    ("reload", reload::measure),
    ("registry", registry::measure),
    ("granted", granted::measure),
    ("decision", decision::measure),
    ("console", console::measure),
    ("fetch", fetch::measure),
    ("http", web::measure),
    ("replicas", replicas::measure),
    ("languages", languages::measure),
    ("edit", edit::measure),
    ("peers", peers::measure),
];

fn main() -> ExitCode {
    let done = match options::from_command_line() {
        Ok(Asked::Native(native)) => native.run(),
        Ok(Asked::Help) => print(options::HELP),
        Ok(Asked::Measure(options)) => measure(&options),
        Err(error) => {
            complain(&format!("{error:#}\n\nhint: --help shows what there is"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new(machine::describe()?, options.quick);
    let is_there = |name| name != "peers" || peers::is_any_given();
    for (name, measure) in MEASUREMENTS.into_iter().filter(|(name, _)| options.wants(name) && is_there(*name)) {
        complain(&format!("measuring: {name}"));
        let patience = options.patience();
        let watch = Watch::for_at_most(patience, move || {
            complain(&format!("{name} takes longer than {} s: an answer is missing", patience.as_secs()));
        });
        report.add(name, measure(options)?);
        drop(watch);
    }
    if let Some(file) = &options.markdown {
        page::write(file, &report.to_markdown())?;
    }
    if options.json {
        return print(&report.to_json());
    }
    print(&report.to_text(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()))
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints a message to stderr. A closed stderr is no reason to stop.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "bench: {text}");
}
