//! What the host's parts cost inside one process, with no wire between: calls, instances, metering, decisions, loading, schemas,
//! conversion of values, a whole catalog. `cargo bench --workspace --exclude toolcell-tests --bench in_process`; `--quick` takes few samples, and
//! a word after `--` is a filter.
//!
//! Must not hold: anything that starts the binary or speaks MCP; that is `toolcell-bench`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run says so and ends")]

mod call;
mod catalog;
mod engine;
mod guest;
mod instance;
mod loading;
mod metering;
mod policy;
mod schema;
mod typed;

use std::time::Duration;

use criterion::Criterion;

/// How long each part runs before it counts.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long each part is measured: all of them together take three minutes.
const MEASUREMENT: Duration = Duration::from_secs(3);

fn main() {
    let mut criterion = Criterion::default().warm_up_time(WARM_UP).measurement_time(MEASUREMENT).configure_from_args();
    call::measure(&mut criterion);
    instance::measure(&mut criterion);
    metering::measure(&mut criterion);
    policy::measure(&mut criterion);
    schema::measure(&mut criterion);
    typed::measure(&mut criterion);
    loading::measure(&mut criterion);
    catalog::measure(&mut criterion);
    criterion.final_summary();
}
