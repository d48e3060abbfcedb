//! From starting a process to its first answer, with few and with many tools.

use std::time::Instant;

use crate::frame::Ask;
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
];

const NOTE: &str = "\
From before the process is spawned until the answer of tools/call is there. Each tool is a component of its own; all are compiled.";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let many = options.count(50, 3);
    let rows = vec![
        row("a native process".to_owned(), &native(options.count(50, 2))?),
        row("toolcell, 1 Rust tool".to_owned(), &toolcell(1, options.count(15, 2))?),
        row(format!("toolcell, {many} Rust tools"), &toolcell(many, options.count(3, 1))?),
    ];
    let title = "Start: to the first answer";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured: Vec::new() })
}

fn native(times: usize) -> anyhow::Result<Samples> {
    let (subject, mut request, mut took) = (Subject::native(Native::Once)?, Vec::new(), Samples::default());
    for id in (0_u64..).take(times) {
        let begun = Instant::now();
        Link::start(&subject, Wire::Pipes)?.ask(Ask::Line, id, &mut request)?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

fn toolcell(tools: usize, times: usize) -> anyhow::Result<Samples> {
    let (serving, mut took) = (Serving::copies(tools)?, Samples::default());
    let last = format!("{}echo", prefix(tools - 1));
    for _ in 0..times {
        let begun = Instant::now();
        let mut link = Link::start(&serving.subject(), Wire::Pipes)?;
        first_call(&mut link, &last, "the first call")?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

fn row(name: String, took: &Samples) -> Row {
    Row { name, values: vec![took.median(), took.quantile(0.0), took.quantile(1.0)] }
}
