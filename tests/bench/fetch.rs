//! An HTTP request that a guest makes, next to the same request of a plain client to the same
//! server. The cost of the call itself is left out: calls with more requests are compared with
//! calls with fewer.

use std::time::Duration;

use crate::frame::Ask;
use crate::goals::{Goal, Measured};
use crate::link::{Link, Wire};
use crate::options::Options;
use crate::plain::{Plain, Server};
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;

/// Requests of one call over a kept connection, besides the first, which opens it.
const KEPT: usize = 32;

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", heading: "p50 µs", decimals: 1 },
    Column { key: "q1_us", heading: "q1", decimals: 1 },
    Column { key: "q3_us", heading: "q3", decimals: 1 },
    Column { key: "ratio", heading: "× hyper", decimals: 2 },
    Column { key: "ratio_q1", heading: "q1", decimals: 2 },
    Column { key: "ratio_q3", heading: "q3", decimals: 2 },
];

const NOTE: &str = "\
GET of 1 KiB over HTTP/1.1 from a server on loopback, in a process of its own. hyper: on one thread, which does nothing else.
a guest's: the median of calls with 1 request less that of calls with 0 (new), and of calls with 33 less 1, by 32 (kept): rule,
address check, secrets, limits and time bounds, the guest's own work on it. ×: the median over rounds of the ratio in a round.";

/// Samples of requests made in one way.
#[derive(Default)]
struct Seen {
    p50: Samples,
    ratio: Samples,
}

/// Measures.
///
/// # Errors
/// Something does not start or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(40, 2);
    let calls = options.count(200, 10);
    let server = Server::start()?;
    let mut plain = Plain::of(&server)?;
    let serving = Serving::fetching(server.port())?;
    let mut link = Link::open(&serving.subject(), Wire::Pipes)?;
    let mut guest = |times, calls| {
        let mut request = Vec::new();
        median(calls, |id| link.ask(Ask::Fetch { times, port: server.port() }, id, &mut request))
    };
    guest(KEPT, 10)?;
    let [mut hyper_new, mut hyper_kept, mut new, mut kept] = std::array::from_fn(|_| Seen::default());
    for _ in 0..rounds {
        let plain_new = median(calls, |_| plain.ask_on_new())?;
        let none = guest(0, calls)?;
        let one = guest(1, calls)?;
        let many = guest(1 + KEPT, calls.div_ceil(8))?;
        let plain_kept = median(calls, |_| plain.ask_on_kept())?;
        hyper_new.p50.push(plain_new);
        hyper_kept.p50.push(plain_kept);
        new.add(one - none, plain_new);
        kept.add((many - one) / KEPT as f64, plain_kept);
    }
    let measured = [(Goal::FetchOnNew, &new), (Goal::FetchOnKept, &kept)]
        .into_iter()
        .filter_map(|(goal, seen)| Some(Measured::alone(goal, seen.ratio.median()?)))
        .collect();
    let rows = vec![
        hyper_new.row("hyper, new connection"),
        new.row("a guest's, new connection"),
        hyper_kept.row("hyper, kept connection"),
        kept.row("a guest's, kept connection"),
    ];
    let title = "HTTP: a guest's request beside a plain client's";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// The median cost of that many requests, in µs.
fn median(calls: usize, mut ask: impl FnMut(u64) -> anyhow::Result<Duration>) -> anyhow::Result<f64> {
    let mut took = Samples::default();
    for id in (0_u64..).take(calls) {
        took.push_us(ask(id)?);
    }
    Ok(took.median().unwrap_or_default())
}

impl Seen {
    fn add(&mut self, took: f64, plain: f64) {
        self.p50.push(took);
        self.ratio.push(took / plain);
    }

    fn row(&self, name: &str) -> Row {
        let of = |samples: &Samples| [0.5, 0.25, 0.75].map(|share| samples.quantile(share));
        Row { name: name.to_owned(), values: [of(&self.p50), of(&self.ratio)].concat() }
    }
}
