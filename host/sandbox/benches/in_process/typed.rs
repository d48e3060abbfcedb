//! Functions over WIT values: what converting a scalar costs, both ways, and what a long text costs.
use std::sync::Arc;

use criterion::{Criterion, Throughput};
use toolcell_policy::Limits;
use toolcell_sandbox::{CallInput, NoCaller, Reach, Sandbox, SandboxOptions, Supply, ToolComponent};

use crate::guest::runtime;

/// Scalars of one call: 1,000 records of eight fields.
const RECORDS: usize = 1_000;
const FIELDS: usize = 8;

/// Bytes of the text: a mebibyte.
const TEXT_BYTES: usize = 1 << 20;

/// Functions that give back where their argument is, be it a text or a list.
const SAME: &str = r#"(component
  (core module $m
    (memory (export "memory") 128)
    (global $next (mut i32) (i32.const 16))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "same") (param i32 i32) (result i32)
      (i32.store (i32.const 8) (local.get 0))
      (i32.store (i32.const 12) (local.get 1))
      (i32.const 8)))
  (core instance $i (instantiate $m))
  (type $row' (record (field "a" u32) (field "b" u32) (field "c" s64) (field "d" f64)
    (field "e" bool) (field "f" u8) (field "g" f32) (field "h" s16)))
  (export $row "row" (type $row'))
  (func $text (param "it" string) (result string)
    (canon lift (core func $i "same") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (export "text" (func $text))
  (func $rows (param "it" (list $row)) (result (list $row))
    (canon lift (core func $i "same") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (export "rows" (func $rows)))"#;

/// Measures a call with nothing to convert, one with 8,000 scalars each way, and one with a mebibyte of text each way.
pub fn measure(criterion: &mut Criterion) {
    let (sandbox, runtime) = (Sandbox::new(SandboxOptions::default()).unwrap(), runtime());
    let (limits, reach) = (Limits::default(), Reach::sealed("bench"));
    let component = ToolComponent::load(&sandbox, &wat::parse_str(SAME).unwrap()).unwrap();
    let row = r#"{"a":4294967295,"b":7,"c":-9007199254740991,"d":1.5,"e":true,"f":255,"g":-0.25,"h":-32768}"#;
    let rows = vec![row; RECORDS].join(",");
    let text = "x".repeat(TEXT_BYTES - 64);
    let cases = [
        ("nothing", "text", r#"{"it":""}"#.to_owned(), 0),
        ("8,000 scalars both ways", "rows", format!("{{\"it\":[{rows}]}}"), RECORDS * FIELDS),
        ("1 MiB of text both ways", "text", format!("{{\"it\":\"{text}\"}}"), 0),
    ];
    let mut group = criterion.benchmark_group("call over WIT values");
    for (name, tool, arguments, scalars) in cases {
        if scalars > 0 {
            group.throughput(Throughput::Elements(scalars as u64));
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let caller = Arc::new(NoCaller);
                let (arguments_json, supply) = (&*arguments, Supply::Fresh);
                let program = None;
                let input = CallInput { tool, arguments_json, program, limits: &limits, reach: &reach, caller, supply };
                runtime.block_on(component.call_tool(input)).outcome.unwrap()
            });
        });
    }
    group.finish();
}
