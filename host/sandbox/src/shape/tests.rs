//! The shapes of small components written by hand, loaded and called in a real sandbox.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::sync::{Arc, LazyLock};

use toolcell_policy::{Limit, Limits};

use crate::{
    CallInput, CallReport, Capabilities, Descriptions, Failure, InstanceSource, LoadError, NoCaller, Sandbox,
    SandboxOptions, ShapeName, ToolComponent, contract,
};

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxOptions { calls_max: 8, ..SandboxOptions::default() }).unwrap());

fn load(text: &str) -> Result<ToolComponent, LoadError> {
    ToolComponent::load(&SANDBOX, &wat::parse_str(text).unwrap())
}

async fn call(component: &ToolComponent, tool: &str, arguments_json: &str) -> CallReport<contract::CallResult> {
    let (limits, capabilities) = (Limits::default(), Capabilities::sealed(""));
    let (caller, source) = (Arc::new(NoCaller), InstanceSource::Fresh);
    component
        .call_tool(CallInput {
            tool,
            arguments_json,
            program: None,
            limits: &limits,
            capabilities: &capabilities,
            caller,
            source,
        })
        .await
}

async fn structured(component: &ToolComponent, tool: &str, arguments_json: &str) -> String {
    call(component, tool, arguments_json).await.outcome.unwrap().structured_json.unwrap()
}

/// Functions at the top and in an interface; each adds two numbers.
const ADDERS: &str = r#"(component
  (core module $m (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
  (core instance $i (instantiate $m))
  (func $add (param "left-hand" s32) (param "right" s32) (result s32) (canon lift (core func $i "add")))
  (export "add-numbers" (func $add))
  (instance $sums (export "add-numbers" (func $add)) (export "total" (func $add)))
  (export "acme:math/sums@1.0.0" (instance $sums))
  (instance $run (export "run" (func $add)))
  (export "wasi:other/run@0.2.0" (instance $run)))"#;

#[tokio::test]
async fn each_function_is_a_tool_and_an_interface_is_named_only_where_it_must_be() {
    let component = load(ADDERS).unwrap();
    assert_eq!(component.shape(), ShapeName::Typed);
    let tools = component.list_tools(&Limits::default(), &Descriptions::default()).await.outcome.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add_numbers", "sums_add_numbers", "total"]);
    for tool in names {
        let sum = structured(&component, tool, r#"{"left_hand":2,"right":-5}"#).await;
        assert_eq!(sum, r#"{"result":-3}"#, "{tool}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_by_their_path() {
    let component = load(ADDERS).unwrap();
    let failure = call(&component, "total", r#"{"left_hand":2,"right":"5"}"#).await.outcome.unwrap_err();
    let expected = "$.right: expected an integer from -2147483648 to 2147483647";
    assert_eq!(failure, Failure::InvalidInput(expected.to_owned()));
}

#[test]
fn functions_of_one_name_are_refused_by_both_names() {
    let text = r#"(component
      (core module $m (func (export "f")))
      (core instance $i (instantiate $m))
      (func $f (canon lift (core func $i "f")))
      (instance $one (export "go" (func $f)))
      (export "acme:a/one@1.0.0" (instance $one))
      (export "acme:b/one@1.0.0" (instance $one)))"#;
    let error = load(text).err().unwrap();
    assert_eq!(error.to_string(), "\"acme:a/one.go\" and \"acme:b/one.go\" would both be the tool \"one_go\"");
}

#[test]
fn functions_that_json_cannot_serve_are_listed_with_the_reason() {
    let text = r#"(component
      (core module $m (func (export "f") (param i32)) (func (export "g")))
      (core instance $i (instantiate $m))
      (type $handle' (resource (rep i32)))
      (export $handle "handle" (type $handle'))
      (func $f (param "it" (own $handle)) (canon lift (core func $i "f")))
      (export "take" (func $f))
      (func $g (canon lift (core func $i "g")))
      (export "go" (func $g)))"#;
    let component = load(text).unwrap();
    let left_out: Vec<String> = component.left_out().iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["\"take\" (its parameter \"it\" has a resource)"]);
}

#[test]
fn a_component_that_exports_nothing_is_no_tool() {
    assert!(matches!(load("(component)").err().unwrap(), LoadError::NotATool { .. }));
}

/// A component that imports four interfaces of WASI in one minor version, and gives a random
/// number.
fn of_wasi(version: &str) -> String {
    let import = |name: &str, functions: &str| format!("(import \"wasi:{name}@{version}\" (instance {functions}))");
    format!(
        "(component {} {} {} {}
          (alias export $random \"get-random-u64\" (func $number))
          (core func $number' (canon lower (func $number)))
          (core module $m (import \"\" \"number\" (func $number (result i64))) (func (export \"f\") (result i64) (call $number)))
          (core instance $i (instantiate $m (with \"\" (instance (export \"number\" (func $number'))))))
          (func $f (result u64) (canon lift (core func $i \"f\")))
          (export \"any-number\" (func $f)))",
        import("random/random", "(export \"get-random-u64\" (func (result u64)))")
            .replacen("(instance", "(instance $random", 1),
        import("clocks/monotonic-clock", "(export \"now\" (func (result u64)))"),
        import("cli/environment", "(export \"get-arguments\" (func (result (list string))))"),
        import("random/insecure-seed", "(export \"insecure-seed\" (func (result (tuple u64 u64))))"),
    )
}

#[tokio::test]
async fn components_of_every_minor_version_of_wasi_run() {
    for minor in 0..=12 {
        let component = load(&of_wasi(&format!("0.2.{minor}"))).unwrap_or_else(|error| panic!("0.2.{minor}: {error}"));
        assert!(structured(&component, "any_number", "{}").await.starts_with("{\"result\":"), "0.2.{minor}");
    }
}

#[test]
fn components_of_the_next_wasi_are_refused_by_name() {
    let error = load(&of_wasi("0.3.0")).err().unwrap();
    assert!(error.to_string().contains("wasi:random/random@0.3.0"), "{error}");
    assert!(error.hint().contains("WASI 0.2"), "{}", error.hint());
}

#[test]
fn async_functions_are_refused_as_what_they_are() {
    let text = r#"(component
      (core module $m (func (export "f") (result i32) i32.const 0))
      (core instance $i (instantiate $m))
      (type $f' (func async (result u32)))
      (func $f (type $f') (canon lift (core func $i "f")))
      (export "f" (func $f)))"#;
    let error = load(text).err().unwrap();
    assert!(matches!(error, LoadError::Async { .. }), "{error:?}");
    assert!(error.hint().contains("WASI 0.2"), "{}", error.hint());
}

/// This many functions of one signature, whose record and parameter have names of this length.
fn wide(functions: usize, letters: usize) -> String {
    let name = "a".repeat(letters);
    let fields: String = (0..15).map(|number| format!("(field \"f{number}-{name}\" u8)")).collect();
    let exports: String = (0..functions).map(|number| format!("(export \"go{number}\" (func $go))")).collect();
    let params = "(param i32)".repeat(16);
    format!(
        "(component (core module $m (func (export \"go\") {params})) (core instance $i (instantiate $m))
           (type $wide' (record {fields})) (export $wide \"wide\" (type $wide'))
           (func $go (param \"it\" $wide) (param \"p-{name}\" u8) (canon lift (core func $i \"go\"))) {exports})"
    )
}

#[tokio::test]
async fn names_of_types_count_for_each_function_that_has_them_before_any_is_described() {
    let listed = async |functions, letters| {
        let component = load(&wide(functions, letters)).unwrap();
        assert_eq!(component.functions(), Some(functions));
        component.list_tools(&Limits::default(), &Descriptions::default()).await.outcome
    };
    assert_eq!(listed(200, 40).await.unwrap().len(), 200);
    let failure = listed(900, 1_000).await.unwrap_err();
    assert_eq!(failure, Failure::over(Limit::HostData, &Limits::default()));
    // The estimate is near the size of the text, and not below it.
    for letters in [1, 100, 2_000] {
        let tools = listed(3, letters).await.unwrap();
        assert!(tools.iter().all(|tool| tool.input_schema_json.len() < 3 * (15 * letters + 2_000)));
    }
    let Err(LoadError::Names { bytes_max }) = load(&wide(700, 3_000)).map(|_| ()) else { panic!("its names are kept") };
    assert_eq!(bytes_max, 4 << 20);
}
