//! The server as a client sees it over HTTP. It measures calls and lists with many connections at
//! once, next to a server of the official Rust SDK, and the memory of open streams.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::frame::{self, Ask, Era, Tool};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire};
use crate::load::Load;
use crate::native::Native;
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::subject::Subject;

/// Connections at once.
const CONNECTIONS: usize = 64;

/// Streams to open.
const STREAMS: usize = 1_000;

/// Descriptors that this program needs besides those of the streams.
const DESCRIPTORS_BESIDE: u64 = 200;

const COLUMNS: &[Column] = &[
    Column { key: "per_second", heading: "requests/s", decimals: 0 },
    Column { key: "q1", heading: "q1", decimals: 0 },
    Column { key: "q3", heading: "q3", decimals: 0 },
    Column { key: "p50_ms", heading: "p50 ms", decimals: 2 },
    Column { key: "p99_ms", heading: "p99 ms", decimals: 2 },
    Column { key: "ratio", heading: "× rmcp", decimals: 2 },
    Column { key: "cpu_us", heading: "its CPU µs", decimals: 1 },
    Column { key: "more_mb", heading: "more MB", decimals: 1 },
];

const NOTE: &str = "\
64 kept connections where it says nothing else, HTTP/1.1, modern requests, answers in JSON; the client is one thread on the same machine, which checks every
answer. rmcp: the official SDK's server, without sessions, with the same definitions, in a process of its own. In turns; medians over
rounds; × is the median of the ratio in a round. more MB: resident memory of the host's process for 1,000 open streams.";

/// A server in a process of its own. Dropping this ends it.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts toolcell over HTTP.
    fn start(serving: &Serving) -> anyhow::Result<Self> {
        let subject = serving.subject().with(["--http".as_ref(), "127.0.0.1:0".as_ref()]);
        let mut child = subject.command().stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("no stderr")?);
        let mut line = String::new();
        while !line.contains("://") {
            line.clear();
            ensure!(said.read_line(&mut line)? > 0, "toolcell ended before it served");
        }
        // Its later output is of no interest, but must not block it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let port = line.rsplit(':').next().and_then(|rest| rest.split('/').next()).context("no port")?.parse()?;
        Ok(Self { child, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the child has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that serves.
#[derive(Clone, Copy)]
struct Listening {
    process: u32,
    port: u16,
}

/// One request to one server.
struct Lane {
    name: &'static str,
    ask: Ask,
    process: u32,
    load: Load,
    per_second: Samples,
    ratio: Samples,
    took: Samples,
    cpu: Samples,
}

impl Lane {
    fn new(name: &'static str, ask: Ask, server: Listening, connections: usize) -> anyhow::Result<Self> {
        let load = Load::open(server.port, connections)?;
        let [per_second, ratio, took, cpu] = Default::default();
        Ok(Self { name, ask, process: server.process, load, per_second, ratio, took, cpu })
    }

    fn round(&mut self, time: Duration) -> anyhow::Result<f64> {
        let before = process::cpu_time(self.process)?;
        let round = self.load.round(self.ask, time)?;
        let ran = process::cpu_time(self.process)?.saturating_sub(before);
        self.cpu.push(ran.as_secs_f64() * 1e6 / round.took.len() as f64);
        self.per_second.push(round.per_second);
        self.took.extend(&round.took);
        Ok(round.per_second)
    }

    fn row(&self) -> Row {
        let ms = |share| self.took.quantile(share).map(|us| us / 1e3);
        let [median, q1, q3] = [0.5, 0.25, 0.75].map(|share| self.per_second.quantile(share));
        let values = vec![median, q1, q3, ms(0.5), ms(0.99), self.ratio.median(), self.cpu.median(), None];
        Row { name: self.name.to_owned(), values }
    }
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(20, 2);
    let time = Duration::from_millis(if options.quick { 100 } else { 400 });
    let serving = Serving::examples()?;
    let toolcell = Server::start(&serving)?;
    let mut sdk = Link::start(&Subject::native(Native::Sdk)?, Wire::Pipes)?;
    sdk.send(&definitions(&serving)?)?;
    let port: u16 = std::str::from_utf8(sdk.receive()?)?.trim_end().parse()?;
    let ours = Listening { process: toolcell.child.id(), port: toolcell.port };
    let theirs = Listening { process: sdk.process_id(), port };
    let echo = Ask::Call(Tool::Echo, Era::Modern);
    let mut lanes = [
        Lane::new("tools/call, rmcp, in its process", echo, theirs, CONNECTIONS)?,
        Lane::new("tools/call, Rust guest", echo, ours, CONNECTIONS)?,
        Lane::new("tools/list, rmcp", Ask::List, theirs, CONNECTIONS)?,
        Lane::new("tools/list", Ask::List, ours, CONNECTIONS)?,
        Lane::new("tools/call, rmcp, in its process, 1 connection", echo, theirs, 1)?,
        Lane::new("tools/call, Rust guest, 1 connection", echo, ours, 1)?,
    ];
    for lane in &mut lanes {
        lane.load.round(lane.ask, time)?;
    }
    for _ in 0..rounds {
        for [theirs, ours] in lanes.as_chunks_mut().0 {
            let theirs = theirs.round(time)?;
            let own = ours.round(time)?;
            ours.ratio.push(own / theirs);
        }
    }
    let mut rows: Vec<Row> = lanes.iter().map(Lane::row).collect();
    let [_, call, _, list, ..] = &lanes;
    let mut measured = vec![
        (Goal::HttpCalls, call.per_second.median()),
        (Goal::HttpCallsP99, call.took.quantile(0.99).map(|us| us / 1e3)),
        (Goal::HttpCallsBesideSdk, call.ratio.median()),
        (Goal::HttpListBesideSdk, list.ratio.median()),
    ];
    drop(lanes);
    let more = streams(&serving)?;
    rows.push(Row {
        name: "1,000 open streams".to_owned(),
        values: [vec![None; COLUMNS.len() - 1], vec![Some(more)]].concat(),
    });
    measured.push((Goal::HttpStreams, Some(more)));
    let measured = measured.into_iter().filter_map(|(goal, value)| Some(Measured::alone(goal, value?))).collect();
    let title = "HTTP: many clients at once";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// The definitions of toolcell's tools, as one line.
fn definitions(serving: &Serving) -> anyhow::Result<Vec<u8>> {
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    link.send(&frame::modern(1, "tools/list", serde_json::json!({})))?;
    let reply: serde_json::Value = serde_json::from_slice(link.wait_for(1)?)?;
    let tools = reply.pointer("/result/tools").context("no list")?;
    Ok(format!("{tools}\n").into_bytes())
}

/// The resident memory that the open streams add to the host's process. No sandbox process knows of
/// them.
fn streams(serving: &Serving) -> anyhow::Result<f64> {
    let needed = STREAMS as u64 + DESCRIPTORS_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })?;
    }
    let server = Server::start(serving)?;
    // Memory that the first requests need is not counted.
    Load::open(server.port, 1)?.round(Ask::Call(Tool::Echo, Era::Modern), Duration::from_millis(20))?;
    let before = process::resident(server.child.id())?.now;
    let mut load = Load::open(server.port, STREAMS)?;
    load.listen()?;
    let after = process::resident(server.child.id())?.now;
    Ok(after - before)
}
