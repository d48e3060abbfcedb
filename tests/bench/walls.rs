//! Sandbox processes: what one takes to start, what a second CPU brings to interpreters, and what
//! happens to calls next to another group that is killed or loops.

use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use crate::frame::{Ask, Era, Reply, Tool, legacy_call};
use crate::goals::{Goal, Measured};
use crate::languages;
use crate::link::{Link, Wire, first_call, warm_up};
use crate::loops;
use crate::options::Options;
use crate::placed;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::{Serving, prefix};

const COLUMNS: &[Column] = &[
    Column { key: "p50_ms", heading: "p50 ms", decimals: 3 },
    Column { key: "p99_ms", heading: "p99 ms", decimals: 3 },
    Column { key: "max_ms", heading: "max ms", decimals: 3 },
    Column { key: "calls_per_s", heading: "calls/s", decimals: 0 },
    Column { key: "ratio", heading: "ratio", decimals: 2 },
];

const NOTE: &str = "\
Started for a call: the process of a group was killed; the next call of it, less a later one. Interpreters: 16 calls outstanding; ratio: both CPUs beside one
that toolcell and its processes share, the client placed by the scheduler. Killed: SIGKILL to the process of another group, which the next call starts again.
Calls are those of echo by one client, one after the other; each has to be answered rightly.";

/// Calls of an interpreter outstanding.
const WINDOW: usize = 16;

/// Interval at which another group's process is killed.
const KILLS_EVERY: Duration = Duration::from_millis(100);

/// Calls after which a process stands out by what it ran.
const CALLS_TO_TELL: usize = 50;

/// The first id of calls of the component whose process is killed.
const VICTIM_ID: u64 = 1 << 42;

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    started(options, &mut rows, &mut measured)?;
    interpreters(options, &mut rows, &mut measured)?;
    beside_kills(options, &mut rows, &mut measured)?;
    beside_loops(options, &mut rows, &mut measured)?;
    let title = "Sandbox processes: starts, cores, and calls beside another group";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

fn times(name: String, took: &Samples) -> Row {
    Row { name, values: vec![took.median(), took.quantile(0.99), took.quantile(1.0), None, None] }
}

/// Calls after which a process has to be started, since the one before was killed.
fn started(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let serving = Serving::granted_copies(1)?;
    serving.compile()?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    let tool = format!("{}echo", prefix(0));
    let mut first = Samples::default();
    let mut took = Samples::default();
    for _ in 0..options.count(20, 2) {
        kill(process_of(&mut link, &tool)?)?;
        // The host has seen its end by then.
        std::thread::sleep(KILLS_EVERY / 2);
        let mut call = || {
            let begun = Instant::now();
            first_call(&mut link, &tool, "started").map(|()| begun.elapsed().as_secs_f64() * 1e3)
        };
        let with_start = call()?;
        let later = call()?.min(call()?);
        first.push(with_start);
        took.push(with_start - later);
    }
    measured.extend(took.median().map(|p50| Measured::alone(Goal::SandboxStart, p50)));
    rows.push(times("first call of a group".to_owned(), &first));
    rows.push(times("  of that, a process started".to_owned(), &took));
    Ok(())
}

/// The process that runs the calls of this tool: the one that they cost most.
fn process_of(link: &mut Link, tool: &str) -> anyhow::Result<u32> {
    let others = process::family(link.process_id()).into_iter().skip(1);
    let before: Vec<_> = others.filter_map(|other| Some((other, process::cpu_time(other).ok()?))).collect();
    for _ in 0..CALLS_TO_TELL {
        first_call(link, tool, "to be told apart")?;
    }
    let ran = |(other, before): &(u32, Duration)| process::cpu_time(*other).unwrap_or_default().saturating_sub(*before);
    Ok(before.iter().max_by_key(|one| ran(one)).context("no sandbox process")?.0)
}

fn kill(process: u32) -> anyhow::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).context("a process id")?;
    Ok(kill_process(process, Signal::KILL)?)
}

/// Calls per second of interpreters, with one CPU and with two.
fn interpreters(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let before = sched_getaffinity(None)?;
    let cpus = placed::allowed(&before);
    let Some(first) = cpus.first().copied().filter(|_| cpus.len() > 1) else { return Ok(()) };
    for (language, goal) in [("Python", Goal::PythonCores), ("JavaScript", Goal::JavaScriptCores)] {
        let Some(example) = languages::served(language)? else {
            rows.push(Row {
                name: format!("{language} (not built: `make guests languages`)"),
                values: vec![None; COLUMNS.len()],
            });
            continue;
        };
        let subject = example.subject();
        example.compile()?;
        placed::stay_on(first)?;
        let one = Link::open(&subject, Wire::Pipes);
        sched_setaffinity(None, &before)?;
        let mut one = one?;
        let mut both = Link::open(&subject, Wire::Pipes)?;
        let request = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": example.tool, "arguments": example.arguments}});
        let calls = options.count(400, 20);
        let mut one_rate = Samples::default();
        let mut both_rate = Samples::default();
        // The first round starts further processes.
        for round in 0..=options.count(5, 1) {
            for (link, rate) in [(&mut one, &mut one_rate), (&mut both, &mut both_rate)] {
                let per_second = stream(link, calls, &request)?;
                if round > 0 {
                    rate.push(per_second);
                }
            }
        }
        let ratio = one_rate.median().zip(both_rate.median()).map(|(one, both)| both / one);
        measured.extend(ratio.filter(|_| !options.quick).map(|ratio| Measured::alone(goal, ratio)));
        let row =
            |name: String, rate: &Samples, ratio| Row { name, values: vec![None, None, None, rate.median(), ratio] };
        rows.push(row(format!("{language}, one CPU"), &one_rate, None));
        rows.push(row(format!("{language}, two CPUs"), &both_rate, ratio));
    }
    Ok(())
}

/// Calls with [`WINDOW`] outstanding; returns how many are answered in a second.
fn stream(link: &mut Link, calls: usize, request: &dyn Fn(u64) -> Value) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let (input, output) = link.halves();
    let mut sent = 0_u64;
    let mut line = Vec::new();
    for answered in 0..calls as u64 {
        while sent < calls as u64 && sent < answered + WINDOW as u64 {
            input.write_all(format!("{}\n", request(sent)).as_bytes())?;
            sent += 1;
        }
        line.clear();
        ensure!(output.read_until(b'\n', &mut line)? > 0, "it ended");
        let reply: Value = serde_json::from_slice(&line)?;
        let result = reply.get("result");
        let of = |key| result.and_then(|result| result.get(key));
        let is_right = of("isError") != Some(&Value::Bool(true)) && of("content").is_some_and(Value::is_array);
        ensure!(is_right, "a wrong answer: {reply}");
    }
    Ok(calls as f64 / begun.elapsed().as_secs_f64())
}

/// Calls while the process of another group is killed again and again.
fn beside_kills(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let serving = Serving::granted_copies(1)?;
    serving.compile()?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    warm_up(&mut link, &[Tool::Echo], 100)?;
    let idle = loops::ask_for(&mut link, Ask::Call(Tool::Echo, Era::Legacy), options.count(2_000, 50))?;
    rows.push(times("echo, idle".to_owned(), &idle));
    let lasts = Duration::from_millis(options.count(10_000, 3_000) as u64);
    let (took, kills) = Beside { link: &mut link, victim: format!("{}echo", prefix(0)) }.run(lasts)?;
    ensure!(kills > 0, "nothing was killed");
    measured.extend(took.quantile(0.99).map(|p99| Measured::alone(Goal::CallBesideKills, p99)));
    rows.push(times(format!("echo, another group's process killed {kills} times"), &took));
    Ok(())
}

/// A client that calls `echo`, and now and then a component whose process is killed afterwards.
struct Beside<'l> {
    link: &'l mut Link,
    victim: String,
}

impl Beside<'_> {
    /// The times of the calls of `echo`, in ms, and the number of processes that were killed.
    fn run(self, lasts: Duration) -> anyhow::Result<(Samples, usize)> {
        let ask = Ask::Call(Tool::Echo, Era::Legacy);
        let echo = process_of(self.link, Tool::Echo.name())?;
        first_call(self.link, &self.victim, "to be killed")?;
        let spared = [self.link.process_id(), echo];
        let begun = Instant::now();
        let mut killed = Instant::now();
        let mut is_killed = false;
        let mut took = Samples::default();
        let mut request = Vec::new();
        let mut id = 0;
        let mut called = 0_u64;
        let mut answered = 0_u64;
        let mut kills = 0;
        while begun.elapsed() < lasts {
            if is_killed && killed.elapsed() >= KILLS_EVERY / 4 {
                // The host has seen its end by now.
                is_killed = false;
                self.link.send(&victim_call(VICTIM_ID + called, &self.victim))?;
                called += 1;
            } else if killed.elapsed() >= KILLS_EVERY && called == answered {
                (killed, is_killed) = (Instant::now(), true);
                // The process of the called component, and whatever waits to take its place.
                for other in process::family(self.link.process_id()) {
                    if !spared.contains(&other) {
                        kills += usize::from(kill(other).is_ok());
                    }
                }
            }
            request.clear();
            ask.write(id, &mut request)?;
            let sent = Instant::now();
            self.link.send(&request)?;
            while Reply::read(self.link.receive()?)?.id.is_some_and(|id| id >= VICTIM_ID) {
                answered += 1;
            }
            took.push(sent.elapsed().as_secs_f64() * 1e3);
            ask.check(id, self.link.last())?;
            id += 1;
        }
        Ok((took, kills))
    }
}

fn victim_call(id: u64, tool: &str) -> Vec<u8> {
    let mut call: Value = serde_json::from_slice(&legacy_call(id, tool)).unwrap_or_default();
    if let Some(params) = call.get_mut("params").and_then(Value::as_object_mut) {
        params.insert("arguments".to_owned(), json!({"text": "to be killed"}));
    }
    format!("{call}\n").into_bytes()
}

/// Calls while another group computes without end.
fn beside_loops(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let serving = Serving::loops_apart()?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    warm_up(&mut link, &[Tool::Echo], 100)?;
    loops::begin(&mut link)?;
    let took = loops::ask_for(&mut link, Ask::Call(Tool::Echo, Era::Legacy), options.count(1_500, 20))?;
    measured.extend(took.quantile(0.99).map(|p99| Measured::alone(Goal::CallBesideLoopsApart, p99)));
    rows.push(times(format!("echo, {} endless loops in another group", loops::LOOPS), &took));
    Ok(())
}
