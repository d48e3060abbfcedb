//! Calls per second with many outstanding at once.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::time::{ClockId, clock_gettime};

use crate::frame::{Ask, Era, Tool};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, warm_up};
use crate::native::Native;
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::stream::{Stream, converse};
use crate::subject::Subject;

/// Calls outstanding at most. 64 is the number that a server runs at once by default.
const WINDOW: usize = 64;

const COLUMNS: &[Column] = &[
    Column { key: "calls_per_s", heading: "calls/s", decimals: 0 },
    Column { key: "calls_per_s_min", heading: "min", decimals: 0 },
    Column { key: "calls_per_s_max", heading: "max", decimals: 0 },
    Column { key: "ratio", heading: "× bare", decimals: 2 },
    Column { key: "cpu_us", heading: "its CPU µs", decimals: 1 },
    Column { key: "client_cpu_us", heading: "client's CPU µs", decimals: 1 },
];

const NOTE: &str = "\
The median of all rounds. The client's threads run on the same CPUs; what they take for each call is in the last column.";

/// One request to a process of its own.
struct Lane {
    name: &'static str,
    link: Link,
    ask: Ask,
    goal: Option<Goal>,
    rate: Samples,
    cpu: Samples,
    client_cpu: Samples,
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    use {Era::Legacy, Era::Modern, Tool::Echo, Tool::Tiny};
    let rounds = options.count(9, 1);
    let calls = options.count(20_000, 1_000);
    let serving = Serving::examples()?;
    let fresh = Serving::fresh()?;
    let toolcell = |name, serving: &Serving, tool, era, goal| {
        let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
        warm_up(&mut link, &[tool], 50)?;
        anyhow::Ok(Lane::new(name, link, Ask::Call(tool, era), goal))
    };
    let bare = Link::start(&Subject::native(Native::Echo)?, Wire::Pipes)?;
    let mut lanes = [
        Lane::new("bare pipe", bare, Ask::Line, None),
        toolcell("tiny, legacy", &serving, Tiny, Legacy, Some(Goal::TinyPipelined))?,
        toolcell("echo, legacy", &serving, Echo, Legacy, None)?,
        toolcell("echo, modern", &serving, Echo, Modern, None)?,
        toolcell("echo, legacy, prewarm = 0", &fresh, Echo, Legacy, Some(Goal::EchoPipelined))?,
    ];
    for _ in 0..rounds {
        for lane in &mut lanes {
            lane.turn(calls)?;
        }
    }
    let bare = lanes.first().and_then(|bare| bare.rate.median());
    let measured = lanes.iter().filter_map(|lane| lane.measured(bare)).collect();
    let rows = lanes.iter().map(|lane| lane.row(bare)).collect();
    let title = "Pipelined: 64 calls outstanding";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

impl Lane {
    fn new(name: &'static str, link: Link, ask: Ask, goal: Option<Goal>) -> Self {
        let none = Samples::default;
        Self { name, link, ask, goal, rate: none(), cpu: none(), client_cpu: none() }
    }

    fn turn(&mut self, calls: usize) -> anyhow::Result<()> {
        let process = self.link.process_id();
        let ran = process::cpu_time(process)?;
        let client_ran = own_cpu_time();
        let begun = Instant::now();
        let done = converse(&mut self.link, Stream { ask: self.ask, calls, window: WINDOW }).with_context(|| self.name);
        let took = begun.elapsed();
        done.with_context(|| self.link.said())?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
        self.rate.push(calls as f64 / took.as_secs_f64());
        self.cpu.push(each(process::cpu_time(process)?.saturating_sub(ran)));
        self.client_cpu.push(each(own_cpu_time().saturating_sub(client_ran)));
        Ok(())
    }

    fn ratio(&self, bare: Option<f64>) -> Option<f64> {
        Some(self.rate.median()? / bare?)
    }

    fn measured(&self, bare: Option<f64>) -> Option<Measured> {
        Some(Measured { goal: self.goal?, value: self.rate.median()?, ratio: self.ratio(bare) })
    }

    fn row(&self, bare: Option<f64>) -> Row {
        let values = vec![
            self.rate.median(),
            self.rate.quantile(0.0),
            self.rate.quantile(1.0),
            self.ratio(bare).filter(|_| !matches!(self.ask, Ask::Line)),
            self.cpu.median(),
            self.client_cpu.median(),
        ];
        Row { name: self.name.to_owned(), values }
    }
}

/// CPU time of all threads of this program.
fn own_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
