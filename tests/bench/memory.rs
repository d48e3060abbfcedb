//! Resident memory of the host and its sandbox processes with few and with many tools, counted in
//! pages by the kernel.

use std::time::{Duration, Instant};

use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, first_call};
use crate::options::Options;
use crate::process::{self, ResidentOfAll};
use crate::report::{Column, Row, Section};
use crate::serving::{Serving, prefix};

const COLUMNS: &[Column] = &[
    Column { key: "resident_mb", heading: "now MB", decimals: 1 },
    Column { key: "own_mb", heading: "own MB", decimals: 1 },
    Column { key: "processes", heading: "processes", decimals: 0 },
];

const NOTE: &str = "\
MB of 10^6 bytes, of the host's process and all sandbox processes together, pages that several have counted once. Own: without pages
of files, which are those of the program and of components' code, and which the system takes back when it wants. Idle: one tool was
called, and no CPU time taken for a while. The components were compiled before (`toolcell compile`), but in the row that says otherwise.";

/// Time without CPU use after which a server counts as idle.
const IDLE: Duration = Duration::from_millis(300);

/// Time that a server has to become idle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let many = options.count(100, 5);
    let one = Serving::copies(1)?;
    one.compile()?;
    let mut rows = vec![row("1 Rust tool, idle".to_owned(), resident(&open(&one)?)?)];
    let serving = Serving::copies(many)?;
    let compiling = open(&serving)?;
    rows.push(row(format!("{many} Rust tools, idle, compiled at this start"), resident(&compiling)?));
    drop(compiling);
    let mut link = open(&serving)?;
    let loaded = resident(&link)?;
    rows.push(row(format!("{many} Rust tools, idle"), loaded));
    for copy in 0..many {
        first_call(&mut link, &format!("{}echo", prefix(copy)), "each once")?;
    }
    rows.push(row(format!("{many} Rust tools, idle, each called once"), resident(&link)?));
    // A quick look has fewer tools than the goal is set for.
    let measured = if options.quick { Vec::new() } else { vec![Measured::alone(Goal::HundredTools, loaded.now)] };
    let title = "Resident memory of all processes";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// Starts a server of [`Serving::copies`] and calls its first tool, so that a sandbox process is
/// there.
fn open(serving: &Serving) -> anyhow::Result<Link> {
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    first_call(&mut link, &format!("{}echo", prefix(0)), "so that a process is there")?;
    Ok(link)
}

/// The resident memory of all processes of the server, once they are idle.
fn resident(link: &Link) -> anyhow::Result<ResidentOfAll> {
    let begun = Instant::now();
    let mut ran = process::cpu_time(link.process_id())?;
    loop {
        std::thread::sleep(IDLE);
        let run_since = std::mem::replace(&mut ran, process::cpu_time(link.process_id())?);
        // An occasional timer tick still counts as idle.
        if ran.saturating_sub(run_since) < IDLE / 100 || begun.elapsed() > PATIENCE {
            return process::resident_of_all(link.process_id());
        }
    }
}

fn row(name: String, resident: ResidentOfAll) -> Row {
    let values = vec![Some(resident.now), Some(resident.own), Some(resident.processes as f64)];
    Row { name, values }
}
