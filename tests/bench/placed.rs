//! Serial calls with every thread pinned: all on one CPU, or the client on one and the process on
//! another. The scheduler's own choice lies between the two. These figures stay the same from run
//! to run.

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::frame::{Ask, Era, Tool};
use crate::goals::Goal;
use crate::lane::{self, Lane, Lanes, Seen, Shared};
use crate::link::Wire;
use crate::options::Options;
use crate::report::Section;
use crate::serving::Serving;

const NOTE: &str = "\
one CPU: client, toolcell and its sandbox processes share it; what is above the bare pipe is CPU time and nothing else.
two CPUs: the client has one, toolcell with its sandbox processes another; every wake-up of either crosses over. A process that finds one CPU starts one worker.
prewarm = 0: no instance is made before its call comes. Otherwise several are made after an answer once the last is gone: on one CPU,
one call in as many as are made ahead waits for all of them.";

/// The names of the lanes of one placement.
struct Names {
    bare: &'static str,
    ping: &'static str,
    tiny: &'static str,
    echo: &'static str,
    fresh: &'static str,
}

const ONE: Names = Names {
    bare: "one CPU: bare pipe",
    ping: "one CPU: ping",
    tiny: "one CPU: tiny, legacy",
    echo: "one CPU: echo, legacy",
    fresh: "one CPU: echo, legacy, prewarm = 0",
};

const TWO: Names = Names {
    bare: "two CPUs: bare pipe",
    ping: "two CPUs: ping",
    tiny: "two CPUs: tiny, legacy",
    echo: "two CPUs: echo, legacy",
    fresh: "two CPUs: echo, legacy, prewarm = 0",
};

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly, or threads cannot be placed.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(20, 2);
    let calls = options.count(250, 20);
    let before = sched_getaffinity(None)?;
    let cpus = allowed(&before);
    let first = *cpus.first().context("no CPU may be used")?;
    let serving = Serving::examples()?;
    let fresh = Serving::fresh()?;
    // A child stays on the CPU that its parent had when it started.
    let mut placed = vec![lanes(&serving, &fresh, &ONE, first)?];
    if let Some(second) = cpus.get(1) {
        placed.push(lanes(&serving, &fresh, &TWO, *second)?);
    }
    stay_on(first)?;
    for round in 0..rounds {
        placed.iter_mut().try_for_each(|lanes| lanes.round(round, calls))?;
    }
    sched_setaffinity(None, &before)?;
    let rows = placed.iter().flat_map(Lanes::rows).collect();
    let goals = [(Goal::EchoOnOneCpu, ONE.fresh), (Goal::EchoOnTwoCpus, TWO.fresh)];
    let above = |(goal, name)| placed.iter().find_map(|lanes| lanes.above_baseline(goal, name));
    let measured = goals.into_iter().filter_map(above).collect();
    let title = "Serial, with every thread in its place";
    Ok(Section { title, note: NOTE.to_owned(), columns: lane::COLUMNS, rows, measured })
}

fn lanes(serving: &Serving, fresh: &Serving, names: &Names, cpu: usize) -> anyhow::Result<Lanes> {
    use Tool::{Echo, Tiny};
    stay_on(cpu)?;
    let bare = lane::bare(Wire::Pipes)?;
    let server = lane::server(&serving.subject(), Wire::Pipes, &[Tiny, Echo])?;
    let fresh = lane::server(&fresh.subject(), Wire::Pipes, &[Echo])?;
    let call = |tool| Ask::Call(tool, Era::Legacy);
    let lane =
        |name, link: &Shared, ask| Lane { name, link: link.clone(), ask, baseline: names.bare, seen: Seen::default() };
    Ok(Lanes::new(vec![
        lane(names.bare, &bare, Ask::Line),
        lane(names.ping, &server, Ask::Ping),
        lane(names.tiny, &server, call(Tiny)),
        lane(names.echo, &server, call(Echo)),
        lane(names.fresh, &fresh, call(Echo)),
    ]))
}

/// The CPUs of a set.
pub fn allowed(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Pins this thread, and every child that it starts from now on, to this CPU.
///
/// # Errors
/// The system refuses it.
pub fn stay_on(cpu: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
