//! Descriptions of functions and types: from WIT, from a component's section, and given by the
//! operator; and which one wins.
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_policy::Limits;

use super::super::section::{annotate, texts};
use super::super::texts::WitTexts;
use crate::{Descriptions, Sandbox, ToolComponent};
use toolcell_wall::load::descriptions::WitFile;
use toolcell_wall::pool_sizes::SandboxOptions;

const WIT: &str = "package acme:weather@1.0.0;\n\
    /// All about places.\n\
    interface places {\n\
      use elsewhere:units/lengths@1.0.0.{metre};\n\
      /// A place.\n record place { /// North.\n lat: f64, height: metre }\n\
      type spot = place;\n\
      /// Where rain is.\n find: func(near: place) -> list<place>;\n\
    }\n\
    world station {\n\
      export places;\n\
      /// Now.\n export now: func() -> u64;\n\
      export inner: interface { /// Deep.\n go: func(); }\n\
    }\n";

fn file(name: &str, text: &str) -> Vec<WitFile> {
    vec![WitFile { name: name.to_owned(), text: text.to_owned() }]
}

fn parsed() -> WitTexts {
    WitTexts::parse(&[file("weather.wit", WIT)]).unwrap()
}

#[test]
fn comments_are_read_though_packages_that_are_used_are_missing() {
    let texts = parsed();
    let places = texts.scope(Some("acme:weather/places")).unwrap();
    assert_eq!(places.functions["find"], "Where rain is.");
    assert_eq!(places.types["place"].text.as_deref(), Some("A place."));
    assert_eq!(places.types["place"].parts["lat"], "North.");
    assert_eq!(places.types["spot"], places.types["place"], "another name for a type is described like it");
    assert_eq!(texts.scope(None).unwrap().functions["now"], "Now.");
    assert_eq!(texts.scope(Some("inner")).unwrap().functions["go"], "Deep.");
    assert_eq!(texts.count(), 7);
}

#[test]
fn what_is_no_wit_is_named_by_file_line_and_column() {
    let error = WitTexts::parse(&[file("a/b.wit", "package a:b;\ninterface c {\n  go func();\n}\n")]).unwrap_err();
    assert_eq!(error.place, "a/b.wit:3:6");
    assert!(error.message.contains("expected"), "{error}");
}

const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

#[test]
fn texts_survive_a_component() {
    let annotated = annotate(EMPTY, &parsed());
    let found = texts(&annotated);
    assert_eq!(found.scope(Some("acme:weather/places")), parsed().scope(Some("acme:weather/places")));
    assert_eq!(found.scope(None), parsed().scope(None));
    assert_eq!(annotate(&annotated, &parsed()), annotated, "put in once");
}

/// A component that consists of one section with this content.
fn with_section(content: &[u8]) -> Vec<u8> {
    let mut component = EMPTY.to_vec();
    component.extend([0, content.len() as u8 + 13, 12]);
    component.extend(b"package-docs");
    component.extend(content);
    component
}

#[test]
fn a_section_is_read_as_far_as_it_can_be() {
    let first_version = b"\0{\"interfaces\":{\"a\":{\"funcs\":{\"go\":\"Goes.\"}}}}";
    assert_eq!(texts(&with_section(first_version)).scope(Some("x:y/a")).unwrap().functions["go"], "Goes.");
    let odd = b"\x01{\"interfaces\":{\"a\":{\"funcs\":{\"go\":7,\"b\":{\"docs\":\"B.\"}},\"types\":[]}},\"x\":1}";
    assert_eq!(texts(&with_section(odd)).count(), 1);
    for nothing in [&b""[..], b"\x01", b"\x02{}", b"\x01{\"interfaces\":", b"\x01[]"] {
        assert_eq!(texts(&with_section(nothing)), WitTexts::default());
    }
    for cut in 0..60 {
        let whole = with_section(first_version);
        let _ = texts(whole.get(..cut.min(whole.len())).unwrap());
    }
}

/// Two types with the same structure, and one with another.
const TWINS: &str = r#"(component
  (core module $m (func (export "f") (param f64 f64)) (func (export "g") (param i32)))
  (core instance $i (instantiate $m))
  (type $point' (record (field "x" f64) (field "y" f64)))
  (export $point "point" (type $point'))
  (type $size' (record (field "x" f64) (field "y" f64)))
  (export $size "size" (type $size'))
  (type $color' (enum "red" "green"))
  (export $color "color" (type $color'))
  (func $f (param "at" $point) (canon lift (core func $i "f")))
  (export "put" (func $f))
  (func $g (param "in" $color) (canon lift (core func $i "g")))
  (export "paint" (func $g)))"#;

#[tokio::test]
async fn types_of_one_structure_are_described_only_by_what_is_said_of_all_of_them() {
    let sandbox = Sandbox::new(SandboxOptions { calls_max: 2, ..SandboxOptions::default() }).unwrap();
    let component = ToolComponent::load(&sandbox, &wat::parse_str(TWINS).unwrap()).unwrap();
    let wit = "package a:b;\nworld w {\n\
        /// A point.\n record point { /// Right.\n x: f64, /// Up.\n y: f64 }\n\
        /// A size.\n record size { /// Right.\n x: f64, /// Tall.\n y: f64 }\n\
        /// A color.\n enum color { /// Like blood.\n red, green }\n\
        export put: func(at: point);\n}\n";
    let wit = Some(Arc::new(WitTexts::parse(&[file("w.wit", wit)]).unwrap()));
    let given = [("paint.in".to_owned(), "Which.".to_owned())].into();
    let tools = component
        .list_tools(&Limits::default(), &Descriptions { given, wit, ..Descriptions::default() })
        .await
        .outcome
        .unwrap();
    let schema = |name: &str| -> Value {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        serde_json::from_str(&tool.input_schema_json).unwrap()
    };
    let point = &schema("put")["properties"]["at"];
    assert_eq!(point.get("description"), None);
    assert_eq!(point["properties"]["x"]["description"], "Right.");
    assert_eq!(point["properties"]["y"].get("description"), None);
    let color = &schema("paint")["properties"]["in"];
    assert_eq!(color["description"], json!("Which.\nA color.\nred: Like blood."));
    let describable = component.describable().unwrap();
    for name in ["put", "put.at", "point", "size", "size.y", "color.red", "paint.in"] {
        assert!(describable.iter().any(|known| known == name), "no {name} in {describable:?}");
    }
}
