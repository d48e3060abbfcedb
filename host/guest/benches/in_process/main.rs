//! The cost of a guest inside one process, with no wire between: calls, instances, metering,
//! conversion, policy and loading. `cargo bench --locked --workspace
//! --exclude toolcell-tests --bench in_process` runs this and the protocol's own; `--quick` takes
//! few samples, and a word after `--` is a filter.
//!
//! Must not hold: anything that starts the binary or speaks MCP; that is `toolcell-bench`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run says so and ends")]

mod call;
mod engine;
mod guest;
mod instance;
mod loading;
mod metering;
mod policy;
mod typed;

use std::time::Duration;

use criterion::Criterion;

/// Each part runs this long before it counts.
const WARM_UP: Duration = Duration::from_secs(1);

/// Each part is measured this long: all of them together take three minutes.
const MEASUREMENT: Duration = Duration::from_secs(3);

fn main() {
    let mut criterion = Criterion::default().warm_up_time(WARM_UP).measurement_time(MEASUREMENT).configure_from_args();
    call::measure(&mut criterion);
    instance::measure(&mut criterion);
    metering::measure(&mut criterion);
    policy::measure(&mut criterion);
    typed::measure(&mut criterion);
    loading::measure(&mut criterion);
    criterion.final_summary();
}
