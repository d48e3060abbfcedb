//! Rates on a server that replicas share: their cost on a call, and calls of several replicas.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use toolcell_tests::engine::Engine;
use toolcell_tests::web::WebHost;
use toolcell_tests::{Folder, manifest_of};

use crate::frame::{Ask, Era, Tool};
use crate::goals::{Goal, Measured};
use crate::load::Load;
use crate::options::Options;
use crate::placed::{allowed, stay_on};
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;

/// The call that is measured.
const CALL: Ask = Ask::Call(Tool::Echo, Era::Modern);

/// Connections of clients to a replica where many call at once.
const CONNECTIONS: usize = 32;

/// Replicas at once, in turns.
const REPLICAS: [usize; 3] = [1, 2, 4];

/// The script that decides.
const RATES: &str = include_str!("../../host/shared/src/valkey/rates.lua");

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "q1_us", heading: "q1", decimals: 1 },
    Column { key: "q3_us", heading: "q3", decimals: 1 },
    Column { key: "per_second", heading: "calls/s", decimals: 0 },
    Column { key: "replica_cpu_us", heading: "replica's CPU µs", decimals: 1 },
    Column { key: "state_cpu_us", heading: "state's CPU µs", decimals: 1 },
    Column { key: "in_bytes", heading: "bytes to it", decimals: 0 },
    Column { key: "out_bytes", heading: "bytes from it", decimals: 0 },
];

const NOTE: &str = "\
Calls of a Rust guest over HTTP, which count against one rate: in the replica's memory, or on a Valkey server on the same machine.
PING and EVALSHA: one after another on one plain connection to that server, without toolcell. The rows of one connection are in turns.
Several replicas have a CPU each as far as there are CPUs; clients and the server share them. CPU and bytes are for one call.";

/// One row.
#[derive(Default)]
struct Lane {
    name: String,
    took: Samples,
    per_second: Samples,
    replica_cpu: Samples,
    state_cpu: Samples,
    bytes: Option<(f64, f64)>,
}

/// Figures of the server, before and after.
struct Seen {
    cpu: Duration,
    input: f64,
    output: f64,
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly, or threads cannot be placed.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(20, 2);
    let time = Duration::from_millis(if options.quick { 100 } else { 400 });
    let engine = Engine::start(&[]);
    let alone = replica(None);
    let shared = replica(Some(&engine));
    let named = |name: &str| Lane { name: name.to_owned(), ..Lane::default() };
    let mut bare = [named("PING of the state's server"), named("EVALSHA of the rates there")];
    let mut lanes = [named("a call, rate in memory"), named("a call, rate on the server")];
    let mut wire = Bare::to(&engine)?;
    let mut loads = [Load::open(alone.address().port(), 1)?, Load::open(shared.address().port(), 1)?];
    for load in &mut loads {
        load.round(CALL, time)?;
    }
    for _ in 0..rounds {
        wire.ping(&mut bare[0].took, time / 4)?;
        wire.rates(&mut bare[1].took, time / 4)?;
        for (lane, (load, host)) in lanes.iter_mut().zip(loads.iter_mut().zip([&alone, &shared])) {
            lane.round(&engine, &[host], std::slice::from_mut(load), time)?;
        }
    }
    drop((loads, alone, shared));
    let mut several = Vec::new();
    for count in REPLICAS {
        for (word, state) in [("in memory", None), ("on the server", Some(&engine))] {
            let mut lane = named(&format!("{count} replicas, {CONNECTIONS} connections each, rate {word}"));
            lane.several(&engine, state, count, options.count(5, 1), time)?;
            several.push(lane);
        }
    }
    let p50 = |lane: &Lane| lane.took.median().context("no call");
    let [ping, _] = &bare;
    let [memory, server] = &lanes;
    let above = p50(server)? - p50(memory)?;
    let measured = vec![Measured::alone(Goal::SharedRate, above / p50(ping)?)];
    let rows = bare.iter().chain(&lanes).chain(&several).map(Lane::row).collect();
    let title = "Rates that replicas share";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// A replica, with its rates at this server if there is one.
fn replica(engine: Option<&Engine>) -> WebHost {
    let state = engine.map(|engine| format!("[state]\nshared = \"redis://127.0.0.1:{}\"\n", engine.port()));
    let head = format!("version = 1\n[server]\nstate_key = \"file:state.key\"\n{}", state.unwrap_or_default());
    let manifest = manifest_of(&["good"]).replacen("version = 1\n", &head, 1);
    let folder = Folder::with_manifest(&format!("{manifest}[components.good.limits]\nrate = \"1000000/s\"\n"));
    folder.write("state.key", "0123456789abcdef0123456789abcdef");
    let private: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    // A file that others may read is refused at the start, which then fails.
    let _ = std::fs::set_permissions(folder.path().join("state.key"), private);
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
}

impl Lane {
    /// Calls at each of these replicas at once, and all they cost.
    fn round(&mut self, engine: &Engine, hosts: &[&WebHost], loads: &mut [Load], time: Duration) -> anyhow::Result<()> {
        let cpu = || {
            hosts.iter().map(|host| process::cpu_time(host.process().process_id())).sum::<anyhow::Result<Duration>>()
        };
        let before = cpu()?;
        let began = seen(engine)?;
        let rounds = std::thread::scope(|scope| {
            let rounds: Vec<_> = loads.iter_mut().map(|load| scope.spawn(move || load.round(CALL, time))).collect();
            rounds
                .into_iter()
                .map(|round| round.join().map_err(|_| anyhow::anyhow!("a client ended")).flatten())
                .collect::<anyhow::Result<Vec<_>>>()
        })?;
        let after = cpu()?;
        let ended = seen(engine)?;
        let calls = rounds.iter().map(|round| round.took.len()).sum::<usize>() as f64;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / calls;
        self.replica_cpu.push(each(after.saturating_sub(before)));
        self.state_cpu.push(each(ended.cpu.saturating_sub(began.cpu)));
        self.bytes = Some(((ended.input - began.input) / calls, (ended.output - began.output) / calls));
        self.per_second.push(rounds.iter().map(|round| round.per_second).sum());
        rounds.iter().for_each(|round| self.took.extend(&round.took));
        Ok(())
    }

    /// Starts this many replicas, each on a CPU of its own if there are enough, and calls them.
    fn several(
        &mut self,
        engine: &Engine,
        state: Option<&Engine>,
        count: usize,
        rounds: usize,
        time: Duration,
    ) -> anyhow::Result<()> {
        let before = sched_getaffinity(None)?;
        let cpus = allowed(&before);
        let mut hosts = Vec::new();
        for cpu in cpus.iter().cycle().take(count) {
            // A child stays on the CPU that its parent had when it started.
            stay_on(*cpu)?;
            hosts.push(replica(state));
        }
        sched_setaffinity(None, &before)?;
        let loads = hosts.iter().map(|host| Load::open(host.address().port(), CONNECTIONS));
        let mut loads = loads.collect::<anyhow::Result<Vec<_>>>()?;
        for load in &mut loads {
            load.round(CALL, time)?;
        }
        let hosts: Vec<_> = hosts.iter().collect();
        (0..rounds).try_for_each(|_| self.round(engine, &hosts, &mut loads, time))
    }

    fn row(&self) -> Row {
        let [median, q1, q3] = [0.5, 0.25, 0.75].map(|share| self.took.quantile(share));
        let (input, output) = self.bytes.unzip();
        let cpu = [self.replica_cpu.median(), self.state_cpu.median()];
        let values = [&[median, q1, q3, self.per_second.median()][..], &cpu, &[input, output]].concat();
        Row { name: self.name.clone(), values }
    }
}

/// Figures of the server at this moment.
fn seen(engine: &Engine) -> anyhow::Result<Seen> {
    let stats = engine.whole_answer(&["INFO", "stats"]);
    let figure = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|figure| figure.trim().parse::<f64>().ok()).with_context(|| format!("no {name}"))
    };
    let input = figure("total_net_input_bytes")?;
    let output = figure("total_net_output_bytes")?;
    Ok(Seen { cpu: process::cpu_time(engine.process_id())?, input, output })
}

/// A plain connection to the server.
struct Bare {
    stream: TcpStream,
    rates: Vec<u8>,
}

impl Bare {
    fn to(engine: &Engine) -> anyhow::Result<Self> {
        let loaded = engine.whole_answer(&["SCRIPT", "LOAD", RATES]);
        let digest = loaded.lines().nth(1).context("no digest")?;
        let key = format!("toolcell:1:rate:{{{0}}}:{0}", "0".repeat(64));
        let parts = ["EVALSHA", digest, "1", &key, "1000", "999999000"];
        let mut rates = format!("*{}\r\n", parts.len());
        parts.iter().for_each(|part| rates.push_str(&format!("${}\r\n{part}\r\n", part.len())));
        let stream = TcpStream::connect(("127.0.0.1", engine.port()))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, rates: rates.into_bytes() })
    }

    fn ping(&mut self, took: &mut Samples, time: Duration) -> anyhow::Result<()> {
        ask(&mut self.stream, b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n", took, time)
    }

    fn rates(&mut self, took: &mut Samples, time: Duration) -> anyhow::Result<()> {
        ask(&mut self.stream, &self.rates, b"*2\r\n:0\r\n:0\r\n", took, time)
    }
}

/// Asks this again and again.
fn ask(
    stream: &mut TcpStream,
    question: &[u8],
    expected: &[u8],
    took: &mut Samples,
    time: Duration,
) -> anyhow::Result<()> {
    let until = Instant::now() + time;
    let mut answer = vec![0; expected.len()];
    while Instant::now() < until {
        let began = Instant::now();
        stream.write_all(question)?;
        stream.read_exact(&mut answer)?;
        took.push_us(began.elapsed());
        ensure!(answer == expected, "{:?} is not an answer", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
