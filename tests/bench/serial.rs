//! One call after another: how long the answer takes, beside a bare round trip of the same line with a native child.
//! Everything takes turns in short rounds, so that what the machine does meanwhile falls on all alike.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Context as _;

use crate::frame::{Ask, Era, Tool};
use crate::goals::Goal;
use crate::link::{Link, Wire, warm_up};
use crate::native::Native;
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::subject::Subject;

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "p99_us", heading: "p99 µs", decimals: 1 },
    Column { key: "above_bare_us", heading: "above bare", decimals: 1 },
    Column { key: "above_bare_q1_us", heading: "q1", decimals: 1 },
    Column { key: "above_bare_q3_us", heading: "q3", decimals: 1 },
    Column { key: "ratio", heading: "× bare", decimals: 2 },
    Column { key: "cpu_us", heading: "its CPU µs", decimals: 1 },
];

const NOTE: &str = "\
above bare: the median, over all rounds, of the round's p50 less that of the bare round trip in the same round; q1, q3: its quartiles.
its CPU: what the threads of the process ran for each call. Each call has a fresh instance and every limit.";

/// Calls before those that count, in every turn: caches and the scheduler have seen others meanwhile.
const WARM_UP: usize = 10;

/// Processes that are spawned in each round; one takes as long as many calls.
const SPAWNED: usize = 10;

type Shared = Rc<RefCell<Link>>;

/// One thing to ask of one process.
struct Lane {
    name: &'static str,
    link: Shared,
    ask: Ask,
    /// What it is compared with.
    wire: Wire,
    seen: Seen,
}

/// What was seen of it.
#[derive(Default)]
struct Seen {
    /// Every call, µs.
    all: Samples,
    /// The p50 of each round, µs.
    p50: Samples,
    /// CPU time of the process for each call, by round, µs.
    cpu: Samples,
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let (rounds, calls) = (options.count(40, 2), options.count(250, 20));
    let serving = Serving::examples()?;
    let mut lanes = lanes(&serving)?;
    let mut spawned = Seen::default();
    for round in 0..rounds {
        for at in 0..lanes.len() {
            // There and back, so that none is always behind the same one.
            let at = if round % 2 == 0 { at } else { lanes.len() - 1 - at };
            lanes.get_mut(at).context("no such lane")?.turn(calls)?;
        }
        spawn(&mut spawned)?;
    }
    Ok(section(&lanes, &spawned))
}

fn lanes(serving: &Serving) -> anyhow::Result<Vec<Lane>> {
    use {Era::Legacy, Era::Modern, Tool::Echo, Tool::Tiny, Wire::Pipes, Wire::Sockets};
    let native = Subject::native(Native::Echo)?;
    let bare = |wire| anyhow::Ok(Rc::new(RefCell::new(Link::start(&native, wire)?)));
    let toolcell = |subject: &Subject, wire| {
        let mut link = Link::open(subject, wire)?;
        warm_up(&mut link, &[Tiny, Echo], 50)?;
        anyhow::Ok(Rc::new(RefCell::new(link)))
    };
    let (pipes, sockets) = (toolcell(&serving.subject(), Pipes)?, toolcell(&serving.subject(), Sockets)?);
    let audited = toolcell(&serving.audited(), Pipes)?;
    let lane = |name, link: &Shared, ask, wire| Lane { name, link: link.clone(), ask, wire, seen: Seen::default() };
    Ok(vec![
        lane(BARE_PIPE, &bare(Pipes)?, Ask::Line, Pipes),
        lane(BARE_SOCKET, &bare(Sockets)?, Ask::Line, Sockets),
        lane("ping", &pipes, Ask::Ping, Pipes),
        lane("tiny, legacy", &pipes, Ask::Call(Tiny, Legacy), Pipes),
        lane("tiny, modern", &pipes, Ask::Call(Tiny, Modern), Pipes),
        lane(ECHO, &pipes, Ask::Call(Echo, Legacy), Pipes),
        lane("echo, modern", &pipes, Ask::Call(Echo, Modern), Pipes),
        lane("echo, legacy, audited", &audited, Ask::Call(Echo, Legacy), Pipes),
        lane("tiny, legacy, socketpair", &sockets, Ask::Call(Tiny, Legacy), Sockets),
        lane("echo, legacy, socketpair", &sockets, Ask::Call(Echo, Legacy), Sockets),
    ])
}

const BARE_PIPE: &str = "bare pipe";
const BARE_SOCKET: &str = "bare socketpair";
const ECHO: &str = "echo, legacy";

impl Lane {
    fn turn(&mut self, calls: usize) -> anyhow::Result<()> {
        let mut link = self.link.borrow_mut();
        let (mut request, mut took) = (Vec::new(), Samples::default());
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
    fn add(&mut self, round: &Samples) {
        self.all.extend(round);
        round.median().into_iter().for_each(|median| self.p50.push(median));
    }
}

/// What a user does instead of keeping a server: a process for each call. From before it is spawned until it is gone.
fn spawn(seen: &mut Seen) -> anyhow::Result<()> {
    let once = Subject::native(Native::Once)?;
    let (mut request, mut took) = (Vec::new(), Samples::default());
    for id in (0_u64..).take(SPAWNED) {
        let begun = std::time::Instant::now();
        let mut link = Link::start(&once, Wire::Pipes)?;
        link.ask(Ask::Line, id, &mut request)?;
        link.ends()?;
        took.push_us(begun.elapsed());
    }
    seen.add(&took);
    Ok(())
}

fn section(lanes: &[Lane], spawned: &Seen) -> Section {
    let seen_of = |name| lanes.iter().find(|lane| lane.name == name).map(|lane| &lane.seen);
    let bare = |wire| match wire {
        Wire::Pipes => seen_of(BARE_PIPE),
        Wire::Sockets => seen_of(BARE_SOCKET),
    };
    let mut rows: Vec<Row> = lanes.iter().map(|lane| row(lane.name, &lane.seen, bare(lane.wire))).collect();
    rows.push(row("a native process for each call", spawned, bare(Wire::Pipes)));
    let echo = seen_of(ECHO).zip(bare(Wire::Pipes));
    let above = echo.and_then(|(echo, bare)| echo.p50.minus(&bare.p50).median());
    let measured = above.map(|above| (Goal::EchoAboveBare, above)).into_iter().collect();
    let title = "Serial: one call after another, answer awaited";
    Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured }
}

fn row(name: &str, seen: &Seen, bare: Option<&Seen>) -> Row {
    let (p50, p99) = (seen.all.median(), seen.all.quantile(0.99));
    // A baseline is not compared with itself.
    let bare = bare.filter(|bare| !std::ptr::eq(*bare, seen));
    let above = bare.map(|bare| seen.p50.minus(&bare.p50)).unwrap_or_default();
    let ratio = bare.and_then(|bare| bare.all.median()).zip(p50).map(|(bare, p50)| p50 / bare);
    let values = vec![p50, p99, above.median(), above.quantile(0.25), above.quantile(0.75), ratio, seen.cpu.median()];
    Row { name: name.to_owned(), values }
}
