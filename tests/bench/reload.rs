//! The cost of replacing a component. It measures the time from the save until clients hear of it
//! and the new code answers, and the effect on calls of other tools meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::frame::{Ask, Era, Reply, Tool, legacy_call};
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire, warm_up};
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;

/// Bytes of code of the component that is saved repeatedly.
const SMALL_BYTES: usize = 50_000;

/// Bytes of code of the component that is saved while others are called.
const LARGE_BYTES: usize = 10_000_000;

/// `LARGE_BYTES` of a quick run.
const LARGE_BYTES_QUICK: usize = 500_000;

/// Pause between the calls of a client that does not call as fast as it can.
const PAUSE: Duration = Duration::from_millis(1);

/// Calls that measure the server while nothing else happens.
const IDLE_CALLS: usize = 5_000;

/// The first id of requests that do not count.
const ASIDE_ID: u64 = 1 << 41;

const COLUMNS: &[Column] = &[
    Column { key: "p50_ms", heading: "p50 ms", decimals: 3 },
    Column { key: "p99_ms", heading: "p99 ms", decimals: 3 },
    Column { key: "max_ms", heading: "max ms", decimals: 3 },
    Column { key: "p99_ratio", heading: "p99 × idle", decimals: 2 },
];

const NOTE: &str = "\
Saved: renamed into place; a description differs each time, so clients are told. The debounce is part of it, and compiling, since
no code was kept. Calls are those of another component, by one client: again 1 ms after each answer, or at once. While reloading:
from the save of a component with that much code until the notification. p99 × idle: beside the same calls before the save.";

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly, or a save is not noticed.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    saves(options, &mut rows, &mut measured)?;
    beside_calls(options, &mut rows, &mut measured)?;
    let title = "Reload: a component is saved";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// Time from a save to the notification, and to the first answer of the new code.
fn saves(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let (serving, numbered) = Serving::numbered()?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    warm_up(&mut link, &[Tool::Echo], 20)?;
    let mut told = Samples::default();
    let mut answered = Samples::default();
    for number in (1_u64..).take(options.count(30, 3)) {
        let bytes = numbered.bytes(number, SMALL_BYTES)?;
        let begun = Instant::now();
        serving.save(&bytes)?;
        while !is_notification(link.receive()?)? {}
        told.push(begun.elapsed().as_secs_f64() * 1e3);
        link.send(&legacy_call(ASIDE_ID + number, "now"))?;
        let reply = link.wait_for(ASIDE_ID + number)?;
        answered.push(begun.elapsed().as_secs_f64() * 1e3);
        let expected = format!("number {number:06}");
        let is_new = reply.windows(expected.len()).any(|window| window == expected.as_bytes());
        ensure!(is_new, "told of {number}, and not answered by it: {}", String::from_utf8_lossy(reply));
    }
    measured.extend(told.median().map(|p50| Measured::alone(Goal::SaveToNotification, p50)));
    rows.push(row("50 KB saved, to the notification".to_owned(), &told, None));
    rows.push(row("50 KB saved, to the first answer".to_owned(), &answered, None));
    Ok(())
}

/// Calls of another component, before and during a reload.
fn beside_calls(options: &Options, rows: &mut Vec<Row>, measured: &mut Vec<Measured>) -> anyhow::Result<()> {
    let bytes = if options.quick { LARGE_BYTES_QUICK } else { LARGE_BYTES };
    let shown = format!("{:.1} MB", bytes as f64 / 1e6);
    let ways =
        [("1 ms apart", Some(PAUSE), Goal::PacedBesideReload), ("one after another", None, Goal::SerialBesideReload)];
    for (how, pause, goal) in ways {
        let (serving, numbered) = Serving::numbered()?;
        let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
        warm_up(&mut link, &[Tool::Echo], 100)?;
        let idle = {
            let calls_max = options.count(IDLE_CALLS, 50);
            Calls { link: &mut link, pause }.until(|calls, _| calls >= calls_max)?
        };
        let large = numbered.bytes(1, bytes)?;
        let begun = Instant::now();
        serving.save(&large)?;
        let during = Calls { link: &mut link, pause }.until(|_, is_told| is_told)?;
        let took = begun.elapsed().as_secs_f64();
        let ratio = idle.quantile(0.99).zip(during.quantile(0.99)).map(|(idle, during)| during / idle);
        measured.extend(ratio.map(|ratio| Measured::alone(goal, ratio)));
        rows.push(row(format!("echo, {how}, idle"), &idle, None));
        rows.push(row(format!("echo, {how}, while {shown} are reloaded ({took:.1} s)"), &during, ratio));
    }
    Ok(())
}

/// A client that calls one after another.
struct Calls<'l> {
    link: &'l mut Link,
    pause: Option<Duration>,
}

impl Calls<'_> {
    /// Calls until `is_over` is true, and returns the time of each call, in ms. `is_over` gets the
    /// number of calls so far, and true once a notification came.
    fn until(self, is_over: impl Fn(usize, bool) -> bool) -> anyhow::Result<Samples> {
        let ask = Ask::Call(Tool::Echo, Era::Legacy);
        let mut took = Samples::default();
        let mut request = Vec::new();
        let mut is_told = false;
        let mut id = 0;
        while !is_over(usize::try_from(id)?, is_told) {
            request.clear();
            ask.write(id, &mut request)?;
            let begun = Instant::now();
            self.link.send(&request)?;
            // A notification may come between a call and its answer.
            while is_notification(self.link.receive()?)? {
                is_told = true;
            }
            took.push(begun.elapsed().as_secs_f64() * 1e3);
            ask.check(id, self.link.last())?;
            id += 1;
            self.pause.into_iter().for_each(std::thread::sleep);
        }
        Ok(took)
    }
}

fn is_notification(line: &[u8]) -> anyhow::Result<bool> {
    Ok(Reply::read(line).context("no frame")?.id.is_none())
}

fn row(name: String, took: &Samples, ratio: Option<f64>) -> Row {
    Row { name, values: vec![took.median(), took.quantile(0.99), took.quantile(1.0), ratio] }
}
