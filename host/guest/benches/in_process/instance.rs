//! The parts of a call: a store, an instance in it, and the call of an instance that waits for one.
use criterion::{BatchSize, Criterion};

use crate::engine::{METERINGS, Metered, call};
use crate::guest::{ARGUMENTS, built, runtime};

/// Instances that wait at once.
const WAITING: u64 = 16;

/// The tool: Rust with its standard library, as most are.
const TOOL: &str = "echo";

/// Measures it, metered in every way.
pub fn measure(criterion: &mut Criterion) {
    let runtime = runtime();
    let component = built(TOOL);
    let mut group = criterion.benchmark_group(format!("instance of {TOOL}"));
    for metering in METERINGS {
        let metered = Metered::new(metering);
        let pre = metered.prepare(&component);
        group.bench_function(format!("fresh, {}", metering.name), |bencher| {
            bencher.iter(|| {
                let mut store = metered.store();
                runtime.block_on(pre.instantiate_async(&mut store)).unwrap();
            });
        });
        let wait = || {
            let mut store = metered.store();
            let instance = runtime.block_on(pre.instantiate_async(&mut store)).unwrap();
            (store, instance)
        };
        group.bench_function(format!("call of a waiting one, {}", metering.name), |bencher| {
            let answer = |(mut store, instance)| {
                runtime.block_on(call(&mut store, &instance, TOOL, ARGUMENTS));
                // Dropping it is part of the cost of a fresh one.
                store
            };
            bencher.iter_batched(wait, answer, BatchSize::NumIterations(WAITING));
        });
    }
    group.finish();
}
