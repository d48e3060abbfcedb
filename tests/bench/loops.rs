//! The effect of endless tools on others: `ping`, `tools/list` and short calls, on an idle server
//! and next to endless loops.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::frame::{self, Ask, Era, Tool};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, warm_up};
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;

/// Endless calls.
pub const LOOPS: usize = 8;

/// The id of the first endless call.
const LOOPS_ID: u64 = 1 << 40;

/// CPU time that the loops must take before they count as running.
const PROOF: Duration = Duration::from_millis(300);

/// Time that the loops have to take that CPU time.
const PATIENCE: Duration = Duration::from_secs(30);

const COLUMNS: &[Column] = &[
    Column { key: "p50_ms", heading: "p50 ms", decimals: 3 },
    Column { key: "p99_ms", heading: "p99 ms", decimals: 3 },
    Column { key: "max_ms", heading: "max ms", decimals: 3 },
];

const NOTE: &str = "\
One request after another, by one client. The loops have taken CPU time before the first, and none has ended after the last.
The loops are in echo's group: its sandbox processes run them.";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly, or a loop ends.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let few = options.count(500, 20);
    let many = options.count(1_500, 20);
    let asked = [
        ("ping", Ask::Ping, many, Goal::PingUnderLoops),
        ("tools/list", Ask::List, few, Goal::ListUnderLoops),
        ("echo", Ask::Call(Tool::Echo, Era::Legacy), few, Goal::CallUnderLoops),
    ];
    let serving = Serving::loops()?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    warm_up(&mut link, &[Tool::Echo], 50)?;
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    for (name, ask, times, _) in asked {
        rows.push(row(format!("{name}, idle"), &ask_for(&mut link, ask, times)?));
    }
    begin(&mut link)?;
    for (name, ask, times, goal) in asked {
        let took = ask_for(&mut link, ask, times)?;
        measured.extend(took.quantile(0.99).map(|p99| Measured::alone(goal, p99)));
        rows.push(row(format!("{name}, {LOOPS} endless loops"), &took));
    }
    let title = "Beside endless loops";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// Makes that many requests, one after another, and returns their times in ms. A loop that ends
/// would show as a wrong answer.
///
/// # Errors
/// An answer is wrong.
pub fn ask_for(link: &mut Link, ask: Ask, times: usize) -> anyhow::Result<Samples> {
    let mut request = Vec::new();
    let mut took = Samples::default();
    for id in (0_u64..).take(times) {
        took.push(link.ask(ask, id, &mut request)?.as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Starts the loops and waits until they have run.
///
/// # Errors
/// They do not run.
pub fn begin(link: &mut Link) -> anyhow::Result<()> {
    let ran = process::cpu_time(link.process_id())?;
    for id in (LOOPS_ID..).take(LOOPS) {
        link.send(&frame::modern(id, "tools/call", serde_json::json!({"name": "spin", "arguments": {}})))?;
    }
    let begun = Instant::now();
    while process::cpu_time(link.process_id())?.saturating_sub(ran) < PROOF {
        ensure!(begun.elapsed() < PATIENCE, "the loops do not run\n{}", link.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn row(name: String, took: &Samples) -> Row {
    Row { name, values: vec![took.median(), took.quantile(0.99), took.quantile(1.0)] }
}
