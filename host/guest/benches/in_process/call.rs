//! A whole call as the host makes it: slot, fresh store and instance under every limit, export,
//! answer, and the release of all of them.
use std::sync::Arc;

use criterion::Criterion;
use toolcell_guest::{CallInput, GuestGrants, InstanceSource, Sandbox, ToolComponent};
use toolcell_policy::Limits;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::pool_sizes::SandboxOptions;

use crate::guest::{ARGUMENTS, built, runtime};

/// Measures calls of a component of 5 KB without imports, and of one written in Rust with its
/// standard library.
pub fn measure(criterion: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let limits = Limits::default();
    let runtime = runtime();
    let capabilities = GuestGrants::sealed("bench");
    let mut group = criterion.benchmark_group("call on a fresh instance");
    for tool in ["tiny", "echo"] {
        let component = ToolComponent::load(&sandbox, &built(tool)).unwrap();
        group.bench_function(tool, |bencher| {
            bencher.iter(|| {
                let caller = Arc::new(NoCaller);
                let input = CallInput {
                    program: None,
                    tool,
                    arguments_json: ARGUMENTS,
                    limits: &limits,
                    capabilities: &capabilities,
                    caller,
                    source: InstanceSource::Fresh,
                };
                runtime.block_on(component.call_tool(input)).report.outcome.unwrap()
            });
        });
    }
    group.finish();
}
