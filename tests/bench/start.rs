//! Time from the start of a process to its first answer, with few and with many tools, with and
//! without compiled code.

use std::time::Instant;

use crate::frame::Ask;
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, first_call};
use crate::native::Native;
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::{Serving, prefix};
use crate::subject::Subject;

const COLUMNS: &[Column] = &[
    Column { key: "p50_ms", heading: "p50 ms", decimals: 1 },
    Column { key: "min_ms", heading: "min", decimals: 1 },
    Column { key: "max_ms", heading: "max", decimals: 1 },
    Column { key: "ratio", heading: "× native", decimals: 1 },
];

const NOTE: &str = "\
From before the process is spawned until the answer of tools/call is there. Each tool is a component of its own.
nothing compiled: the folder of compiled code is empty, and filled by this start; compiled: by `toolcell compile`, before.";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let few = 1;
    let many = options.count(50, 3);
    let native = native(options.count(50, 2))?;
    let times = options.count(3, 1);
    let compiled_times = options.count(30, 2);
    let mut rows = vec![row("a native process".to_owned(), &native, None)];
    let mut measured = Vec::new();
    for tools in [few, many] {
        let serving = Serving::copies(tools)?;
        let name = format!("toolcell, {tools} Rust tool{}", if tools == 1 { "" } else { "s" });
        let uncompiled = starts(&serving, tools, times, Serving::forget)?;
        rows.push(row(format!("{name}, nothing compiled"), &uncompiled, Some(&native)));
        serving.compile()?;
        let compiled = starts(&serving, tools, compiled_times, |_| Ok(()))?;
        rows.push(row(format!("{name}, compiled"), &compiled, Some(&native)));
        // A quick look has fewer tools than the goal is set for.
        if tools == many && !options.quick {
            let value = compiled.median().unwrap_or_default();
            measured.push(Measured { goal: Goal::StartOfFifty, value, ratio: ratio(&compiled, &native) });
        }
    }
    let title = "Start: to the first answer";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

fn native(times: usize) -> anyhow::Result<Samples> {
    let subject = Subject::native(Native::Once)?;
    let mut request = Vec::new();
    let mut took = Samples::default();
    for id in (0_u64..).take(times) {
        let begun = Instant::now();
        Link::start(&subject, Wire::Pipes)?.ask(Ask::Line, id, &mut request)?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Starts it that many times, and runs `before` ahead of each start.
fn starts(
    serving: &Serving,
    tools: usize,
    times: usize,
    before: impl Fn(&Serving) -> anyhow::Result<()>,
) -> anyhow::Result<Samples> {
    let mut took = Samples::default();
    for _ in 0..times {
        before(serving)?;
        took.push(once(serving, tools)?);
    }
    Ok(took)
}

/// Starts it, and calls the last of its tools. Returns the time until the answer, in ms.
///
/// # Errors
/// It does not start, or answers wrongly.
pub fn once(serving: &Serving, tools: usize) -> anyhow::Result<f64> {
    let last = format!("{}echo", prefix(tools - 1));
    let begun = Instant::now();
    let mut link = Link::start(&serving.subject(), Wire::Pipes)?;
    first_call(&mut link, &last, "the first call")?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// The median as a multiple of another one.
pub fn ratio(took: &Samples, native: &Samples) -> Option<f64> {
    Some(took.median()? / native.median()?)
}

/// The row of times, next to others where there are any.
pub fn row(name: String, took: &Samples, native: Option<&Samples>) -> Row {
    let ratio = native.and_then(|native| ratio(took, native));
    Row { name, values: vec![took.median(), took.quantile(0.0), took.quantile(1.0), ratio] }
}
