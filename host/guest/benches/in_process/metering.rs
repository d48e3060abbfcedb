//! The cost of counting a guest's work and making it yield: on loops that do little else, and on a
//! Rust tool that computes.
use criterion::Criterion;
use tokio::runtime::Runtime;
use wasmtime::{Instance, Module};

use crate::engine::{METERINGS, Metered, call};
use crate::guest::{built, runtime};

/// The loops: an export, and the number of turns that takes about a millisecond.
const LOOPS: [(&str, i32); 2] = [("bytes", 32), ("numbers", 500_000)];

/// Measures every way to meter.
pub fn measure(criterion: &mut Criterion) {
    let runtime = runtime();
    let module = wat::parse_str(include_str!("loops.wat")).unwrap();
    let text_diff = built("text_diff");
    let arguments = texts();
    for (export, turns) in LOOPS {
        let mut group = criterion.benchmark_group(format!("metering a loop over {export}"));
        for metering in METERINGS {
            let metered = Metered::new(metering);
            let module = Module::new(metered.engine(), &module).unwrap();
            group.bench_function(metering.name, |bencher| {
                bencher.iter(|| run(&runtime, &metered, &module, export, turns));
            });
        }
        group.finish();
    }
    let mut group = criterion.benchmark_group("metering text_diff");
    for metering in METERINGS {
        let metered = Metered::new(metering);
        let pre = metered.prepare(&text_diff);
        group.bench_function(metering.name, |bencher| {
            bencher.iter(|| {
                let mut store = metered.store();
                runtime.block_on(async {
                    let instance = pre.instantiate_async(&mut store).await.unwrap();
                    call(&mut store, &instance, "text_diff", &arguments).await;
                });
            });
        });
    }
    group.finish();
}

fn run(runtime: &Runtime, metered: &Metered, module: &Module, export: &str, turns: i32) -> i32 {
    let mut store = metered.store();
    runtime.block_on(async {
        let instance = Instance::new_async(&mut store, module, &[]).await.unwrap();
        let function = instance.get_typed_func::<i32, i32>(&mut store, export).unwrap();
        function.call_async(&mut store, turns).await.unwrap()
    })
}

/// The arguments of `text_diff`: two texts of a few hundred lines. Every seventh line differs.
fn texts() -> String {
    let text = |changed: &str| -> String {
        let line = |number: usize| {
            let end = if number.is_multiple_of(7) { changed } else { "." };
            format!("line {number} says what {} said, and more{end}\n", number * number % 97)
        };
        (0..400).map(line).collect()
    };
    serde_json::json!({"before": text(" or less"), "after": text(", or so")}).to_string()
}
