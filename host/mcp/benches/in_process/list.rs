//! The list of tools that a start or a reload makes: every definition's schema compiled, then the
//! list itself.
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use toolcell_mcp::{McpTool, ToolList};

use crate::schema::{ECHO, definition};

pub fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("list of tools");
    for count in [1, 10, 50] {
        assert_eq!(list(count).tools().len(), count);
        group.bench_with_input(BenchmarkId::new("tools", count), &count, |bencher, count| {
            bencher.iter(|| list(*count));
        });
    }
    group.finish();
}

fn list(count: usize) -> ToolList {
    let tools = (0..count).map(|copy| {
        let definition = definition(&format!("c{copy}_echo"), ECHO);
        Arc::new(McpTool::compile(definition).unwrap())
    });
    ToolList::new(1, tools.collect()).unwrap()
}
