//! Functions over WIT values: the cost of converting a scalar both ways, and of a long text and
//! long bytes there and back. Next to them stands the cost of reading, copying and writing the same
//! text without a guest.
use std::sync::Arc;

use criterion::{Criterion, Throughput};
use toolcell_guest::{CallInput, GuestGrants, InstanceSource, Sandbox, ToolComponent};
use toolcell_policy::Limits;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::pool_sizes::SandboxOptions;

use crate::guest::runtime;

/// Scalars of one call: 1,000 records of eight fields.
const RECORDS: usize = 1_000;
const FIELDS: usize = 8;

/// Bytes of the text: a mebibyte.
const TEXT_BYTES: usize = 1 << 20;

/// Bytes of the list of bytes: as values of the engine, each takes 32 bytes of `host_data`.
const LIST_BYTES: usize = 256 << 10;

/// Functions that return the address of their argument, a text or a list.
const SAME: &str = r#"(component
  (core module $m
    (memory (export "memory") 128)
    (global $next (mut i32) (i32.const 16))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "takes") (param i32 i32) (result i32) (local.get 1))
    (func (export "fills") (param i32) (result i32)
      (memory.fill (i32.const 65536) (i32.const 0x78) (local.get 0))
      (local.get 0))
    (func (export "gives") (param i32) (result i32)
      (memory.fill (i32.const 65536) (i32.const 0x78) (local.get 0))
      (i32.store (i32.const 8) (i32.const 65536))
      (i32.store (i32.const 12) (local.get 0))
      (i32.const 8))
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
  (func $bytes (param "it" (list u8)) (result (list u8))
    (canon lift (core func $i "same") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (export "bytes" (func $bytes))
  (func $takes (param "it" string) (result u32)
    (canon lift (core func $i "takes") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (export "takes" (func $takes))
  (func $fills (param "length" u32) (result u32) (canon lift (core func $i "fills")))
  (export "fills" (func $fills))
  (func $gives (param "length" u32) (result string)
    (canon lift (core func $i "gives") (memory (core memory $i "memory"))))
  (export "gives" (func $gives))
  (func $rows (param "it" (list $row)) (result (list $row))
    (canon lift (core func $i "same") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (export "rows" (func $rows)))"#;

/// Measures a call with nothing to convert and one with 8,000 scalars each way. Then it measures a
/// mebibyte of text each way, to the guest and from it, and a list of bytes each way.
pub fn measure(criterion: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let runtime = runtime();
    let limits = Limits::default();
    let capabilities = GuestGrants::sealed("bench");
    let component = ToolComponent::load(&sandbox, &wat::parse_str(SAME).unwrap()).unwrap();
    let row = r#"{"a":4294967295,"b":7,"c":-9007199254740991,"d":1.5,"e":true,"f":255,"g":-0.25,"h":-32768}"#;
    let rows = vec![row; RECORDS].join(",");
    let text = "x".repeat(TEXT_BYTES - 64);
    let cases = [
        ("nothing", "text", r#"{"it":""}"#.to_owned(), 0),
        ("1 MiB of text both ways", "text", format!("{{\"it\":\"{text}\"}}"), 0),
        ("1 MiB of text to the guest", "takes", format!("{{\"it\":\"{text}\"}}"), 0),
        ("1 MiB of text from the guest", "gives", format!("{{\"length\":{}}}", text.len()), 0),
        ("1 MiB filled by the guest, and none of it given", "fills", format!("{{\"length\":{}}}", text.len()), 0),
        ("256 KiB of bytes both ways", "bytes", format!("{{\"it\":\"{}\"}}", "AAAA".repeat(LIST_BYTES / 3)), 0),
        ("8,000 scalars both ways", "rows", format!("{{\"it\":[{rows}]}}"), RECORDS * FIELDS),
    ];
    let mut group = criterion.benchmark_group("call over WIT values");
    let arguments = format!("{{\"it\":\"{text}\"}}");
    group.bench_function("1 MiB of text read, copied in and out, and written, without a guest", |bencher| {
        let mut memory = vec![0_u8; TEXT_BYTES];
        bencher.iter(|| {
            let read: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&arguments).unwrap();
            let text = read.get("it").and_then(serde_json::Value::as_str).unwrap();
            let memory = memory.get_mut(..text.len()).unwrap();
            memory.copy_from_slice(text.as_bytes());
            let back = String::from_utf8(memory.to_vec()).unwrap();
            serde_json::to_string(&serde_json::Map::from_iter([("result".to_owned(), back.into())])).unwrap()
        });
    });
    for (name, tool, arguments, scalars) in cases {
        if scalars > 0 {
            group.throughput(Throughput::Elements(scalars as u64));
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let caller = Arc::new(NoCaller);
                let arguments_json = &*arguments;
                let source = InstanceSource::Fresh;
                let program = None;
                let input = CallInput {
                    tool,
                    arguments_json,
                    program,
                    limits: &limits,
                    capabilities: &capabilities,
                    caller,
                    source,
                };
                runtime.block_on(component.call_tool(input)).report.outcome.unwrap()
            });
        });
    }
    group.finish();
}
