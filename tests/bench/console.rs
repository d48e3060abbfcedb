//! The cost of an open console in calls and memory: the same server without a viewer, with one,
//! with five.

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
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "p99_us", heading: "p99 µs", decimals: 1 },
    Column { key: "p99_ratio", heading: "p99 × closed", decimals: 3 },
    Column { key: "resident_mb", heading: "resident MB", decimals: 1 },
];

const NOTE: &str = "\
Serial calls of echo over stdio, in rounds that take turns. A viewer keeps the page of what runs now open: its stream of updates is read
as fast as it comes, on the same CPUs. resident: of the host's process after the last round.";

/// Calls at the start of every turn that do not count.
const WARM_UP: u64 = 50;

/// Calls of each tool before anything counts. Afterwards the figures of calls that the console
/// keeps have their full size.
const FIRST_CALLS: u64 = 2_000;

/// Time that the console has to say its address.
const PATIENCE: Duration = Duration::from_secs(20);

/// Events that update the page of what runs now.
const UPDATES: &str = "/events?view=now";

/// Calls beside this many viewers.
struct Viewed {
    name: &'static str,
    viewers: usize,
    took: Samples,
    resident_mb: f64,
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
    let (rounds, calls) = (options.count(60, 2), options.count(1_000, 20));
    let serving = Serving::examples()?;
    let mut link = Link::open(&serving.subject().with(["--console", "127.0.0.1:0"].map(AsRef::as_ref)), Wire::Pipes)?;
    let (address, cookie) = enter(&mut link)?;
    warm_up(&mut link, &[Tool::Echo], FIRST_CALLS)?;
    let viewed = |name, viewers| Viewed { name, viewers, took: Samples::default(), resident_mb: 0.0 };
    let mut all = [viewed("nobody looks", 0), viewed("1 viewer", 1), viewed("5 viewers", 5)];
    for _ in 0..rounds {
        for viewed in &mut all {
            viewed.turn(&mut link, address, &cookie, calls)?;
        }
    }
    let closed = all.first().context("nothing was measured")?;
    let (closed_p99, closed_mb) = (closed.took.quantile(0.99).context("no call was made")?, closed.resident_mb);
    let ratio = |viewed: &Viewed| viewed.took.quantile(0.99).map(|p99| p99 / closed_p99);
    let rows = all.iter().map(|viewed| {
        let values = vec![
            viewed.took.median(),
            viewed.took.quantile(0.99),
            ratio(viewed).filter(|_| viewed.viewers > 0),
            Some(viewed.resident_mb),
        ];
        Row { name: viewed.name.to_owned(), values }
    });
    let rows = rows.collect();
    let measured = all.last().and_then(|most| Some((ratio(most)?, most.resident_mb - closed_mb)));
    let measured = measured
        .map(|(p99, mb)| vec![Measured::alone(Goal::CallBesideViewers, p99), Measured::alone(Goal::ViewersMemory, mb)]);
    let title = "Console: calls with it open, beside closed";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured: measured.unwrap_or_default() })
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
    fn turn(&mut self, link: &mut Link, address: SocketAddr, cookie: &str, calls: usize) -> anyhow::Result<()> {
        let viewers = (0..self.viewers).map(|_| Viewer::open(address, cookie)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut request = Vec::new();
        let ask = Ask::Call(Tool::Echo, Era::Legacy);
        for id in 0..WARM_UP {
            link.ask(ask, id, &mut request)?;
        }
        for id in (100_000_u64..).take(calls) {
            self.took.push_us(link.ask(ask, id, &mut request)?);
        }
        self.resident_mb = process::resident_mb(link.process_id())?.0;
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
