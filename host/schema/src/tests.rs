//! The costs that schemas and values can cause, and their bounds.
//!
//! Promise: checks of values end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

/// Longest time of a check on a busy machine; an unbounded one takes minutes.
const SOON: Duration = Duration::from_secs(60);

fn compile(schema: &Value) -> Result<Schema, Vec<DefinitionProblem>> {
    Schema::compile("inputSchema", schema, &SchemaBounds::default())
}

fn said(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    let began = Instant::now();
    let verdict = schema.check_value(value, &Patience::default()).map_err(|problems| problems.to_string());
    let took = began.elapsed();
    assert!(took < SOON, "{took:?}");
    verdict
}

const TOO_LARGE: &str = "- (root): it does not conform, and is too large to say where";

const TOO_LONG: &str = "- (root): checking it would take too long: it is too large for what its schema asks of it";

/// Values that are slow to check, each with its schema. None is refused for its form.
fn slow_checks() -> Vec<(&'static str, Value, Value)> {
    let automaton = "^[01]*1[01]{1900}2";
    let bits = "01".repeat(500_000);
    let name = |number: usize| format!("p{number}");
    let named = |count: usize, schema: Value| -> Value {
        Value::Object((0..count).map(|number| (name(number), schema.clone())).collect())
    };
    let members = named(100_000, json!(1));
    let slow_names: serde_json::Map<String, Value> =
        (0..6).map(|number| (format!("[a-z]*{number}.{{40}}$"), json!(true))).collect();
    let mixed: Vec<Value> =
        (0..5_000).map(|number| if number % 2 == 0 { json!(number) } else { json!([number]) }).collect();
    let mut looked_for: Vec<Value> = (0..900).map(|number| json!({"required": [name(number)]})).collect();
    looked_for.push(json!(true));
    let draft = "http://json-schema.org/draft-07/schema#";
    vec![
        ("one large automaton", json!({"pattern": automaton}), json!(bits)),
        ("the same backwards", json!({"pattern": "2[01]{1900}1[01]*$"}), json!(bits)),
        ("without an anchor", json!({"pattern": "(a|b)*a(a|b){900}c"}), json!("ab".repeat(400_000))),
        ("in many texts", json!({"items": {"pattern": automaton}}), json!(vec!["01".repeat(500); 900])),
        ("in names", json!({"propertyNames": {"pattern": automaton}}), json!({bits.clone(): 1})),
        ("patterns of names", json!({"patternProperties": slow_names}), members.clone()),
        (
            "and what they leave",
            json!({"patternProperties": slow_names, "additionalProperties": false}),
            members.clone(),
        ),
        (
            "and what nobody looks at",
            json!({"patternProperties": slow_names, "unevaluatedProperties": {"type": "string"}}),
            members,
        ),
        (
            "a thousand names that are looked for",
            json!({"items": {"anyOf": looked_for}}),
            json!(vec![json!({"a": 1}); 100_000]),
        ),
        ("a thousand of nothing", json!({"items": {"allOf": vec![json!(true); 990]}}), json!(vec![1; 400_000])),
        ("choices of every kind", json!({"items": {"enum": mixed}}), json!(vec![json!([4_999]); 200_000])),
        (
            "sameness within sameness",
            json!({"allOf": vec![json!({"uniqueItems": true}); 900]}),
            json!((0..200_000).collect::<Vec<_>>()),
        ),
        ("lengths of one text", json!({"allOf": vec![json!({"minLength": 1}); 990]}), json!("ä".repeat(500_000))),
        (
            "a format that compares names",
            json!({"$schema": draft, "format": "regex"}),
            json!((0..80_000).map(|number| format!("(?<a{number}>)")).collect::<String>()),
        ),
        (
            "fractions",
            json!({"allOf": vec![json!({"items": {"multipleOf": 1e-300}}); 100]}),
            json!(vec![1.7e300; 10_000]),
        ),
        (
            "content in texts",
            json!({"$schema": draft, "allOf": vec![json!({"contentMediaType": "application/json"}); 900]}),
            json!("[[[]]]".repeat(150_000)),
        ),
        (
            "what is not evaluated",
            json!({"allOf": vec![json!({"anyOf": [{"properties": {"a": true}}, true]}); 200], "unevaluatedProperties": true}),
            named(100_000, json!(1)),
        ),
    ]
}

#[test]
fn what_takes_too_long_to_check_is_refused_soon() {
    for (name, schema, value) in slow_checks() {
        let compiled = compile(&schema).unwrap_or_else(|problems| panic!("{name}: {}", said(&problems)));
        let verdict = check(&compiled, &value);
        // A value that is unfit from the start is known at once, and then too large to report more.
        let said = verdict.expect_err(name);
        assert!([TOO_LONG, TOO_LARGE].contains(&said.as_str()), "{name}: {said}");
        assert!(compiled.is_long(&value.to_string()), "{name}");
    }
}

#[test]
fn equal_values_are_found_in_linear_time_however_their_members_are_ordered() {
    let nested = |swapped: bool| {
        let mut value = json!(1);
        for _ in 0..90 {
            value = if swapped { json!({"x": value, "c": 3, "b": 2}) } else { json!({"x": value, "b": 2, "c": 3}) };
        }
        value
    };
    let constant = {
        let mut value = json!(1);
        (0..30).for_each(|_| value = json!({"x": value, "b": 2, "c": 3}));
        value
    };
    let swapped: Value = {
        let mut value = json!(1);
        (0..30).for_each(|_| value = json!({"x": value, "c": 3, "b": 2}));
        value
    };
    for keyword in [json!({"const": constant}), json!({"enum": [constant, 1]})] {
        let schema = compile(&keyword).unwrap();
        assert_eq!(check(&schema, &swapped), Ok(()));
        assert!(check(&schema, &nested(true)).is_err());
    }
    let unique = compile(&json!({"uniqueItems": true})).unwrap();
    assert!(check(&unique, &json!([nested(false), nested(true)])).is_err());
    let mut many: Vec<Value> = (0..20).map(|number| json!({"a": number, "b": [number, null, true, "x"]})).collect();
    assert_eq!(check(&unique, &Value::Array(many.clone())), Ok(()));
    many.push(json!({"b": [7.0, null, true, "x"], "a": 7}));
    assert_eq!(check(&unique, &Value::Array(many)), Err("- (root): must not have equal items".to_owned()));
    assert!(check(&unique, &json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -0.0])).is_err());
}

#[test]
fn telling_what_is_wrong_is_bounded_as_well() {
    let schema = compile(&json!({"type": "object", "additionalProperties": {"items": {"type": "string"}}})).unwrap();
    let value = json!({"k".repeat(400_000): vec![1; 60_000]});
    assert_eq!(check(&schema, &value), Err(TOO_LARGE.to_owned()));
    let long = check(&schema, &json!({"k".repeat(5_000): [1]})).unwrap_err();
    assert!(long.len() < 500 && long.ends_with("…: must be of type string"), "{long}");
    let copies = compile(&json!({"prefixItems": [true], "unevaluatedItems": false})).unwrap();
    let large = json!([1, "x".repeat(900_000), vec!["y".repeat(500_000); 20]]);
    assert!(check(&copies, &large).is_err());
    let texts = compile(&json!({"items": {"allOf": vec![json!({"pattern": "^a"}); 50]}})).unwrap();
    let unfit = check(&texts, &json!(vec!["b".repeat(100_000); 10])).unwrap_err();
    assert_eq!(unfit, TOO_LARGE);
}

#[test]
fn what_nobody_waits_for_is_not_checked() {
    let schema = compile(&json!({"items": {"type": "integer"}})).unwrap();
    let value = json!(vec![1; 1_000]);
    let over = Patience { until: Some(Instant::now()), given_up: None };
    let said = schema.check_value(&value, &over).unwrap_err();
    assert_eq!(said.to_string(), "- (root): there was no time left to check it");
    assert!(!said.is_verdict(), "it says nothing about the value");
    #[derive(Default)]
    struct Flag(AtomicBool);
    impl GivenUp for Flag {
        fn is_given_up(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }
    let flag = Arc::new(Flag::default());
    let patience = Patience { until: None, given_up: Some(Arc::<Flag>::clone(&flag)) };
    assert!(schema.check_value(&value, &patience).is_ok());
    flag.0.store(true, Ordering::Relaxed);
    assert!(!schema.check_value(&value, &patience).unwrap_err().is_verdict());
    assert!(schema.check_value(&json!(["1"]), &Patience::default()).unwrap_err().is_verdict());
}

#[test]
fn honest_values_are_checked_however_large() {
    let base64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
    let rows = json!({"id": "0f8fad5b-d9cb-469f-a165-70867728950e", "mail": "somebody@example.com", "name": "Jürgen", "n": 7, "price": 19.99});
    let row = json!({"type": "object", "additionalProperties": false, "required": ["id", "mail"], "properties": {
        "id": {"type": "string", "pattern": "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"},
        "mail": {"type": "string", "pattern": "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$"},
        "name": {"type": "string", "pattern": "^[\\p{L} '.-]+$", "minLength": 1, "maxLength": 64},
        "n": {"type": "integer", "minimum": 0}, "price": {"type": "number", "multipleOf": 0.01}
    }});
    for (name, schema, value) in [
        ("a megabyte in base64", json!({"type": "string", "pattern": base64}), json!("abcd".repeat(262_144))),
        ("half a million numbers", json!({"items": {"type": "integer", "minimum": 0}}), json!(vec![1; 500_000])),
        ("rows of a table", json!({"type": "array", "items": row}), json!(vec![rows; 8_000])),
        (
            "a text without a pattern",
            json!({"type": "string", "minLength": 1, "maxLength": 2_000_000}),
            json!("ä".repeat(500_000)),
        ),
        ("a set", json!({"uniqueItems": true}), json!((0..150_000).collect::<Vec<_>>())),
    ] {
        let schema = compile(&schema).unwrap_or_else(|problems| panic!("{name}: {}", said(&problems)));
        assert_eq!(check(&schema, &value), Ok(()), "{name}");
    }
    let short = compile(&json!({"type": "object", "properties": {"city": {"type": "string"}}})).unwrap();
    assert!(!short.is_long(r#"{"city":"Oslo"}"#));
}

#[test]
fn schemas_that_would_take_much_memory_or_time_are_refused_where_they_are_written() {
    let patterns: Vec<Value> = (0..900).map(|number| json!({"pattern": format!("\\p{{L}}{{20}}a{number}")})).collect();
    let names: serde_json::Map<String, Value> =
        (0..900).map(|number| (format!("\\p{{L}}{{4}}a{number}"), json!(true))).collect();
    let medium: Vec<Value> = (0..900).map(|number| json!({"pattern": format!("\\p{{L}}{{4}}a{number}")})).collect();
    let mut under = json!({"allOf": vec![json!({"type": "string", "minLength": 1}); 600]});
    for _ in 0..3 {
        under = json!({"properties": {"n".repeat(15_000): under}});
    }
    let properties: serde_json::Map<String, Value> =
        (0..800).map(|number| (format!("p{number}"), json!(true))).collect();
    let copied = json!({
        "unevaluatedProperties": false, "allOf": vec![json!({"$ref": "#/$defs/b"}); 40],
        "$defs": {"b": {"allOf": vec![json!({"$ref": "#/$defs/a"}); 40]}, "a": {"properties": properties}}
    });
    let anchors = json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x", "allOf": [true]}}, "$ref": "#x"});
    for (schema, expected) in [
        (json!({"allOf": patterns}), "inputSchema/allOf/16/pattern: one of more than 16 patterns that are too large"),
        (json!({"allOf": medium}), "compiling it takes more memory than the 16384 KiB left for it"),
        (json!({"patternProperties": names}), "compiling it takes more memory than the 16384 KiB left for it"),
        (copied, "inputSchema: compiling it takes more memory than the 16384 KiB left for it"),
        (under, "inputSchema: the names of its subschemas are too long in all"),
        (anchors, "inputSchema/$defs/b/$anchor: another subschema has the same"),
    ] {
        let began = Instant::now();
        let problems = said(&compile(&schema).unwrap_err());
        assert!(problems.contains(expected), "{expected}: {problems}");
        assert!(problems.len() < 2_000 && began.elapsed() < SOON, "{problems} {:?}", began.elapsed());
    }
    let late = SchemaBounds { until: Some(Instant::now()), ..SchemaBounds::default() };
    let problems = Schema::compile("inputSchema", &json!({"pattern": "a"}), &late).unwrap_err();
    assert_eq!(said(&problems), "inputSchema/pattern: there was no time left to compile it");
}

#[test]
fn a_pattern_that_is_too_large_is_left_out_and_its_place_is_known() {
    let large = ["^.{0,1000}$", &"\\s".repeat(400), &"[a]".repeat(300), &"a".repeat(2_000)];
    let properties: serde_json::Map<String, Value> = (0..)
        .zip(large)
        .map(|(number, pattern)| (format!("p{number}"), json!({"type": "string", "pattern": pattern})))
        .collect();
    let schema = compile(&json!({
        "properties": properties,
        "patternProperties": {"^x.{1000}": {"type": "string"}, "^y": {"type": "string"}},
        "additionalProperties": false,
        "not": {"required": ["p0"], "properties": {"p0": {"pattern": "^.{0,1000}$"}}},
    }));
    let schema = schema.unwrap();
    let expected = [
        "inputSchema/not/properties/p0/pattern",
        "inputSchema/patternProperties/^x.{1000}",
        "inputSchema/properties/p0/pattern",
        "inputSchema/properties/p1/pattern",
        "inputSchema/properties/p2/pattern",
        "inputSchema/properties/p3/pattern",
    ];
    let mut places = schema.unapplied().to_vec();
    places.sort_unstable();
    assert_eq!(places, expected);
    assert_eq!(check(&schema, &json!({"p0": "any text", "p1": "any", "other": 1})), Ok(()));
    let refused = check(&schema, &json!({"p0": 1, "y": 2})).unwrap_err();
    assert!(refused.contains("/p0") && refused.contains("/y"), "{refused}");
    // As many as may be tried take no time to speak of.
    let many: Vec<Value> = (0..16).map(|number| json!({"pattern": format!("\\p{{L}}{{400}}a{number}")})).collect();
    let began = Instant::now();
    assert_eq!(compile(&json!({"allOf": many})).unwrap().unapplied().len(), 16);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// Nested schemas, each of which looks for unevaluated members.
fn unevaluated(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    let mut schema = json!({"type": "object"});
    for _ in 0..levels {
        schema = wrap(schema);
    }
    schema
}

#[test]
fn levels_that_are_looked_at_twice_do_not_multiply_what_is_compiled() {
    let items = |inner: Value| json!({"items": inner, "unevaluatedItems": false});
    let prefix = |inner: Value| json!({"prefixItems": [inner], "unevaluatedItems": {"type": "string"}});
    let additional = |inner: Value| json!({"additionalProperties": inner, "unevaluatedProperties": false});
    let named = |inner: Value| json!({"patternProperties": {"^a": inner}, "unevaluatedProperties": false});
    let left = |inner: Value| json!({"unevaluatedProperties": inner});
    let all = |inner: Value| json!({"allOf": [inner], "unevaluatedProperties": false});
    let any = |inner: Value| json!({"anyOf": [inner, {"required": ["a"]}], "unevaluatedProperties": false});
    let one = |inner: Value| json!({"if": inner, "then": true, "unevaluatedProperties": false});
    let depends = |inner: Value| json!({"dependentSchemas": {"a": inner}, "unevaluatedProperties": false});
    let not = |inner: Value| json!({"contains": inner, "unevaluatedItems": false});
    for levels in [4, 8, 12, 13, 20, 30] {
        for (name, schema) in [
            ("items", unevaluated(levels, items)),
            ("prefixItems", unevaluated(levels, prefix)),
            ("additionalProperties", unevaluated(levels, additional)),
            ("patternProperties", unevaluated(levels, named)),
            ("unevaluatedProperties", unevaluated(levels, left)),
            ("allOf", unevaluated(levels, all)),
            ("anyOf", unevaluated(levels, any)),
            ("if", unevaluated(levels, one)),
            ("dependentSchemas", unevaluated(levels, depends)),
            ("contains", unevaluated(levels, not)),
        ] {
            let began = Instant::now();
            let compiled = compile(&schema);
            let took = began.elapsed();
            drop(compiled);
            assert!(took < SOON, "{name} {levels}: {took:?}");
        }
    }
}

#[test]
fn references_do_not_multiply_what_is_compiled() {
    // Each level is referred to twice, deeper in the value each time.
    let mut definitions = serde_json::Map::new();
    for number in 0..200 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(format!("d{number}"), json!({"properties": {"a": next, "b": next, "c": next}}));
    }
    definitions.insert("d200".into(), json!({"type": "integer"}));
    let began = Instant::now();
    let schema = compile(&json!({"$ref": "#/$defs/d0", "$defs": definitions.clone()})).unwrap();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(check(&schema, &json!({"a": {"b": {"c": {}}}})), Ok(()));
    // The same with a look for unevaluated members.
    let began = Instant::now();
    let closed = json!({"$ref": "#/$defs/d0", "unevaluatedProperties": false, "$defs": definitions});
    let _ = compile(&closed).map(|schema| check(&schema, &json!({"a": {}})));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

fn calibrate(name: &str, schema: Value, value: Value) {
    let began = Instant::now();
    let compiled = compile(&schema);
    eprint!("compiled in {:?}, ", began.elapsed());
    let schema = match compiled {
        Ok(schema) => schema,
        Err(problems) => return eprintln!("{name}: {}", said(&problems)),
    };
    let patience = Patience::default();
    let mut meter = Meter { steps: STEPS_MAX, rates: schema.rates, patience: &patience };
    let began = Instant::now();
    let ended = meter.run(|| schema.validator.is_valid(MeteredValue(&value)));
    let took = began.elapsed();
    let steps = STEPS_MAX - meter.steps;
    eprintln!(
        "{name}: {ended:?} {took:?} {steps} steps, {:.2} ns each; byte {} name {} memory {}",
        took.as_nanos() as f64 / steps as f64,
        schema.byte_steps,
        schema.rates.name_byte,
        schema.bytes
    );
}

#[test]
#[ignore = "prints what steps are worth on this machine"]
fn calibration() {
    let many = |value: Value, count: usize| Value::Array(vec![value; count]);
    calibrate("numbers", json!({"items": {"type": "integer", "minimum": 0}}), many(json!(1), 500_000));
    calibrate("true x 900", json!({"items": {"allOf": vec![json!(true); 900]}}), many(json!(1), 20_000));
    calibrate(
        "objects",
        json!({"items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 10}}, "required": ["a"], "additionalProperties": false}}),
        many(json!({"a": 1, "b": "x"}), 50_000),
    );
    let props: serde_json::Map<String, Value> =
        (0..900).map(|n| (format!("p{n}"), json!({"type": "integer"}))).collect();
    calibrate("900 properties", json!({"items": {"properties": props.clone()}}), many(json!({}), 50_000));
    calibrate(
        "900 properties, closed",
        json!({"items": {"properties": props, "additionalProperties": false}}),
        many(json!({"p1": 1}), 50_000),
    );
    calibrate(
        "base64",
        json!({"type": "string", "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}),
        json!("abcd".repeat(250_000)),
    );
    calibrate(
        "email",
        json!({"type": "string", "pattern": "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$"}),
        json!("abcd".repeat(250_000)),
    );
    calibrate("letters", json!({"type": "string", "pattern": "^\\p{L}+$"}), json!("añcd".repeat(250_000)));
    calibrate("any 200", json!({"type": "string", "pattern": "^.{1,200}$"}), json!("añcd".repeat(40)));
    calibrate(
        "unanchored",
        json!({"type": "string", "pattern": "[a-z]+-[0-9]{3}-[a-z]+"}),
        json!("añcd".repeat(250_000)),
    );
    for repeat in [10, 20, 100, 400, 1900] {
        let text: String =
            (0..20_000_u32).map(|n| if n.wrapping_mul(2_654_435_761) >> 16 & 1 == 0 { '0' } else { '1' }).collect();
        calibrate(
            &format!("heavy {repeat}"),
            json!({"type": "string", "pattern": format!("^[01]*1[01]{{{repeat}}}2")}),
            json!(text.clone()),
        );
        calibrate(
            &format!("heavy short {repeat}"),
            json!({"type": "string", "pattern": format!("^[01]*1[01]{{{repeat}}}2")}),
            json!(text[..1_000].to_owned()),
        );
        calibrate(
            &format!("heavy behind {repeat}"),
            json!({"type": "string", "pattern": format!("2[01]{{{repeat}}}1[01]*$")}),
            json!(text.clone()),
        );
    }
    calibrate("letters 4", json!({"type": "string", "pattern": "^\\p{L}{4}aN$"}), json!("añcd".repeat(2_000)));
    calibrate(
        "names",
        json!({"patternProperties": (0..20).map(|n| (format!("^[a-z]{n}x"), json!(true))).collect::<serde_json::Map<_, _>>(), "additionalProperties": {"type": "integer"}}),
        Value::Object((0..20_000).map(|n| (format!("key{n}"), json!(1))).collect()),
    );
    calibrate("unique", json!({"uniqueItems": true}), Value::Array((0..300_000).map(|n| json!(n)).collect()));
    calibrate(
        "unique objects",
        json!({"uniqueItems": true}),
        Value::Array((0..50_000).map(|n| json!({"a": n, "b": "text"})).collect()),
    );
    calibrate(
        "mixed enum",
        json!({"items": {"enum": (0..2_000).map(|n| if n % 2 == 0 { json!(n) } else { json!(format!("t{n}")) }).collect::<Vec<_>>()}}),
        many(json!("t1999"), 1_500),
    );
    calibrate("enum of ints", json!({"items": {"enum": (0..2_000).collect::<Vec<_>>()}}), many(json!(1.5), 1_500));
    calibrate("texts", json!({"allOf": vec![json!({"minLength": 1}); 400]}), json!("añcd".repeat(250_000)));
    calibrate(
        "formats",
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "uri"}}),
        many(json!("https://example.com/a/b?c=d#e"), 50_000),
    );
    calibrate(
        "emails",
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "email"}}),
        many(json!("somebody.here@mail.example.com"), 50_000),
    );
    calibrate(
        "json in texts",
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "contentMediaType": "application/json"}),
        json!(format!("[{}1]", "[],".repeat(200_000))),
    );
    calibrate(
        "unevaluated",
        json!({"items": {"type": "object", "allOf": [{"properties": {"a": true}}, {"anyOf": [{"properties": {"b": true}, "required": ["b"]}, {"properties": {"c": true}}]}], "unevaluatedProperties": false}}),
        many(json!({"a": 1, "b": 2}), 20_000),
    );
    calibrate("contains", json!({"contains": {"const": 2}}), many(json!(1), 300_000));
    calibrate(
        "oneOf",
        json!({"items": {"oneOf": (0..100).map(|n| json!({"const": format!("v{n}")})).collect::<Vec<_>>()}}),
        many(json!("v99"), 10_000),
    );
    calibrate("multiple", json!({"items": {"multipleOf": 0.1}}), many(json!(1e300), 100_000));
    calibrate("multiple of cents", json!({"items": {"multipleOf": 0.01}}), many(json!(19.99), 50_000));
    calibrate("multiple of next to nothing", json!({"items": {"multipleOf": 1e-300}}), many(json!(1.7e300), 1_000));
    calibrate(
        "mail and more",
        json!({"items": {"allOf": [{"pattern": "^[a-z0-9._%+-]+@[a-z0-9.-]+\\.[a-z]{2,}$"}, {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T"}, {"pattern": "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"}]}}),
        many(json!("somebody@example.com"), 100),
    );
    calibrate("letters 5", json!({"type": "string", "pattern": "^\\p{L}{1,3}$"}), json!("añcd".repeat(2_000)));
    calibrate("words", json!({"type": "string", "pattern": "^[\\p{L}\\p{N} '.-]{1,4}$"}), json!("añcd".repeat(2_000)));
    calibrate(
        "tree",
        json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}}}),
        json!({"kids": vec![json!({"n": 1}); 100_000]}),
    );
}

#[test]
fn an_integer_is_one_however_it_is_written() {
    // Values, and bounds in the schema itself (JSON Schema 2020-12, section 6.1.1).
    let schema: Value = serde_json::from_str(
        r#"{"properties": {"n": {"type": "integer", "minimum": 1.0, "maximum": 9.0}, "only": {"enum": [2.0]},
            "text": {"minLength": 2.0, "maxLength": 3.0}, "list": {"maxItems": 1.0}}}"#,
    )
    .unwrap();
    let schema = compile(&schema).unwrap();
    for (value, fits) in [
        (r#"{"n": 1.0}"#, true),
        (r#"{"n": 1e0}"#, true),
        (r#"{"n": 1.5}"#, false),
        (r#"{"n": 10.0}"#, false),
        (r#"{"only": 2}"#, true),
        (r#"{"only": 2.5}"#, false),
        (r#"{"text": "abc"}"#, true),
        (r#"{"text": "abcd"}"#, false),
        (r#"{"list": [1, 2]}"#, false),
    ] {
        let given: Value = serde_json::from_str(value).unwrap();
        assert_eq!(check(&schema, &given).is_ok(), fits, "{value}");
    }
}
