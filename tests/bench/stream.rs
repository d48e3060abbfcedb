//! A conversation that does not wait for one answer before it makes the next request. Up to a
//! window of calls are outstanding; one thread writes, another reads. It checks every answer, and
//! that each call has exactly one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::frame::{Ask, Reply};
use crate::link::Link;
use crate::samples::Samples;

/// The request, the number of calls, and how many are outstanding at once.
#[derive(Clone, Copy)]
pub struct Stream {
    /// The request.
    pub ask: Ask,
    /// Calls in all.
    pub calls: usize,
    /// Calls outstanding at most.
    pub window: usize,
}

/// The time each call was sent, in nanoseconds after the first.
struct Sent {
    begun: Instant,
    at: Vec<AtomicU64>,
}

impl Sent {
    fn new(calls: usize) -> Self {
        Self { begun: Instant::now(), at: std::iter::repeat_with(AtomicU64::default).take(calls).collect() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn mark(&self, calls: std::ops::Range<usize>) {
        let now = self.now();
        // The reader learns of the call through the subject, after this store.
        self.at.get(calls).unwrap_or_default().iter().for_each(|at| at.store(now, Ordering::Relaxed));
    }

    fn since(&self, call: usize) -> Duration {
        let sent = self.at.get(call).map_or(0, |at| at.load(Ordering::Relaxed));
        Duration::from_nanos(self.now().saturating_sub(sent))
    }
}

/// Holds the conversation. Returns the time of each answer, in µs, counted from when its call was
/// written.
///
/// # Errors
/// An answer is wrong, missing or given twice.
pub fn converse(link: &mut Link, stream: Stream) -> anyhow::Result<Samples> {
    let window = Window::new(stream.window);
    let sent = Sent::new(stream.calls);
    let (input, output) = link.halves();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_calls(input, stream, &sent, &window));
        let read = read_answers(output, stream, &sent, &window);
        // A writer that waits for a free place must end if no answer will make one.
        window.close();
        let written = writer.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the writer panicked")));
        let took = read?;
        written.map(|()| took)
    })
}

fn write_calls(input: &mut File, stream: Stream, sent: &Sent, window: &Window) -> anyhow::Result<()> {
    let mut begun = 0;
    let mut block = Vec::new();
    while begun < stream.calls {
        let Some(room) = window.take(stream.calls - begun) else { return Ok(()) };
        block.clear();
        for id in (begun as u64..).take(room) {
            stream.ask.write(id, &mut block)?;
        }
        sent.mark(begun..begun + room);
        begun += room;
        input.write_all(&block)?;
    }
    Ok(())
}

fn read_answers(output: &mut BufReader<File>, stream: Stream, sent: &Sent, window: &Window) -> anyhow::Result<Samples> {
    let mut line = Vec::new();
    let mut answered = vec![false; stream.calls];
    let mut took = Samples::default();
    let mut left = stream.calls;
    let mut unseen = 0;
    while left > 0 {
        line.clear();
        ensure!(output.read_until(b'\n', &mut line)? > 0, "it ended, {left} answers too early");
        let Some(id) = check(stream.ask, &line)? else { continue };
        let call = usize::try_from(id)?;
        let place = answered.get_mut(call).context("an answer to no call")?;
        ensure!(!std::mem::replace(place, true), "two answers to call {id}");
        took.push_us(sent.since(call));
        left -= 1;
        unseen += 1;
        // Places are freed once for all answers that arrived together.
        if output.buffer().is_empty() {
            window.give(std::mem::take(&mut unseen));
        }
    }
    Ok(took)
}

/// Checks a line. Returns the id of the call if the line is an answer.
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

/// The number of calls that may still be sent.
struct Window {
    free: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Window {
    fn new(calls: usize) -> Self {
        Self { free: Mutex::new(Some(calls)), changed: Condvar::new() }
    }

    /// Waits for free places and takes them all, but at most `most`. `None` once closed.
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
