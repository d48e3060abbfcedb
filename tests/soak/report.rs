//! The result of the soak, as text for people and as JSON for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::calls::Kind;
use crate::ledger::Ledger;
use crate::process::Held;
use crate::trend::{DRIFT_PERCENT_MAX, JUDGED_FROM, Trend, warm_up_rounds};

/// The result of a run.
pub struct Report {
    /// The seed of the choice of calls.
    pub seed: u64,
    /// The duration of the run.
    pub took: Duration,
    /// The requests and the frames that came.
    pub ledger: Ledger,
    /// The resources of the process after each round.
    pub held: Vec<Held>,
    /// The exit code of the process. `None` if a signal ended it.
    pub exit: Option<i32>,
    /// Sandbox processes that were killed.
    pub kills: u64,
    /// True if some were to be.
    pub expects_kills: bool,
}

/// Open files of the host that come and go with its sandbox processes: some of each.
const FILES_OF_SANDBOXES: u64 = 64;

/// Threads of the host that come and go with its sandbox processes. The runtime ends one for work
/// that blocks once it has rested for ten seconds, which a short run does not see.
const THREADS_OF_SANDBOXES: u64 = 8;

/// A figure that must not grow: its name, its trend, and its unit.
struct Watched {
    name: &'static str,
    trend: Option<Trend>,
    unit: &'static str,
    /// The factor from the figure to its unit.
    scale: f64,
    /// `None` if the run is too short to tell.
    is_flat: Option<bool>,
}

impl Report {
    /// True if the run found no problem.
    pub fn is_good(&self) -> bool {
        // Where none was under a call, nothing was tried.
        let killed = !self.expects_kills || (self.kills > 0 && self.ledger.sandbox_ended > 0);
        self.ledger.found == 0
            && killed
            && self.exit == Some(0)
            && self.watched().iter().all(|watched| watched.is_flat != Some(false))
    }

    /// Time of the rounds before the watched figures count.
    fn warm_up(&self) -> Duration {
        self.took.mul_f64(warm_up_rounds(self.held.len()) as f64 / self.held.len().max(1) as f64)
    }

    fn watched(&self) -> [Watched; 3] {
        let memory = Trend::of(&self.held, |held| held.resident_bytes);
        let threads = Trend::of(&self.held, |held| held.threads);
        let files = Trend::of(&self.held, |held| held.files);
        let grows_not = |trend: Option<Trend>, of_sandboxes: u64| {
            let spare = if self.expects_kills { of_sandboxes } else { 0 };
            trend.map(|trend| trend.last <= trend.first + spare)
        };
        let is_long = self.took >= JUDGED_FROM;
        let is_flat = memory.filter(|_| is_long).map(|trend| trend.drift_percent() <= DRIFT_PERCENT_MAX);
        [
            Watched { name: "resident memory", trend: memory, unit: " MB", scale: 1e-6, is_flat },
            Watched {
                name: "threads",
                trend: threads,
                unit: "",
                scale: 1.0,
                is_flat: grows_not(threads, THREADS_OF_SANDBOXES),
            },
            Watched {
                name: "open files",
                trend: files,
                unit: "",
                scale: 1.0,
                is_flat: grows_not(files, FILES_OF_SANDBOXES),
            },
        ]
    }

    /// The report as tables.
    pub fn to_text(&self) -> String {
        let Self { seed, took, ledger, held, exit, kills, .. } = self;
        let seconds = took.as_secs_f64();
        let sent: u64 = ledger.sent.values().sum();
        let mut text = format!(
            "soak: {sent} requests in {seconds:.0} s ({:.0}/s), {} rounds, the first {:.0} s warm-up, seed {seed}\n",
            sent as f64 / seconds,
            held.len(),
            self.warm_up().as_secs_f64()
        );
        // Writing to a string never fails.
        for kind in Kind::ALL {
            let _ = writeln!(text, "  {:<16}{:>10}", kind.name(), ledger.sent.get(&kind).copied().unwrap_or_default());
        }
        let Ledger { answered, cancelled, events, .. } = ledger;
        let _ = writeln!(text, "  {answered} right answers, {cancelled} cancelled without one, {events} events");
        let _ = writeln!(text, "  {kills} sandboxes killed, {} calls answered with that", ledger.sandbox_ended);
        let (longest, of) = &ledger.slowest;
        let _ = writeln!(text, "  the slowest answer took {:.0} ms, to {of}", longest.as_secs_f64() * 1e3);
        for Watched { name, trend, unit, scale, is_flat } in self.watched() {
            let verdict = match is_flat {
                Some(true) => "flat",
                Some(false) => "GROWS",
                None => "too short a run to say",
            };
            let _ = match trend {
                Some(trend) => {
                    let shown = [trend.first, trend.last, trend.most].map(|value| shown(value, scale));
                    let [first, last, most] = shown;
                    let drift = trend.drift_percent();
                    writeln!(
                        text,
                        "  {name:<16}{first}{unit} → {last}{unit} ({drift:+.1} %), most {most}{unit}: {verdict}"
                    )
                }
                None => writeln!(text, "  {name:<16}{verdict}"),
            };
        }
        let _ = match exit {
            Some(status) => writeln!(text, "  exit status     {status}"),
            None => writeln!(text, "  ended by a signal"),
        };
        let _ = writeln!(text, "  findings        {}", ledger.found);
        let _ = writeln!(text, "  verdict         {}", if self.is_good() { "good" } else { "NOT GOOD" });
        for finding in &ledger.findings {
            let _ = writeln!(text, "  - {finding}");
        }
        text
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        let sent: serde_json::Map<String, Value> =
            self.ledger.sent.iter().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
        let watched: Vec<Value> = self.watched().iter().map(Watched::to_json).collect();
        let rounds: Vec<Value> = self
            .held
            .iter()
            .map(|held| json!({"resident_bytes": held.resident_bytes, "threads": held.threads, "files": held.files}))
            .collect();
        let report = json!({
            "good": self.is_good(),
            "seed": self.seed,
            "seconds": self.took.as_secs_f64(),
            "warm_up_seconds": self.warm_up().as_secs_f64(),
            "sent": sent,
            "answered": self.ledger.answered,
            "cancelled": self.ledger.cancelled,
            "kills": self.kills,
            "sandbox_ended": self.ledger.sandbox_ended,
            "events": self.ledger.events,
            "slowest": {"ms": self.ledger.slowest.0.as_secs_f64() * 1e3, "of": self.ledger.slowest.1},
            "watched": watched,
            "rounds": rounds,
            "exit": self.exit,
            "found": self.ledger.found,
            "findings": self.ledger.findings,
        });
        format!("{report:#}\n")
    }
}

impl Watched {
    fn to_json(&self) -> Value {
        let figures = self.trend.map(|trend| {
            json!({"first": trend.first, "last": trend.last, "most": trend.most, "drift_percent": trend.drift_percent()})
        });
        json!({"name": self.name, "flat": self.is_flat, "figures": figures})
    }
}

fn shown(value: u64, scale: f64) -> String {
    if scale == 1.0 { value.to_string() } else { format!("{:.1}", value as f64 * scale) }
}
