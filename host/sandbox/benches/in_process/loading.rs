//! A component from bytes to something that can be called: compiled, or found compiled.
use criterion::Criterion;
use tempfile::TempDir;
use toolcell_sandbox::{CACHE_BYTES_MAX, CodeCache, CodeOrigin, Sandbox, SandboxOptions, ToolComponent};

use crate::guest::built;

/// A sandbox that keeps compiled code in this folder.
pub fn caching(folder: &TempDir) -> Sandbox {
    let root = folder.path();
    let cache = CodeCache::open(&root.join("code"), &root.join("state/key"), CACHE_BYTES_MAX).unwrap();
    Sandbox::new(SandboxOptions { cache: Some(cache.into()), ..SandboxOptions::default() }).unwrap()
}

/// Measures the engine's start, and loading `tiny` and `echo`.
pub fn measure(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let (plain, caching) = (Sandbox::new(SandboxOptions::default()).unwrap(), caching(&folder));
    let mut group = criterion.benchmark_group("loading");
    group.sample_size(20);
    group.bench_function("the engine itself", |bencher| {
        bencher.iter(|| Sandbox::new(SandboxOptions::default()).unwrap());
    });
    for name in ["tiny", "echo"] {
        let bytes = built(name);
        let load = |sandbox| ToolComponent::load(sandbox, &bytes).unwrap().code_origin();
        group.bench_function(format!("{name}, compiled"), |bencher| bencher.iter(|| load(&plain)));
        load(&caching);
        group.bench_function(format!("{name}, found compiled"), |bencher| {
            bencher.iter(|| assert_eq!(load(&caching), CodeOrigin::Cache));
        });
    }
    group.finish();
}
