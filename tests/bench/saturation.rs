//! More and more calls at once, up to the point where answers stop coming faster and only wait
//! longer.

use std::time::Instant;

use anyhow::Context as _;

use crate::frame::{Ask, Era, Tool};
use crate::link::{Link, Wire, warm_up};
use crate::native::Native;
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::stream::{Stream, converse};
use crate::subject::Subject;

/// Calls outstanding. The largest is four times the number that a server runs at once by default.
const WINDOWS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

const COLUMNS: &[Column] = &[
    Column { key: "calls_per_s", heading: "calls/s", decimals: 0 },
    Column { key: "p50_us", heading: "p50 µs", decimals: 0 },
    Column { key: "p99_us", heading: "p99 µs", decimals: 0 },
    Column { key: "bare_calls_per_s", heading: "bare calls/s", decimals: 0 },
    Column { key: "bare_p99_us", heading: "bare p99 µs", decimals: 0 },
    Column { key: "ratio", heading: "× bare", decimals: 2 },
];

const NOTE: &str = "\
A closed loop: an answer makes room for the next call. calls/s: the median of all rounds; p50 and p99: of all calls, from when
a call is written. × bare: calls/s beside those of the bare pipe with as many outstanding.";

/// The samples of one process with one window.
#[derive(Default)]
struct Seen {
    rate: Samples,
    took: Samples,
}

/// Measures `echo`.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(5, 1);
    let calls = options.count(5_000, 500);
    let serving = Serving::examples()?;
    let mut bare = Link::start(&Subject::native(Native::Echo)?, Wire::Pipes)?;
    let mut toolcell = Link::open(&serving.subject(), Wire::Pipes)?;
    warm_up(&mut toolcell, &[Tool::Echo], 50)?;
    let mut seen = WINDOWS.map(|window| (window, Seen::default(), Seen::default()));
    for _ in 0..rounds {
        for (window, of_bare, of_toolcell) in &mut seen {
            let stream = |ask| Stream { ask, calls, window: *window };
            of_bare.turn(&mut bare, stream(Ask::Line))?;
            of_toolcell.turn(&mut toolcell, stream(Ask::Call(Tool::Echo, Era::Legacy)))?;
        }
    }
    let rows = seen.iter().map(|(window, bare, toolcell)| row(*window, bare, toolcell)).collect();
    let title = "Saturation: echo, more and more calls outstanding";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured: Vec::new() })
}

impl Seen {
    fn turn(&mut self, link: &mut Link, stream: Stream) -> anyhow::Result<()> {
        let begun = Instant::now();
        let took = converse(link, stream).with_context(|| format!("{} at once", stream.window));
        let passed = begun.elapsed();
        self.took.extend(&took.with_context(|| link.said())?);
        self.rate.push(stream.calls as f64 / passed.as_secs_f64());
        Ok(())
    }
}

fn row(window: usize, bare: &Seen, toolcell: &Seen) -> Row {
    let rate = toolcell.rate.median();
    let bare_rate = bare.rate.median();
    let values = vec![
        rate,
        toolcell.took.median(),
        toolcell.took.quantile(0.99),
        bare_rate,
        bare.took.quantile(0.99),
        rate.zip(bare_rate).map(|(rate, bare)| rate / bare),
    ];
    Row { name: format!("{window} outstanding"), values }
}
