//! The shapes of small components written by hand, loaded and called in a real sandbox.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::sync::{Arc, LazyLock};

use toolcell_policy::{Limit, Limits};

use crate::{CallInput, Descriptions, GuestGrants, InstanceSource, LoadError, Sandbox, ToolComponent};
use toolcell_wall::caller::NoCaller;
use toolcell_wall::contract;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::load::facts::{GuestEngine, ShapeName};
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_wall::report::CallReport;

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxOptions { calls_max: 8, ..SandboxOptions::default() }).unwrap());

fn async_sandbox() -> Sandbox {
    Sandbox::new(SandboxOptions { calls_max: 1, engine: GuestEngine::Async, ..SandboxOptions::default() }).unwrap()
}

fn load(text: &str) -> Result<ToolComponent, LoadError> {
    ToolComponent::load(&SANDBOX, &wat::parse_str(text).unwrap())
}

async fn call(component: &ToolComponent, tool: &str, arguments_json: &str) -> CallReport<contract::GuestResult> {
    let limits = Limits::default();
    let capabilities = GuestGrants::sealed("");
    let caller = Arc::new(NoCaller);
    let source = InstanceSource::Fresh;
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
        .report
}

async fn structured(component: &ToolComponent, tool: &str, arguments_json: &str) -> String {
    call(component, tool, arguments_json).await.outcome.unwrap().structured_json.unwrap()
}

/// Functions at the top level and in an interface; each adds two numbers.
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
async fn types_that_a_component_imports_by_name_are_nothing_that_a_host_has_to_offer() {
    // What a world with a type of its own becomes, and one that uses a type of an interface.
    let component = load(
        r#"(component
        (type $r (record (field "x" s32) (field "y" s32)))
        (import "point" (type $point (eq $r)))
        (import "acme:paint/types@0.1.0" (instance $types
            (type $c (enum "red" "green")) (export "colour" (type (eq $c)))))
        (alias export $types "colour" (type $colour))
        (core module $m (func (export "f") (param i32 i32 i32) (result i32)
            (i32.add (i32.add (local.get 0) (local.get 1)) (local.get 2))))
        (core instance $i (instantiate $m))
        (func $f (param "at" $point) (param "colour" $colour) (result s32) (canon lift (core func $i "f")))
        (export "paint" (func $f)))"#,
    )
    .unwrap();
    assert_eq!(component.inspection().imports(), [""; 0]);
    let painted = structured(&component, "paint", r#"{"at": {"x": 30, "y": 11}, "colour": "green"}"#).await;
    assert_eq!(painted, r#"{"result":42}"#);
}

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
    assert_eq!(failure, CallFailure::InvalidInput(expected.to_owned()));
}

/// A component that exports interfaces with these names, each with a function that returns another
/// number.
fn interfaces(names: &[&str]) -> String {
    let mut text = "(component (core module $m".to_owned();
    for number in 0..names.len() {
        text.push_str(&format!("(func (export \"f{number}\") (result i32) i32.const {number})"));
    }
    text.push_str(") (core instance $i (instantiate $m))");
    for (number, name) in names.iter().enumerate() {
        text.push_str(&format!(
            "(func $f{number} (result u32) (canon lift (core func $i \"f{number}\")))
             (instance $i{number} (export \"go\" (func $f{number}))) (export \"{name}\" (instance $i{number}))"
        ));
    }
    text + ")"
}

#[tokio::test]
async fn functions_of_one_name_are_told_apart_and_called_by_each_of_their_names() {
    let component = load(&interfaces(&["x:lib/api@1.0.0", "x:lib/api@2.0.0", "y:lib/api@1.0.0"])).unwrap();
    assert_eq!(component.left_out(), []);
    for (tool, answer) in [
        ("x_lib_api_1_0_0_go", 0),
        ("x_lib_api_2_0_0_go", 1),
        ("y_lib_api_go", 2),
        ("x:lib/api@2.0.0.go", 1),
        ("y:lib/api.go", 2),
    ] {
        assert_eq!(structured(&component, tool, "{}").await, format!("{{\"result\":{answer}}}"), "{tool}");
    }
}

#[tokio::test]
async fn the_functions_that_the_manifest_names_are_the_tools() {
    let component = load(&interfaces(&["x:lib/api@1.0.0", "x:lib/api@2.0.0", "y:lib/api@1.0.0"])).unwrap();
    let named = |function: &str, tool: &str| (function.to_owned(), tool.to_owned());
    let exports = vec![named("y:lib/api.go", "second"), named("x:lib/api@2.0.0.go", "first")];
    let descriptions = Descriptions { exports, ..Descriptions::default() };
    let tools = component.list_tools(&Limits::default(), &descriptions).await.outcome.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["second", "first"]);
}

/// A component with these exports, made from the core functions `f: (i32) -> i32` and `run: () ->
/// i32`.
fn exporting(exports: &str) -> String {
    format!(
        "(component (core module $m
            (func (export \"f\") (param i32) (result i32) local.get 0) (func (export \"run\") (result i32) i32.const 0))
          (core instance $i (instantiate $m))
          (func $run (result (result)) (canon lift (core func $i \"run\")))
          (instance $runs (export \"run\" (func $run)))
          (func $f (param \"it\" u32) (result u32) (canon lift (core func $i \"f\")))
          (instance $api (export \"same\" (func $f)))
          {exports})"
    )
}

#[test]
fn a_program_with_functions_is_both_and_one_bad_export_takes_no_other_along() {
    const RUN: &str = "(export \"wasi:cli/run@0.2.3\" (instance $runs))";
    const API: &str = "(export \"probe:both/api@1.0.0\" (instance $api))";
    const NO_RUN: &str = "(export \"wasi:cli/run@0.2.3\" (instance $api))";
    for (exports, shape, is_program, left_out) in [
        (format!("{RUN} {API}"), ShapeName::Typed, true, vec![]),
        (RUN.to_owned(), ShapeName::Program, true, vec![]),
        (API.to_owned(), ShapeName::Typed, false, vec![]),
        (
            format!("{NO_RUN} {API}"),
            ShapeName::Typed,
            false,
            vec!["\"wasi:cli/run.run\" (\"wasi:cli/run@0.2.3\" has no function run: func() -> result)"],
        ),
    ] {
        let component = load(&exporting(&exports)).unwrap();
        assert_eq!((component.shape(), component.is_program()), (shape, is_program), "{exports}");
        let told: Vec<String> = component.left_out().iter().map(ToString::to_string).collect();
        assert_eq!(told, left_out, "{exports}");
    }
    assert!(matches!(load(&exporting(NO_RUN)).err().unwrap(), LoadError::Mismatch { .. }));
}

#[tokio::test]
async fn what_a_toolchain_prepares_a_component_with_is_not_a_tool() {
    let with = |parameters: &str| {
        format!(
            r#"(component (core module $m (memory (export "m") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
                (func (export "init") (param i32 i32 i32 i32 i32 i32 i32 i32)) (func (export "go")))
              (core instance $i (instantiate $m))
              (func (export "init") {parameters} (canon lift (core func $i "init")
                (memory $i "m") (realloc (func $i "realloc"))))
              (func (export "go") (canon lift (core func $i "go"))))"#
        )
    };
    let of_quickjs = r#"(param "shim" string) (param "script" string) (param "entry-path" (option string)) (param "disable-gc" bool)"#;
    let of_an_author =
        r#"(param "shim" string) (param "script" string) (param "path" (option string)) (param "disable-gc" bool)"#;
    for (parameters, expected) in [(of_quickjs, vec!["go"]), (of_an_author, vec!["init", "go"])] {
        let component = load(&with(parameters)).unwrap();
        let tools = component.list_tools(&Limits::default(), &Descriptions::default()).await.outcome.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expected);
        assert_eq!(component.left_out(), []);
    }
}

#[test]
fn functions_of_resources_are_listed_with_the_reason() {
    let text = r#"(component
      (core module $m (func (export "make") (result i32) i32.const 1) (func (export "use") (param i32)))
      (core instance $i (instantiate $m))
      (type $thing' (resource (rep i32)))
      (component $inner
        (import "thing" (type $t (sub resource)))
        (import "make" (func $make (result (own $t)))) (import "use" (func $use (param "self" (borrow $t))))
        (import "any" (func $any (result (own $t))))
        (export $e "thing" (type $t))
        (export "[constructor]thing" (func $make) (func (result (own $e))))
        (export "[method]thing.use" (func $use) (func (param "self" (borrow $e))))
        (export "[static]thing.any" (func $any) (func (result (own $e)))))
      (func $make (result (own $thing')) (canon lift (core func $i "make")))
      (func $use (param "self" (borrow $thing')) (canon lift (core func $i "use")))
      (instance $things (instantiate $inner
        (with "thing" (type $thing')) (with "make" (func $make)) (with "use" (func $use)) (with "any" (func $make))))
      (export "a:b/things" (instance $things)))"#;
    let component = load(text).unwrap();
    let left_out: Vec<String> = component.left_out().iter().map(ToString::to_string).collect();
    assert_eq!(
        left_out,
        [
            "\"a:b/things.[constructor]thing\" (it makes a resource)",
            "\"a:b/things.[method]thing.use\" (it is a method of a resource)",
            "\"a:b/things.[static]thing.any\" (it is a static function of a resource)",
        ]
    );
    assert_eq!(component.functions(), Some(Vec::new()));
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
fn a_component_that_exports_nothing_is_not_a_tool() {
    assert!(matches!(load("(component)").err().unwrap(), LoadError::NotATool { .. }));
}

/// A component that imports four interfaces of WASI in one minor version, and returns a random
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
    let error = load(&of_wasi("0.4.0")).err().unwrap();
    assert!(error.to_string().contains("wasi:random/random@0.4.0 (offered: 0.2.x and 0.3.x)"), "{error}");
    let timezone = r#"(component (import "wasi:clocks/timezone@0.3.0" (instance (export "f" (func)))))"#;
    let component = ToolComponent::load(&async_sandbox(), &wat::parse_str(timezone).unwrap());
    let error = component.err().unwrap();
    assert!(error.hint().contains("WASI 0.3"), "{error:?}: {}", error.hint());
}

#[test]
fn an_import_that_is_missing_is_named_before_anything_is_compiled() {
    // Its module does not compile.
    let text =
        r#"(component (import "evil:corp/api@1.0.0" (instance (export "f" (func)))) (core module (memory i64 1)))"#;
    let error = load(text).err().unwrap();
    assert!(matches!(&error, LoadError::Imports { names } if *names == ["evil:corp/api@1.0.0"]), "{error:?}");
}

#[tokio::test]
async fn async_functions_are_tools_in_the_engine_of_async_components_alone() {
    let text = r#"(component
      (core func $return (canon task.return (result u32)))
      (core module $m
        (import "b" "return" (func $return (param i32)))
        (func (export "f") (result i32) i32.const 7)
        (func (export "g") (result i32) (call $return (i32.const 8)) i32.const 0)
        (func (export "next") (param i32 i32 i32) (result i32) unreachable))
      (core instance $i (instantiate $m (with "b" (instance (export "return" (func $return))))))
      (func (export "f") async (result u32) (canon lift (core func $i "f")))
      (func (export "g") async (result u32) (canon lift (core func $i "g") async (callback (core func $i "next")))))"#;
    let bytes = wat::parse_str(text).unwrap();
    let component = ToolComponent::load(&async_sandbox(), &bytes).unwrap();
    assert_eq!(structured(&component, "f", "{}").await, r#"{"result":7}"#);
    assert_eq!(structured(&component, "g", "{}").await, r#"{"result":8}"#);
    assert!(matches!(ToolComponent::load(&SANDBOX, &bytes), Err(LoadError::Invalid { .. })));
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
        assert_eq!(component.functions().unwrap().len(), functions);
        component.list_tools(&Limits::default(), &Descriptions::default()).await.outcome
    };
    assert_eq!(listed(200, 40).await.unwrap().len(), 200);
    let failure = listed(900, 1_000).await.unwrap_err();
    assert_eq!(failure, CallFailure::over(Limit::HostData, &Limits::default()));
    // The estimate is close to the size of the text, and not below it.
    for letters in [1, 100, 2_000] {
        let tools = listed(3, letters).await.unwrap();
        assert!(tools.iter().all(|tool| tool.input_schema_json.len() < 3 * (15 * letters + 2_000)));
    }
    let Err(LoadError::Names { bytes_max }) = load(&wide(700, 3_000)).map(|_| ()) else { panic!("its names are kept") };
    assert_eq!(bytes_max, 4 << 20);
}
