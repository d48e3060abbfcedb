//! A catalog as a start or a reload builds it: components loaded from the cache, asked for their tools, schemas compiled,
//! the list made. The host does this for several components at once; here it is one after another.
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use tokio::runtime::Runtime;
use toolcell_mcp::{DefinitionBounds, Tool, ToolList};
use toolcell_policy::Limits;
use toolcell_sandbox::{Descriptions, Sandbox, ToolComponent};

use crate::guest::{built, distinct, runtime};
use crate::loading::caching;
use crate::schema::definition;

/// Measures catalogs of 1, 10 and 50 components that have been compiled before.
pub fn measure(criterion: &mut Criterion) {
    let (folder, runtime, echo) = (tempfile::tempdir().unwrap(), runtime(), built("echo"));
    let sandbox = caching(&folder);
    let components: Vec<Vec<u8>> = (0..50).map(|copy| distinct(&echo, &format!("copy {copy}"))).collect();
    let mut group = criterion.benchmark_group("catalog, code cached");
    group.sample_size(20);
    for count in [1, 10, 50] {
        let some: Vec<&[u8]> = components.iter().take(count).map(Vec::as_slice).collect();
        assert_eq!(build(&runtime, &sandbox, &some).tools().len(), count);
        group.bench_with_input(BenchmarkId::new("components", count), &some, |bencher, some| {
            bencher.iter(|| build(&runtime, &sandbox, some));
        });
    }
    group.finish();
}

fn build(runtime: &Runtime, sandbox: &Sandbox, components: &[&[u8]]) -> ToolList {
    let tools = components.iter().enumerate().map(|(copy, bytes)| {
        let component = ToolComponent::load(sandbox, bytes).unwrap();
        let listed =
            runtime.block_on(component.list_tools(&Limits::default(), &Descriptions::default())).outcome.unwrap();
        let tool = listed.first().unwrap();
        let definition = definition(&format!("c{copy}_{}", tool.name), &tool.input_schema_json);
        Arc::new(Tool::compile(definition, &DefinitionBounds::default()).unwrap())
    });
    ToolList::new(1, tools.collect()).unwrap()
}
