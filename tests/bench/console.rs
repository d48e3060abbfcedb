//! The cost of the console in calls and memory: the same server without it, and with it while
//! nobody looks, one person does, or five do.

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use toolcell_tests::web::{Ask as Request, Wire as Connection};

use crate::frame::{Ask, Era, Tool};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, warm_up};
use crate::options::Options;
use crate::process::{self, Resident};
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "p99_us", heading: "p99 µs", decimals: 1 },
    Column { key: "p99_ratio", heading: "p99 × without", decimals: 3 },
    Column { key: "paced_p50_us", heading: "paced p50 µs", decimals: 1 },
    Column { key: "paced_p99_us", heading: "paced p99 µs", decimals: 1 },
    Column { key: "closed_p99_us", heading: "closed p99 µs", decimals: 1 },
    Column { key: "paced_p99_ratio", heading: "paced p99 × closed", decimals: 3 },
    Column { key: "resident_mb", heading: "now MB", decimals: 1 },
    Column { key: "resident_max_mb", heading: "peak MB", decimals: 1 },
];

const NOTE: &str = "\
Calls of echo over stdio, in rounds that take turns: one after another, and paced 100 in a second. Each row is a process of its own,
which never had more viewers than the row says. A viewer keeps the page of what runs now open: its stream of updates is read as fast as
it comes, on the same CPUs. closed: the paced calls of the same process while no page is open, in turns with the others, since two
processes that are idle between calls differ by more than viewers cost. now, peak: resident memory of the host's process after the last round, of code that was compiled before.";

/// Calls at the start of every turn that do not count.
const WARM_UP: u64 = 50;

/// Calls of each tool before anything counts. Afterwards the figures of calls that the console
/// keeps have their full size.
const FIRST_CALLS: u64 = 2_000;

/// Time between the beginnings of paced calls: 100 in a second, as a busy server has them.
const PACE: Duration = Duration::from_millis(10);

/// Time that the console has to say its address.
const PATIENCE: Duration = Duration::from_secs(20);

/// Events that update the page of what runs now.
const UPDATES: &str = "/events?view=now";

/// A server, and its calls with this many viewers.
struct Viewed {
    name: &'static str,
    link: Link,
    /// The console's address, and the cookie of a session; `None` for a server without one.
    console: Option<(SocketAddr, String)>,
    viewers: usize,
    serial: Samples,
    paced: Samples,
    /// Paced calls while no page is open, of a server that has viewers.
    closed: Samples,
    resident: Resident,
}

/// Calls of one turn.
struct Turn {
    calls: usize,
    /// Time between their beginnings; `None`: one begins when the one before has ended.
    pace: Option<Duration>,
}

/// A page that is open in a browser, until this is dropped.
struct Viewer {
    stream: TcpStream,
    reads: Option<JoinHandle<()>>,
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(60, 2);
    let paced_rounds = options.count(20, 1);
    let serial = Turn { calls: options.count(1_000, 20), pace: None };
    let paced = Turn { calls: options.count(200, 20), pace: Some(PACE) };
    let serving = Serving::examples()?;
    serving.compile()?;
    let mut all = [
        Viewed::begin("without the console", &serving, None)?,
        Viewed::begin("nobody looks", &serving, Some(0))?,
        Viewed::begin("1 viewer", &serving, Some(1))?,
        Viewed::begin("5 viewers", &serving, Some(5))?,
    ];
    for _ in 0..rounds {
        all.iter_mut().try_for_each(|viewed| viewed.turn(&serial))?;
    }
    for _ in 0..paced_rounds {
        for viewed in &mut all {
            if viewed.viewers > 0 {
                viewed.closed_turn(&paced)?;
            }
            viewed.turn(&paced)?;
        }
    }
    let title = "Console: calls beside it, and its memory";
    let (rows, measured) = shown(&all)?;
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// The rows, and the figures that have a goal: those of the last row.
fn shown(all: &[Viewed]) -> anyhow::Result<(Vec<Row>, Vec<Measured>)> {
    let (without, most) = all.first().zip(all.last()).context("nothing was measured")?;
    let p99 = |samples: &Samples| samples.quantile(0.99);
    let serial_ratio = |viewed: &Viewed| {
        let (p99, beside) = p99(&viewed.serial).zip(p99(&without.serial))?;
        viewed.console.is_some().then_some(p99 / beside)
    };
    let paced_ratio = |viewed: &Viewed| p99(&viewed.paced).zip(p99(&viewed.closed)).map(|(open, closed)| open / closed);
    let values = |viewed: &Viewed| {
        let Viewed { serial, paced, closed, resident: Resident { now, peak, .. }, .. } = viewed;
        let of_serial = [serial.median(), p99(serial), serial_ratio(viewed)];
        let of_paced = [paced.median(), p99(paced), p99(closed), paced_ratio(viewed)];
        [&of_serial[..], &of_paced, &[Some(*now), Some(*peak)]].concat()
    };
    let rows = all.iter().map(|viewed| Row { name: viewed.name.to_owned(), values: values(viewed) }).collect();
    let calls = [
        (Goal::CallBesideViewers, serial_ratio(most)),
        (Goal::PacedBesideViewers, paced_ratio(most)),
        (Goal::ViewersMemory, Some(most.resident.peak - without.resident.peak)),
    ];
    let measured = calls.into_iter().filter_map(|(goal, value)| Some(Measured::alone(goal, value?))).collect();
    Ok((rows, measured))
}

/// The console's address, and the cookie of a session that its link began.
fn enter(link: &mut Link) -> anyhow::Result<(SocketAddr, String)> {
    let end = Instant::now() + PATIENCE;
    let url = loop {
        let said = link.said();
        let words = said.split("console at http://").nth(1).and_then(|rest| rest.split_once(' '));
        if let Some((url, _)) = words {
            break url.to_owned();
        }
        ensure!(Instant::now() < end, "the console says no address\n{said}");
        std::thread::yield_now();
    };
    let (address, path) = url.split_once('/').context("no link")?;
    let reply = Connection::to(address.parse()?).ask(&request(address, &format!("/{path}")));
    let cookie = reply.field("set-cookie").and_then(|cookie| cookie.split(';').next());
    Ok((address.parse()?, cookie.with_context(|| format!("the link does not lead in: {reply:?}"))?.to_owned()))
}

fn request(host: &str, path: &str) -> Request {
    Request::bare("GET", path).with("host", host)
}

impl Viewed {
    /// Starts a server that nobody has looked at; `viewers` is `None` for one without a console.
    fn begin(name: &'static str, serving: &Serving, viewers: Option<usize>) -> anyhow::Result<Self> {
        let subject = serving.subject();
        let subject =
            if viewers.is_some() { subject.with(["--console", "127.0.0.1:0"].map(AsRef::as_ref)) } else { subject };
        let mut link = Link::open(&subject, Wire::Pipes)?;
        let console = viewers.map(|_| enter(&mut link)).transpose()?;
        warm_up(&mut link, &[Tool::Echo], FIRST_CALLS)?;
        let (serial, paced, closed, resident) = Default::default();
        Ok(Self { name, link, console, viewers: viewers.unwrap_or_default(), serial, paced, closed, resident })
    }

    /// A turn of paced calls while no page is open.
    fn closed_turn(&mut self, turn: &Turn) -> anyhow::Result<()> {
        let viewers = std::mem::take(&mut self.viewers);
        std::mem::swap(&mut self.paced, &mut self.closed);
        let done = self.turn(turn);
        std::mem::swap(&mut self.paced, &mut self.closed);
        self.viewers = viewers;
        done
    }

    fn turn(&mut self, turn: &Turn) -> anyhow::Result<()> {
        let looked_at = self.console.as_ref().map(|(address, cookie)| {
            (0..self.viewers).map(|_| Viewer::open(*address, cookie)).collect::<anyhow::Result<Vec<_>>>()
        });
        let viewers = looked_at.transpose()?.unwrap_or_default();
        let mut request = Vec::new();
        let ask = Ask::Call(Tool::Echo, Era::Legacy);
        for id in 0..WARM_UP {
            self.link.ask(ask, id, &mut request)?;
        }
        let mut next = Instant::now();
        for id in (100_000_u64..).take(turn.calls) {
            if let Some(pace) = turn.pace {
                next += pace;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            let took = self.link.ask(ask, id, &mut request)?;
            let samples = if turn.pace.is_some() { &mut self.paced } else { &mut self.serial };
            samples.push_us(took);
        }
        self.resident = process::resident(self.link.process_id())?;
        ensure!(viewers.iter().all(Viewer::is_open), "the console ended a stream of updates");
        Ok(())
    }
}

impl Viewer {
    fn open(address: SocketAddr, cookie: &str) -> anyhow::Result<Self> {
        let mut wire = Connection::to(address);
        wire.send(&request(&address.to_string(), UPDATES).with("cookie", cookie).bytes());
        let head = wire.head();
        ensure!(head.status() == 200, "{UPDATES}: {head:?}");
        let stream = wire.stream().try_clone()?;
        let mut updates = stream.try_clone()?;
        let reads = std::thread::spawn(move || {
            let mut block = vec![0; 64 * 1024];
            while updates.read(&mut block).is_ok_and(|bytes| bytes > 0) {}
        });
        Ok(Self { stream, reads: Some(reads) })
    }

    fn is_open(&self) -> bool {
        self.reads.as_ref().is_some_and(|reads| !reads.is_finished())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // A stream that is closed already is what is wanted.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reads) = self.reads.take() {
            let _ = reads.join();
        }
    }
}
