//! The soak itself: rounds of requests, and a check of the process between them, when no call is
//! open.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use toolcell_tests::Watch;

use crate::calls::{self, Era, Kind, Request, Wanted};
use crate::killing;
use crate::ledger::{Ledger, Open};
use crate::options::Options;
use crate::process::Held;
use crate::random::Random;
use crate::report::Report;
use crate::serving;

/// Rounds of a soak, unless they would be too short or too long.
const ROUNDS: u32 = 24;

/// The shortest and the longest round.
const ROUND: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Requests without an answer at most. Fewer than the host runs at once, so that it refuses no
/// call.
const WINDOW: usize = 40;

/// Times that the greediest calls are made together before the first round. The host keeps a
/// hundred memories ready, half of them for each of two threads. Only calls that run together fill
/// them.
const FILLS: usize = 4;

/// Endless calls that are open at once at most: four for each of two workers.
const ENDLESS_MAX: usize = 8;

/// Requests after an endless call before it is cancelled, at most.
const CANCELLED_WITHIN: u64 = 60;

/// Time that answers may take once no more requests are sent. On an idle machine they take a
/// second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The id of the opening, which no request reaches.
const OPENING: u64 = 1 << 40;

/// A line that is not JSON.
const UNREADABLE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\n";

/// Bytes of the host's stderr that are shown if it fails.
const SAID_BYTES: u64 = 8 * 1024;

/// Soaks.
///
/// # Errors
/// The host does not start, or the run cannot be made. Errors of the host are in the report.
pub fn soak(options: &Options) -> anyhow::Result<Report> {
    // A round ends with one wait for answers. A host that does not answer is given up there.
    let patience = options.duration * 2 + PATIENCE * 4;
    let _watch = Watch::for_at_most(patience, move || {
        crate::complain(&format!("the host hangs: no end after {} s", patience.as_secs()));
    });
    let folder = serving::folder(options.walls);
    let mut stderr = tempfile::tempfile()?;
    let mut child = Ended(
        serving::command(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(stderr.try_clone()?))
            .spawn()?,
    );
    let input = child.0.stdin.take().context("no stdin")?;
    let output = child.0.stdout.take().context("no stdout")?;
    let shared = Shared::default();
    shared.ledger().kills = options.kills;
    let begun = Instant::now();
    let process = child.0.id();
    let has_ended = AtomicBool::new(false);
    let (held, kills) = std::thread::scope(|scope| {
        scope.spawn(|| shared.read(output));
        let killing = options
            .kills
            .then(|| scope.spawn(|| killing::kill_each_second(process, &folder, options.seed, &has_ended)));
        let random = Random::new(options.seed);
        // Dropping the client closes the host's stdin. The reading thread ends with the host's
        // stdout.
        let mut client = Client { shared: &shared, input, random, next: 0, endless: Vec::new() };
        let held = client.run(options, process);
        has_ended.store(true, Ordering::Release);
        let kills = killing.map_or(0, |killing| killing.join().unwrap_or_default());
        drop(client);
        (held, kills)
    });
    let status = child.0.wait()?;
    let took = begun.elapsed();
    if !status.success() || held.is_err() {
        crate::complain(&format!("the host ended with {status}; its stderr ends with:\n{}", end_of(&mut stderr)?));
    }
    let ledger = std::mem::take(&mut *shared.ledger());
    Ok(Report {
        seed: options.seed,
        took,
        ledger,
        held: held?,
        exit: status.code(),
        kills,
        expects_kills: options.kills,
    })
}

/// A process. Dropping this ends it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The state that the writing and the reading thread share.
#[derive(Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    changed: Condvar,
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, output: ChildStdout) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while matches!(output.read_until(b'\n', &mut line), Ok(1..)) {
            self.ledger().take(&line);
            self.changed.notify_one();
            line.clear();
        }
        self.ledger().ended = true;
        self.changed.notify_one();
    }

    /// Waits until this holds. False if it does not in time, or can no longer do so.
    fn wait_until(&self, holds: impl Fn(&Ledger) -> bool) -> bool {
        let waits = |ledger: &mut Ledger| !holds(ledger) && !ledger.ended;
        let waited = self.changed.wait_timeout_while(self.ledger(), PATIENCE, waits);
        let (ledger, _) = waited.unwrap_or_else(PoisonError::into_inner);
        holds(&ledger)
    }
}

/// The client that sends.
struct Client<'s> {
    shared: &'s Shared,
    input: ChildStdin,
    random: Random,
    /// The id of the next request.
    next: u64,
    endless: Vec<Endless>,
}

/// A running endless call.
struct Endless {
    id: u64,
    era: Era,
    /// The id of the request before which it is cancelled.
    due: u64,
}

impl Client<'_> {
    /// Runs all rounds. Returns the resources of the process after each.
    fn run(&mut self, options: &Options, process: u32) -> anyhow::Result<Vec<Held>> {
        let begun = Instant::now();
        let round = (options.duration / ROUNDS).clamp(ROUND.0, ROUND.1);
        let opening = Open::new(Kind::Other, Era::Legacy, Wanted::Member("serverInfo"), "initialize");
        self.shared.ledger().enter(OPENING, opening);
        self.input.write_all(&calls::opening(OPENING))?;
        self.fill()?;
        let mut held = Vec::new();
        while begun.elapsed() < options.duration {
            let end = Instant::now() + round;
            let mut goes_on = true;
            while goes_on && Instant::now() < end {
                goes_on = self.step()?;
            }
            if !self.settle()? {
                self.shared.ledger().give_up();
                break;
            }
            held.push(Held::by(process)?);
        }
        Ok(held)
    }

    /// Fills the resources that the host keeps for later calls. Otherwise they would grow for as
    /// long as chance brings more greedy calls together than before.
    fn fill(&mut self) -> anyhow::Result<()> {
        for _ in 0..FILLS {
            for kind in 0..Request::greedy(&mut self.random).len() {
                for _ in 0..WINDOW {
                    let id = self.next;
                    self.next += 1;
                    let request = Request::greedy(&mut self.random).into_iter().nth(kind);
                    self.send(request.context("no such call")?, id)?;
                }
                self.shared.wait_until(|ledger| ledger.owed() == 0);
            }
        }
        Ok(())
    }

    /// Sends one request, once the window has a free place. False if it never gets one.
    fn step(&mut self) -> anyhow::Result<bool> {
        let room = WINDOW + self.endless.len();
        if !self.shared.wait_until(|ledger| ledger.owed() < room) {
            return Ok(false);
        }
        let id = self.next;
        self.next += 1;
        self.take_back(|endless| endless.due <= id)?;
        if self.random.below(40) == 0 {
            self.shared.ledger().enter_unreadable();
            self.input.write_all(UNREADABLE)?;
        } else if self.endless.len() < ENDLESS_MAX && self.random.below(6) == 0 {
            let request = Request::endless(&mut self.random);
            let due = id + 1 + self.random.below(CANCELLED_WITHIN);
            self.endless.push(Endless { id, era: request.era, due });
            self.send(request, id)?;
        } else {
            let request = Request::at_random(&mut self.random, id);
            let raced = (request.kind == Kind::Raced).then_some(request.era);
            self.send(request, id)?;
            if let Some(era) = raced {
                self.input.write_all(&calls::cancellation(era, id))?;
            }
        }
        Ok(true)
    }

    fn send(&mut self, request: Request, id: u64) -> anyhow::Result<()> {
        self.shared.ledger().enter(id, Open::new(request.kind, request.era, request.wanted.clone(), request.name()));
        Ok(self.input.write_all(&request.line(id))?)
    }

    /// Cancels the endless calls that are due.
    fn take_back(&mut self, is_due: impl Fn(&Endless) -> bool) -> anyhow::Result<()> {
        let (due, running) = std::mem::take(&mut self.endless).into_iter().partition(is_due);
        self.endless = running;
        for Endless { id, era, .. } in due {
            self.shared.ledger().cancel(id);
            self.input.write_all(&calls::cancellation(era, id))?;
        }
        Ok(())
    }

    /// Ends the round: cancels the endless calls and waits until every other request is answered.
    /// False if one is not.
    fn settle(&mut self) -> anyhow::Result<bool> {
        self.take_back(|_| true)?;
        let ping = self.next;
        self.next += 1;
        self.shared.ledger().enter(ping, Open::new(Kind::Other, Era::Legacy, Wanted::Empty, "ping"));
        self.input.write_all(&calls::ping(ping))?;
        let is_settled = self.shared.wait_until(|ledger| ledger.owed() == 0);
        // The host has read every cancellation before this ping. A call that it has not answered by
        // now gets no answer.
        self.shared.ledger().settle_raced();
        Ok(is_settled)
    }
}

/// The end of the process's stderr.
fn end_of(stderr: &mut File) -> anyhow::Result<String> {
    let length = stderr.seek(SeekFrom::End(0))?;
    stderr.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES)))?;
    let mut said = Vec::new();
    stderr.read_to_end(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
