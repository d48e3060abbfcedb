//! Serial calls of several subjects in turns. Rounds are short and alternate, so that other load on
//! the machine falls on all equally. A round of one lane is compared with the same round of its
//! baseline.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Context as _;

use crate::frame::{Ask, Tool};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, warm_up};
use crate::native::Native;
use crate::process;
use crate::report::{Column, Row};
use crate::samples::Samples;
use crate::subject::Subject;

/// The columns of [`Lanes::rows`].
pub const COLUMNS: &[Column; 7] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "p99_us", heading: "p99 µs", decimals: 1 },
    Column { key: "above_bare_us", heading: "above bare", decimals: 1 },
    Column { key: "above_bare_q1_us", heading: "q1", decimals: 1 },
    Column { key: "above_bare_q3_us", heading: "q3", decimals: 1 },
    Column { key: "ratio", heading: "× bare", decimals: 2 },
    Column { key: "cpu_us", heading: "its CPU µs", decimals: 1 },
];

/// Calls at the start of every turn that do not count. Other lanes have used the caches and the
/// scheduler meanwhile.
const WARM_UP: usize = 10;

/// Calls of each tool after a start, before anything counts.
pub const FIRST_CALLS: u64 = 50;

/// A running process that several lanes may ask.
pub type Shared = Rc<RefCell<Link>>;

/// One request to one process.
pub struct Lane {
    /// Its name in the table.
    pub name: &'static str,
    /// The process to ask.
    pub link: Shared,
    /// The request to make.
    pub ask: Ask,
    /// The name of the lane to compare with. A baseline names itself.
    pub baseline: &'static str,
    /// The samples so far.
    pub seen: Seen,
}

/// The samples of one lane.
#[derive(Default)]
pub struct Seen {
    /// The duration of every call, µs.
    all: Samples,
    /// The p50 of each round, µs.
    p50: Samples,
    /// CPU time of the process for each call, by round, µs.
    cpu: Samples,
}

/// Lanes that take turns.
pub struct Lanes(Vec<Lane>);

/// The native child that returns its input.
///
/// # Errors
/// It does not start.
pub fn bare(wire: Wire) -> anyhow::Result<Shared> {
    Ok(Rc::new(RefCell::new(Link::start(&Subject::native(Native::Echo)?, wire)?)))
}

/// A subject in a legacy conversation that has already answered calls of these tools.
///
/// # Errors
/// It does not start, or answers wrongly.
pub fn server(subject: &Subject, wire: Wire, tools: &[Tool]) -> anyhow::Result<Shared> {
    let mut link = Link::open(subject, wire)?;
    warm_up(&mut link, tools, FIRST_CALLS)?;
    Ok(Rc::new(RefCell::new(link)))
}

impl Lanes {
    /// These lanes, in this order.
    pub const fn new(lanes: Vec<Lane>) -> Self {
        Self(lanes)
    }

    /// Gives each lane one turn of that many calls.
    ///
    /// # Errors
    /// An answer is wrong, or none comes.
    pub fn round(&mut self, round: usize, calls: usize) -> anyhow::Result<()> {
        for at in 0..self.0.len() {
            // The direction alternates, so that no lane always follows the same one.
            let at = if round.is_multiple_of(2) { at } else { self.0.len() - 1 - at };
            self.0.get_mut(at).context("no such lane")?.turn(calls)?;
        }
        Ok(())
    }

    /// A row for each lane.
    pub fn rows(&self) -> Vec<Row> {
        self.0.iter().map(|lane| row(lane.name, &lane.seen, self.seen_of(lane.baseline))).collect()
    }

    /// The samples of the lane with this name.
    pub fn seen_of(&self, name: &str) -> Option<&Seen> {
        self.0.iter().find(|lane| lane.name == name).map(|lane| &lane.seen)
    }

    /// The value for this goal: the p50 of a lane less that of its baseline, in µs, as the median
    /// over all rounds.
    pub fn above_baseline(&self, goal: Goal, name: &str) -> Option<Measured> {
        let lane = self.0.iter().find(|lane| lane.name == name)?;
        let baseline = self.seen_of(lane.baseline)?;
        let value = lane.seen.p50.minus(&baseline.p50).median()?;
        Some(Measured { goal, value, ratio: lane.seen.ratio(baseline) })
    }
}

impl Lane {
    fn turn(&mut self, calls: usize) -> anyhow::Result<()> {
        let mut link = self.link.borrow_mut();
        let mut request = Vec::new();
        let mut took = Samples::default();
        let ran = process::cpu_time(link.process_id())?;
        for id in (0_u64..).take(WARM_UP) {
            link.ask(self.ask, id, &mut request)?;
        }
        for id in (100_000_u64..).take(calls) {
            took.push_us(link.ask(self.ask, id, &mut request)?);
        }
        let ran = process::cpu_time(link.process_id())?.saturating_sub(ran);
        self.seen.cpu.push(ran.as_secs_f64() * 1e6 / (WARM_UP + calls) as f64);
        self.seen.add(&took);
        Ok(())
    }
}

impl Seen {
    fn ratio(&self, baseline: &Self) -> Option<f64> {
        Some(self.all.median()? / baseline.all.median()?)
    }

    /// Adds a round.
    pub fn add(&mut self, round: &Samples) {
        self.all.extend(round);
        round.median().into_iter().for_each(|median| self.p50.push(median));
    }
}

/// The row of these samples next to their baseline's. A baseline is not compared with itself.
pub fn row(name: &str, seen: &Seen, baseline: Option<&Seen>) -> Row {
    let baseline = baseline.filter(|baseline| !std::ptr::eq(*baseline, seen));
    let p50 = seen.all.median();
    let p99 = seen.all.quantile(0.99);
    let above = baseline.map(|baseline| seen.p50.minus(&baseline.p50)).unwrap_or_default();
    let ratio = baseline.and_then(|baseline| seen.ratio(baseline));
    let values = vec![p50, p99, above.median(), above.quantile(0.25), above.quantile(0.75), ratio, seen.cpu.median()];
    Row { name: name.to_owned(), values }
}
