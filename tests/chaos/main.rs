//! `make chaos`: three replicas behind a balancer, one shared state behind sentinels, a steady load
//! of calls, approvals and a rate, and one thing after another that goes wrong. Each answer is
//! counted: good, refused clearly, cut off with a replica that was killed, lost, doubled or wrong.
//!
//! Must not hold: anything that runs inside the host's process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod balancer;
mod load;
mod site;
mod troubles;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use load::Counts;
use troubles::Trouble;

/// The text of `--help`.
const HELP: &str = "\
toolcell-chaos: three replicas, one shared state, and what may go wrong

usage: toolcell-chaos [--quick] [--filter WORD]

  --quick        pauses of 1 second only
  --filter WORD  only troubles with this word in their name
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        return print(HELP);
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let filter = arguments.iter().position(|argument| argument == "--filter");
    let filter = filter.and_then(|place| arguments.get(place + 1)).cloned().unwrap_or_default();
    let longest = Duration::from_secs(if is_quick { 1 } else { 60 });
    let chosen = Trouble::all().into_iter().filter(|trouble| trouble.pause() <= longest);
    let mut is_good = print(&Counts::head()) == ExitCode::SUCCESS;
    for trouble in chosen.filter(|trouble| trouble.name().contains(&filter)) {
        let counts = troubles::run(&trouble);
        is_good &= counts.is_good(&trouble);
        let _ = print(&counts.row(&trouble));
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(text: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
