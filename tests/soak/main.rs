//! `make soak`: hours of use in minutes. One `toolcell serve` gets good, hostile and cancelled
//! calls in both eras, mixed at random. Every frame that comes back is checked. Between rounds,
//! with no call open, the process is checked: memory, threads and files must be as before. Calls
//! run in sandbox processes, one of which is killed each second.
//!
//! Must not hold: anything that runs inside the host's process, or the exact answers to single
//! misbehaviours and their reasons. Those belong to `tests/e2e`; the texts here are a sample of
//! them.

mod calls;
mod killing;
mod ledger;
mod options;
mod process;
mod random;
mod report;
mod rounds;
mod serving;
mod trend;

use std::io::Write as _;
use std::process::ExitCode;

use options::{Asked, HELP};

fn main() -> ExitCode {
    let done = match options::from_command_line() {
        Ok(Asked::Help) => print(HELP).map(|()| true),
        Ok(Asked::Soak(options)) => rounds::soak(&options).and_then(|report| {
            print(&if options.json { report.to_json() } else { report.to_text() })?;
            Ok(report.is_good())
        }),
        Err(error) => {
            complain(&format!("{error:#}\n\nhint: --help shows what there is"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints a message to stderr. A closed stderr is no reason to stop.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "soak: {text}");
}
