//! A component from bytes to something that can be called.
use criterion::Criterion;
use toolcell_guest::{Sandbox, ToolComponent};
use toolcell_wall::pool_sizes::SandboxOptions;

use crate::guest::built;

/// Measures the engine's start, and loading `tiny` and `echo`.
pub fn measure(criterion: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let mut group = criterion.benchmark_group("loading");
    group.sample_size(20);
    group.bench_function("the engine itself", |bencher| {
        bencher.iter(|| Sandbox::new(SandboxOptions::default()).unwrap());
    });
    for name in ["tiny", "echo"] {
        let bytes = built(name);
        let load = || ToolComponent::load(&sandbox, &bytes).unwrap();
        group.bench_function(format!("{name}, compiled"), |bencher| bencher.iter(load));
    }
    group.finish();
}
