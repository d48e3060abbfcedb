//! The walls around a process. Must not hold: links.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]
use std::process::{Command, ExitCode};

use toolcell_walls::kernel::{Wall, answer_probe, probe};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("probe") {
        return answer_probe().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let report = probe(Command::new("/proc/self/exe").arg("probe")).expect("a report");
    assert!(report.stands(Wall::NoNewPrivileges), "{report}");
    ExitCode::SUCCESS
}
