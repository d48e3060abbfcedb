//! What the host's parts cost inside one process, with no wire between: calls, instances, metering, loading, schemas,
//! a whole catalog. `cargo bench --workspace --exclude toolcell-tests --bench in_process`; `--quick` takes few samples, and
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
mod schema;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    call::measure(&mut criterion);
    instance::measure(&mut criterion);
    metering::measure(&mut criterion);
    schema::measure(&mut criterion);
    loading::measure(&mut criterion);
    catalog::measure(&mut criterion);
    criterion.final_summary();
}
