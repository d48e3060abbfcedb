//! Measures what a record costs, with the sink of the default settings.
//!
//! `cargo run --release -p toolcell-audit --example cost -- FOLDER` writes its audit into that
//! folder, so that the file system measured is the one that counts.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use toolcell_audit::{CallFinished, CallStarted, Clipped, Event, Outcome, Settings, Sink, Usage};

/// Calls measured at a time; each has two records.
const CALLS: u64 = 100_000;

/// Calls measured where each record waits for the disk.
const SYNCED_CALLS: u64 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("the folder is missing")?);
    for (name, synced, calls) in [("never", false, CALLS), ("always", true, SYNCED_CALLS)] {
        let (sink, _) = Sink::open_with(&folder.join("cost.jsonl"), Settings { synced, ..Settings::default() })?;
        for threads in [1, 2] {
            let began = Instant::now();
            std::thread::scope(|scope| {
                let measured: Vec<_> = (0..threads).map(|_| scope.spawn(|| record(&sink, calls))).collect();
                measured.into_iter().all(|thread| thread.join().is_ok_and(|recorded| recorded))
            });
            let records = f64::from(threads) * calls as f64 * 2.0;
            let micros = began.elapsed().as_secs_f64() * 1e6 / records;
            writeln!(std::io::stdout(), "synced {name}, {threads} threads: {micros:.2} µs per record")?;
        }
    }
    Ok(())
}

/// Makes this many records. True if that worked.
fn record(sink: &Sink, calls: u64) -> bool {
    let digest = format!("sha256:{}", "a".repeat(64));
    (0..calls).all(|id| {
        let started = || {
            Event::CallStarted(CallStarted {
                id,
                generation: 1,
                era: "legacy",
                revision: "2025-11-25",
                caller: Clipped("local"),
                request: Clipped("77777"),
                trace: None,
                parent: None,
                root: None,
                depth: None,
                tool: "wx_forecast",
                component: "weather",
                component_digest: &digest,
                policy_digest: &digest,
                arguments_digest: &digest,
                arguments_bytes: 200,
                arguments: None,
            })
        };
        let finished = || {
            Event::CallFinished(CallFinished {
                id,
                tool: "wx_forecast",
                outcome: Outcome::Ok,
                usage: Usage::default(),
                uses: None,
                uses_left_out: 0,
                detail: None,
                recording: None,
            })
        };
        sink.record(started).and_then(|()| sink.record(finished)).is_ok()
    })
}
