//! The time of a serial call. It is shown next to a bare round trip of the same line with a native
//! child, and next to a process spawned for each call. The scheduler places the threads.

use std::time::Instant;

use crate::frame::{Ask, Era, Tool};
use crate::goals::Goal;
use crate::lane::{self, Lane, Lanes, Seen, Shared};
use crate::link::{Link, Wire};
use crate::native::Native;
use crate::options::Options;
use crate::report::Section;
use crate::samples::Samples;
use crate::serving::Serving;
use crate::subject::Subject;

const NOTE: &str = "\
above bare: the median, over all rounds, of the round's p50 less that of the bare round trip in the same round; q1, q3: its quartiles.
its CPU: what the threads of host and sandbox processes ran for each call. Each call has an instance of its own and every limit.
prewarm = 0: no instance is made before its call comes; otherwise as many wait as wait by default.
A thread that is woken on the same CPU answers tens of µs sooner than one on another CPU, and the scheduler may choose one for
the bare pipe and the other for toolcell (then q1 and q3 lie far apart): the next table takes that choice away.";

/// Processes spawned in each round. One takes as long as many calls.
const SPAWNED: usize = 10;

const PIPE: &str = "bare pipe";
const SOCKET: &str = "bare socketpair";
const FRESH: &str = "echo, legacy, prewarm = 0";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(40, 2);
    let calls = options.count(250, 20);
    let serving = Serving::examples()?;
    let fresh = Serving::fresh()?;
    let mut lanes = lanes(&serving, &fresh)?;
    let mut spawned = Seen::default();
    for round in 0..rounds {
        lanes.round(round, calls)?;
        spawned.add(&spawn()?);
    }
    let mut rows = lanes.rows();
    rows.push(lane::row("a native process for each call", &spawned, lanes.seen_of(PIPE)));
    let measured = lanes.above_baseline(Goal::EchoAboveBare, FRESH).into_iter().collect();
    let title = "Serial: one call after another, answer awaited";
    Ok(Section { title, note: NOTE.to_owned(), columns: lane::COLUMNS, rows, measured })
}

fn lanes(serving: &Serving, fresh: &Serving) -> anyhow::Result<Lanes> {
    use {Era::Legacy, Era::Modern, Tool::Echo, Tool::Tiny, Wire::Pipes, Wire::Sockets};
    let pipes = lane::server(&serving.subject(), Pipes, &[Tiny, Echo])?;
    let sockets = lane::server(&serving.subject(), Sockets, &[Tiny, Echo])?;
    let audited = lane::server(&serving.audited(), Pipes, &[Tiny, Echo])?;
    let fresh = lane::server(&fresh.subject(), Pipes, &[Tiny, Echo])?;
    let lane =
        |name, link: &Shared, ask, baseline| Lane { name, link: link.clone(), ask, baseline, seen: Seen::default() };
    Ok(Lanes::new(vec![
        lane(PIPE, &lane::bare(Pipes)?, Ask::Line, PIPE),
        lane(SOCKET, &lane::bare(Sockets)?, Ask::Line, SOCKET),
        lane("ping", &pipes, Ask::Ping, PIPE),
        lane("tiny, legacy", &pipes, Ask::Call(Tiny, Legacy), PIPE),
        lane("tiny, modern", &pipes, Ask::Call(Tiny, Modern), PIPE),
        lane("echo, legacy", &pipes, Ask::Call(Echo, Legacy), PIPE),
        lane("echo, modern", &pipes, Ask::Call(Echo, Modern), PIPE),
        lane("tiny, legacy, prewarm = 0", &fresh, Ask::Call(Tiny, Legacy), PIPE),
        lane(FRESH, &fresh, Ask::Call(Echo, Legacy), PIPE),
        lane("echo, legacy, audited", &audited, Ask::Call(Echo, Legacy), PIPE),
        lane("tiny, legacy, socketpair", &sockets, Ask::Call(Tiny, Legacy), SOCKET),
        lane("echo, legacy, socketpair", &sockets, Ask::Call(Echo, Legacy), SOCKET),
    ]))
}

/// A process for each call, as a user without a server would do. The time runs from before the
/// process is spawned until it has ended.
fn spawn() -> anyhow::Result<Samples> {
    let once = Subject::native(Native::Once)?;
    let mut request = Vec::new();
    let mut took = Samples::default();
    for id in (0_u64..).take(SPAWNED) {
        let begun = Instant::now();
        let mut link = Link::start(&once, Wire::Pipes)?;
        link.ask(Ask::Line, id, &mut request)?;
        link.ends()?;
        took.push_us(begun.elapsed());
    }
    Ok(took)
}
