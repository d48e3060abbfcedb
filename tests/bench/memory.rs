//! Resident memory with few and with many tools, counted in pages by the kernel.

use std::time::{Duration, Instant};

use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, first_call};
use crate::options::Options;
use crate::process::{self, Resident};
use crate::report::{Column, Row, Section};
use crate::serving::{Serving, prefix};

const COLUMNS: &[Column] = &[
    Column { key: "resident_mb", heading: "now MB", decimals: 1 },
    Column { key: "resident_max_mb", heading: "peak MB", decimals: 1 },
    Column { key: "own_mb", heading: "own MB", decimals: 1 },
];

const NOTE: &str = "\
MB of 10^6 bytes. Own: without pages of files, which are those of the program and of components' code, and which the system
takes back when it wants. Walls: of all processes, pages that several have counted once. Idle: no CPU time taken for a while.
The components were compiled before (`toolcell compile`), but in the row that says otherwise: compiling takes memory, which the
process may keep.";

/// Time without CPU use after which a process counts as idle.
const IDLE: Duration = Duration::from_millis(300);

/// Time that a process has to become idle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let many = options.count(100, 5);
    let one = Serving::copies(1)?;
    one.compile()?;
    let mut rows = vec![row("1 Rust tool, idle".to_owned(), resident(&Link::open(&one.subject(), Wire::Pipes)?)?)];
    let serving = Serving::copies(many)?;
    let compiling = Link::open(&serving.subject(), Wire::Pipes)?;
    rows.push(row(format!("{many} Rust tools, idle, compiled at this start"), resident(&compiling)?));
    drop(compiling);
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    let loaded = resident(&link)?;
    rows.push(row(format!("{many} Rust tools, idle"), loaded));
    for copy in 0..many {
        first_call(&mut link, &format!("{}echo", prefix(copy)), "each once")?;
    }
    rows.push(row(format!("{many} Rust tools, idle, each called once"), resident(&link)?));
    drop(link);
    let serving = serving.walled();
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    first_call(&mut link, &format!("{}echo", prefix(0)), "so that a process is there")?;
    resident(&link)?;
    let (walled, own) = process::resident_of_all(link.process_id())?;
    let processes = process::family(link.process_id()).len();
    let name = format!("{many} Rust tools, idle, walls: {processes} processes");
    rows.push(Row { name, values: vec![Some(walled), None, Some(own)] });
    // A quick look has fewer tools than the goal is set for.
    let goals = [
        (Goal::HundredTools, loaded.now),
        (Goal::UnwalledHundredTools, loaded.now),
        (Goal::WalledHundredTools, walled),
    ];
    let measured = goals.into_iter().filter(|_| !options.quick).map(|(goal, mb)| Measured::alone(goal, mb)).collect();
    let title = "Resident memory";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// The resident memory of the idle process.
fn resident(link: &Link) -> anyhow::Result<Resident> {
    let begun = Instant::now();
    let mut ran = process::cpu_time(link.process_id())?;
    loop {
        std::thread::sleep(IDLE);
        let run_since = std::mem::replace(&mut ran, process::cpu_time(link.process_id())?);
        // An occasional timer tick still counts as idle.
        if ran.saturating_sub(run_since) < IDLE / 100 || begun.elapsed() > PATIENCE {
            return process::resident(link.process_id());
        }
    }
}

fn row(name: String, resident: Resident) -> Row {
    Row { name, values: [resident.now, resident.peak, resident.own].map(Some).to_vec() }
}
