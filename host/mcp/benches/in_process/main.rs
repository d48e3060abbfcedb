//! The cost of the protocol's side inside one process, with no wire between: schemas, and lists of
//! tools. `cargo bench --workspace --exclude toolcell-tests --bench in_process` runs this and the
//! sandbox's own; `--quick` takes few samples, and a word after `--` is a filter.
//!
//! Must not hold: components, or anything that starts the binary.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run says so and ends")]

mod list;
mod schema;

use std::time::Duration;

use criterion::Criterion;

/// Each part runs this long before it counts.
const WARM_UP: Duration = Duration::from_secs(1);

/// Each part is measured this long.
const MEASUREMENT: Duration = Duration::from_secs(3);

fn main() {
    let mut criterion = Criterion::default().warm_up_time(WARM_UP).measurement_time(MEASUREMENT).configure_from_args();
    schema::measure(&mut criterion);
    list::measure(&mut criterion);
    criterion.final_summary();
}
