//! The one ceiling of all waits in tests. A test waits for a state; the ceiling only turns a state
//! that never comes into a failure. Needs nothing but the standard library, so that unit tests of
//! the host's crates can have this file as a module too.

use std::sync::OnceLock;
use std::time::Duration;

/// The ceiling on a machine with nothing else to do.
const QUIET: Duration = Duration::from_secs(60);

/// More than this many programs for each processor lengthen it no further.
const FACTOR_MAX: f64 = 4.0;

/// The variable with another factor than the one that the machine's load gives.
const FACTOR: &str = "TEST_PATIENCE";

/// Time that a test waits for anything before it fails: 60 s times a factor of this machine, which
/// is read once. Figures of time belong into the benchmark.
#[must_use]
pub fn patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| QUIET.mul_f64(named().unwrap_or_else(crowd).clamp(1.0, FACTOR_MAX)))
}

fn named() -> Option<f64> {
    std::env::var(FACTOR).ok()?.parse().ok()
}

/// The programs that wanted each processor during the last minute. 1 where no file says so.
fn crowd() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(1.0);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    load / f64::from(u32::try_from(processors).unwrap_or(1))
}
