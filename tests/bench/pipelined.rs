//! Many calls at once: how many are answered in a second. One thread of the client writes, another one reads, as a client
//! that never waits does; every answer is checked, and that each call has exactly one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::frame::{Ask, Era, Reply, Tool};
use crate::goals::Goal;
use crate::link::{Link, Wire, warm_up};
use crate::native::Native;
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::subject::Subject;

/// Calls that wait for their answer at most. 64: what a server takes on at once by itself.
const WINDOW: usize = 64;

const COLUMNS: &[Column] = &[
    Column { key: "calls_per_s", heading: "calls/s", decimals: 0 },
    Column { key: "calls_per_s_min", heading: "min", decimals: 0 },
    Column { key: "calls_per_s_max", heading: "max", decimals: 0 },
    Column { key: "cpu_us", heading: "its CPU µs", decimals: 1 },
    Column { key: "client_cpu_us", heading: "client's CPU µs", decimals: 1 },
];

const NOTE: &str = "\
The median of all rounds. The client's threads run on the same CPUs; what they take for each call is in the last column.";

/// One thing to ask of a process of its own.
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
    let (rounds, calls) = (options.count(9, 1), options.count(20_000, 1_000));
    let serving = Serving::examples()?;
    let toolcell = |name, tool, era, goal| {
        let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
        warm_up(&mut link, &[tool], 50)?;
        anyhow::Ok(Lane::new(name, link, Ask::Call(tool, era), goal))
    };
    let bare = Link::start(&Subject::native(Native::Echo)?, Wire::Pipes)?;
    let mut lanes = [
        Lane::new("bare pipe", bare, Ask::Line, None),
        toolcell("tiny, legacy", Tiny, Legacy, Some(Goal::TinyPipelined))?,
        toolcell("echo, legacy", Echo, Legacy, Some(Goal::EchoPipelined))?,
        toolcell("echo, modern", Echo, Modern, None)?,
    ];
    for _ in 0..rounds {
        for lane in &mut lanes {
            lane.turn(calls)?;
        }
    }
    let measured = lanes.iter().filter_map(|lane| lane.goal.zip(lane.rate.median())).collect();
    let rows = lanes.iter().map(Lane::row).collect();
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
        let (ran, client_ran, begun) = (process::cpu_time(process)?, own_cpu_time(), Instant::now());
        let done = converse(&mut self.link, self.ask, calls).with_context(|| self.name);
        let took = begun.elapsed();
        done.with_context(|| self.link.said())?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
        self.rate.push(calls as f64 / took.as_secs_f64());
        self.cpu.push(each(process::cpu_time(process)?.saturating_sub(ran)));
        self.client_cpu.push(each(own_cpu_time().saturating_sub(client_ran)));
        Ok(())
    }

    fn row(&self) -> Row {
        let values = vec![
            self.rate.median(),
            self.rate.quantile(0.0),
            self.rate.quantile(1.0),
            self.cpu.median(),
            self.client_cpu.median(),
        ];
        Row { name: self.name.to_owned(), values }
    }
}

/// What all threads of this program have run.
fn own_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Sends that many calls and takes their answers.
fn converse(link: &mut Link, ask: Ask, calls: usize) -> anyhow::Result<()> {
    let window = Window::new();
    let (input, output) = link.halves();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_calls(input, ask, calls, &window));
        let read = read_answers(output, ask, calls, &window);
        // A writer that waits for room ends, if no answer will make any.
        window.close();
        let written = writer.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the writer panicked")));
        read.and(written)
    })
}

fn write_calls(input: &mut File, ask: Ask, calls: usize, window: &Window) -> anyhow::Result<()> {
    let (mut sent, mut block) = (0, Vec::new());
    while sent < calls {
        let Some(room) = window.take(calls - sent) else { return Ok(()) };
        block.clear();
        for id in (sent as u64..).take(room) {
            ask.write(id, &mut block)?;
        }
        sent += room;
        input.write_all(&block)?;
    }
    Ok(())
}

fn read_answers(output: &mut BufReader<File>, ask: Ask, calls: usize, window: &Window) -> anyhow::Result<()> {
    let (mut line, mut answered) = (Vec::new(), vec![false; calls]);
    let (mut left, mut unseen) = (calls, 0);
    while left > 0 {
        line.clear();
        ensure!(output.read_until(b'\n', &mut line)? > 0, "it ended, {left} answers too early");
        let Some(id) = check(ask, &line)? else { continue };
        let place = usize::try_from(id).ok().and_then(|id| answered.get_mut(id)).context("an answer to no call")?;
        ensure!(!std::mem::replace(place, true), "two answers to call {id}");
        left -= 1;
        unseen += 1;
        // Room is made once for all answers that came together.
        if output.buffer().is_empty() {
            window.give(std::mem::take(&mut unseen));
        }
    }
    Ok(())
}

/// Checks a line; gives the id of the call that it answers, if it is an answer.
fn check(ask: Ask, line: &[u8]) -> anyhow::Result<Option<u64>> {
    let reply = Reply::read(line)?;
    match (ask, reply.id) {
        (_, None) => {}
        (Ask::Line, Some(id)) => ask.check(id, line)?,
        (_, Some(id)) => {
            ask.check_reply(id, &reply).with_context(|| String::from_utf8_lossy(line).into_owned())?;
        }
    }
    Ok(reply.id)
}

/// How many more calls may be sent.
struct Window {
    free: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Window {
    fn new() -> Self {
        Self { free: Mutex::new(Some(WINDOW)), changed: Condvar::new() }
    }

    /// Waits for room, and takes all there is, but no more than this. `None` once closed.
    fn take(&self, most: usize) -> Option<usize> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.changed.wait_while(free, |free| *free == Some(0)).unwrap_or_else(PoisonError::into_inner);
        let taken = (*free)?.min(most);
        *free = free.map(|free| free - taken);
        Some(taken)
    }

    fn give(&self, room: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.map(|free| free + room);
        drop(free);
        self.changed.notify_one();
    }

    fn close(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_one();
    }
}
