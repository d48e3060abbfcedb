//! The components of a catalog, as a start or a reload loads them: from the cache, then asked for
//! their tools. The host does this for several components at once; here they follow one another.
use criterion::{BenchmarkId, Criterion};
use tokio::runtime::Runtime;
use toolcell_policy::Limits;
use toolcell_sandbox::{Descriptions, Sandbox, ToolComponent};

use crate::guest::{built, distinct, runtime};
use crate::loading::caching;

/// Measures 1, 10 and 50 components that were compiled before.
pub fn measure(criterion: &mut Criterion) {
    let (folder, runtime, echo) = (tempfile::tempdir().unwrap(), runtime(), built("echo"));
    let sandbox = caching(&folder);
    let components: Vec<Vec<u8>> = (0..50).map(|copy| distinct(&echo, &format!("copy {copy}"))).collect();
    let mut group = criterion.benchmark_group("catalog, code cached");
    group.sample_size(20);
    for count in [1, 10, 50] {
        let some: Vec<&[u8]> = components.iter().take(count).map(Vec::as_slice).collect();
        assert_eq!(tools(&runtime, &sandbox, &some), count);
        group.bench_with_input(BenchmarkId::new("components", count), &some, |bencher, some| {
            bencher.iter(|| tools(&runtime, &sandbox, some));
        });
    }
    group.finish();
}

/// Loads each component, and counts the tools that they list.
fn tools(runtime: &Runtime, sandbox: &Sandbox, components: &[&[u8]]) -> usize {
    let listed = components.iter().map(|bytes| {
        let component = ToolComponent::load(sandbox, bytes).unwrap();
        let listed = runtime.block_on(component.list_tools(&Limits::default(), &Descriptions::default()));
        listed.outcome.unwrap().len()
    });
    listed.sum()
}
