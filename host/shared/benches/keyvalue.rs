//! The cost of state that tools keep on a server, next to the bare client. Prints a table of
//! microseconds.
//!
//! The rows run alternately in short rounds on one machine, so that other load affects all of them
//! equally. A ratio is the median of the rounds' ratios.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on ends"
)]

#[path = "../tests/engine/mod.rs"]
mod engine;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Builder;
use toolcell_shared::{Bucket, Kept, Quota, ValkeyOptions};

/// Rounds of each row, and operations of each round.
const ROUNDS: usize = 60;
const OPERATIONS: usize = 200;

const BUCKET: Bucket<'_> = Bucket { component: "notes", namespace: "", name: "default" };
const QUOTA: Quota = Quota { bytes: 64 << 20, entries: 100_000, value_bytes: 1 << 20, namespaces: 1_000 };

const VALUE: [u8; 100] = [b'v'; 100];

/// The rows, each with the baseline that it is compared with.
const ROWS: [(&str, usize); 5] = [
    ("the client: GET", 0),
    ("a tool's get", 0),
    ("the client: SET", 2),
    ("a tool's set", 2),
    ("a tool's increment", 2),
];

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        // A test run builds it and measures nothing.
        return;
    }
    let engine = Engine::start(&[]);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let rounds = runtime.block_on(measure(&engine));
    println!("State of tools on a Valkey server of the same machine: one operation after another, 100-byte values");
    println!("{:<22}{:>9}{:>9}{:>9}{:>10}", "", "p50 µs", "q1", "q3", "x client");
    for (place, (name, beside)) in ROWS.into_iter().enumerate() {
        let own: Vec<f64> = rounds.iter().map(|round| round[place]).collect();
        let ratios = rounds.iter().map(|round| round[place] / round[beside]).collect();
        let [q1, median, q3] = quartiles(own);
        println!("{name:<22}{median:>9.1}{q1:>9.1}{q3:>9.1}{:>10.2}", quartiles(ratios)[1]);
    }
}

/// Microseconds of an operation, by row, of each round.
async fn measure(engine: &Engine) -> Vec<[f64; ROWS.len()]> {
    let client = redis::Client::open(("127.0.0.1", engine.port())).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    let kept = Kept::new(ValkeyOptions::at("127.0.0.1", engine.port())).unwrap();
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let mut took = [0.0; ROWS.len()];
        for (place, took) in took.iter_mut().enumerate() {
            let began = Instant::now();
            for number in 0..OPERATIONS {
                operation(place, &format!("key-{}", number % 50), &mut bare, &kept).await;
            }
            *took = micros(began.elapsed()) / OPERATIONS as f64;
        }
        // The first round connects, and loads the scripts.
        if round > 0 {
            rounds.push(took);
        }
    }
    rounds
}

async fn operation(place: usize, key: &str, bare: &mut MultiplexedConnection, kept: &Arc<Kept>) {
    match place {
        0 => _ = redis::cmd("GET").arg(key).query_async::<Option<Vec<u8>>>(bare).await.unwrap(),
        1 => _ = kept.get(BUCKET, key, QUOTA.value_bytes).await.unwrap(),
        2 => redis::cmd("SET").arg(key).arg(&VALUE).exec_async(bare).await.unwrap(),
        3 => kept.set_all(BUCKET, QUOTA, vec![(key.to_owned(), VALUE.to_vec())]).await.unwrap(),
        _ => _ = kept.add(BUCKET, QUOTA, format!("count-{key}"), 1).await.unwrap(),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}
