//! What schemas and values can be made to cost, and that each is bounded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::tool::{DefinitionBounds, DefinitionProblem};

/// What a check may take on a busy machine; one that is not bounded takes minutes.
const SOON: Duration = Duration::from_secs(10);

fn compile(schema: &Value) -> Result<Schema, Vec<DefinitionProblem>> {
    Schema::compile("inputSchema", schema, &DefinitionBounds::default())
}

fn said(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    let began = Instant::now();
    let verdict = schema.check_value(value, &Patience::default()).map_err(|problems| problems.to_string());
    let took = began.elapsed();
    eprintln!("took {took:?}: {:?}", verdict.as_ref().map_err(|text| text.chars().take(80).collect::<String>()));
    assert!(took < SOON, "{took:?}");
    verdict
}

const TOO_LONG: &str = "- (root): checking it would take too long: it is too large for what its schema asks of it";

fn calibrate(name: &str, schema: Value, value: Value) {
    let schema = match compile(&schema) {
        Ok(schema) => schema,
        Err(problems) => return eprintln!("{name}: {}", said(&problems)),
    };
    let patience = Patience::default();
    let mut meter = Meter { steps: STEPS_MAX, rates: schema.rates, patience: &patience };
    let began = Instant::now();
    let ended = meter.run(|| schema.validator.is_valid(Seen(&value)));
    let took = began.elapsed();
    let steps = STEPS_MAX - meter.steps;
    eprintln!(
        "{name}: {ended:?} {took:?} {steps} steps, {:.2} ns each; byte {} name {} memory {}",
        took.as_nanos() as f64 / steps as f64, schema.byte_steps, schema.rates.name_byte, schema.bytes
    );
}

#[test]
#[ignore = "prints what steps are worth on this machine"]
fn calibration() {
    let many = |value: Value, count: usize| Value::Array(vec![value; count]);
    calibrate("numbers", json!({"items": {"type": "integer", "minimum": 0}}), many(json!(1), 500_000));
    calibrate("true x 900", json!({"items": {"allOf": vec![json!(true); 900]}}), many(json!(1), 20_000));
    calibrate("objects", json!({"items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 10}}, "required": ["a"], "additionalProperties": false}}), many(json!({"a": 1, "b": "x"}), 50_000));
    let props: serde_json::Map<String, Value> = (0..900).map(|n| (format!("p{n}"), json!({"type": "integer"}))).collect();
    calibrate("900 properties", json!({"items": {"properties": props.clone()}}), many(json!({}), 50_000));
    calibrate("900 properties, closed", json!({"items": {"properties": props, "additionalProperties": false}}), many(json!({"p1": 1}), 50_000));
    calibrate("base64", json!({"type": "string", "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}), json!("abcd".repeat(250_000)));
    calibrate("email", json!({"type": "string", "pattern": "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$"}), json!("abcd".repeat(250_000)));
    calibrate("letters", json!({"type": "string", "pattern": "^\\p{L}+$"}), json!("añcd".repeat(250_000)));
    calibrate("any 200", json!({"type": "string", "pattern": "^.{1,200}$"}), json!("añcd".repeat(40)));
    calibrate("unanchored", json!({"type": "string", "pattern": "[a-z]+-[0-9]{3}-[a-z]+"}), json!("añcd".repeat(250_000)));
    for repeat in [10, 20, 100, 400, 1900] {
        let text: String = (0..20_000_u32).map(|n| if n.wrapping_mul(2_654_435_761) >> 16 & 1 == 0 { '0' } else { '1' }).collect();
        calibrate(&format!("heavy {repeat}"), json!({"type": "string", "pattern": format!("^[01]*1[01]{{{repeat}}}2")}), json!(text.clone()));
        calibrate(&format!("heavy short {repeat}"), json!({"type": "string", "pattern": format!("^[01]*1[01]{{{repeat}}}2")}), json!(text[..1_000].to_owned()));
        calibrate(&format!("heavy behind {repeat}"), json!({"type": "string", "pattern": format!("2[01]{{{repeat}}}1[01]*$")}), json!(text.clone()));
    }
    calibrate("letters 4", json!({"type": "string", "pattern": "^\\p{L}{4}aN$"}), json!("añcd".repeat(2_000)));
    calibrate("names", json!({"patternProperties": (0..20).map(|n| (format!("^[a-z]{n}x"), json!(true))).collect::<serde_json::Map<_, _>>(), "additionalProperties": {"type": "integer"}}), Value::Object((0..20_000).map(|n| (format!("key{n}"), json!(1))).collect()));
    calibrate("unique", json!({"uniqueItems": true}), Value::Array((0..300_000).map(|n| json!(n)).collect()));
    calibrate("unique objects", json!({"uniqueItems": true}), Value::Array((0..50_000).map(|n| json!({"a": n, "b": "text"})).collect()));
    calibrate("mixed enum", json!({"items": {"enum": (0..2_000).map(|n| if n % 2 == 0 { json!(n) } else { json!(format!("t{n}")) }).collect::<Vec<_>>()}}), many(json!("t1999"), 1_500));
    calibrate("enum of ints", json!({"items": {"enum": (0..2_000).collect::<Vec<_>>()}}), many(json!(1.5), 1_500));
    calibrate("texts", json!({"allOf": vec![json!({"minLength": 1}); 400]}), json!("añcd".repeat(250_000)));
    calibrate("formats", json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "uri"}}), many(json!("https://example.com/a/b?c=d#e"), 50_000));
    calibrate("emails", json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "email"}}), many(json!("somebody.here@mail.example.com"), 50_000));
    calibrate("json in texts", json!({"$schema": "http://json-schema.org/draft-07/schema#", "contentMediaType": "application/json"}), json!(format!("[{}1]", "[],".repeat(200_000))));
    calibrate("unevaluated", json!({"items": {"type": "object", "allOf": [{"properties": {"a": true}}, {"anyOf": [{"properties": {"b": true}, "required": ["b"]}, {"properties": {"c": true}}]}], "unevaluatedProperties": false}}), many(json!({"a": 1, "b": 2}), 20_000));
    calibrate("contains", json!({"contains": {"const": 2}}), many(json!(1), 300_000));
    calibrate("oneOf", json!({"items": {"oneOf": (0..100).map(|n| json!({"const": format!("v{n}")})).collect::<Vec<_>>()}}), many(json!("v99"), 10_000));
    calibrate("multiple", json!({"items": {"multipleOf": 0.1}}), many(json!(1e300), 100_000));
    calibrate("tree", json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}}}), json!({"kids": vec![json!({"n": 1}); 100_000]}));
}
