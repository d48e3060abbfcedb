//! Properties over generated types: a value survives JSON and back, and the schema accepts exactly what converts.
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::path::Path;
use super::schema::NoDocs;
use super::ty::{Case, Field, Int, Ty, TyId, Types};
use super::{decode, encode, schema};

mod components;
mod writings;

const BYTES_MAX: u64 = 64 << 20;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

const INTS: [Int; 8] = [Int::S8, Int::U8, Int::S16, Int::U16, Int::S32, Int::U32, Int::S64, Int::U64];

fn labels(dice: &mut Dice) -> Vec<String> {
    (0..=dice.below(4)).map(|at| format!("label-{at}")).collect()
}

fn any_type(types: &mut Types, dice: &mut Dice, depth: u32) -> TyId {
    let kinds = if depth == 0 { 9 } else { 17 };
    let ty = match dice.below(kinds) {
        0 => Ty::Bool,
        1 | 2 => Ty::Int(*dice.pick(&INTS)),
        3 => Ty::F32,
        4 => Ty::F64,
        5 => Ty::Char,
        6 => Ty::Text,
        7 => Ty::Enum(labels(dice)),
        8 => Ty::Bytes,
        9 => Ty::Flags(labels(dice)),
        10 => {
            let item = any_type(types, dice, depth - 1);
            if *types.get(item) == Ty::Int(Int::U8) { Ty::Bytes } else { Ty::List(item) }
        }
        11 => Ty::FixedList(any_type(types, dice, depth - 1), dice.below(3) as u32 + 1),
        12 => Ty::Tuple((0..=dice.below(3)).map(|_| any_type(types, dice, depth - 1)).collect()),
        13 => Ty::Record(
            (0..=dice.below(3))
                .map(|at| Field {
                    wit_name: format!("some-field-{at}"),
                    name: format!("some_field_{at}"),
                    ty: any_type(types, dice, depth - 1),
                })
                .collect(),
        ),
        14 => Ty::Variant(
            (0..=dice.below(3))
                .map(|at| Case {
                    name: format!("case-{at}"),
                    payload: (dice.below(2) == 0).then(|| any_type(types, dice, depth - 1)),
                })
                .collect(),
        ),
        15 => Ty::Option(any_type(types, dice, depth - 1)),
        _ => {
            let mut part = |dice: &mut Dice| (dice.below(2) == 0).then(|| any_type(types, dice, depth - 1));
            Ty::Result(part(dice), part(dice))
        }
    };
    types.push(ty).unwrap()
}

fn any_integer(dice: &mut Dice, int: Int) -> Val {
    let (least, greatest) = int.range();
    let value = match dice.below(4) {
        0 => least,
        1 => greatest,
        2 => 0,
        _ => least + i128::from(dice.roll()) % (greatest - least + 1),
    };
    match int {
        Int::S8 => Val::S8(value as i8),
        Int::U8 => Val::U8(value as u8),
        Int::S16 => Val::S16(value as i16),
        Int::U16 => Val::U16(value as u16),
        Int::S32 => Val::S32(value as i32),
        Int::U32 => Val::U32(value as u32),
        Int::S64 => Val::S64(value as i64),
        Int::U64 => Val::U64(value as u64),
    }
}

fn any_value(types: &Types, dice: &mut Dice, ty: TyId) -> Val {
    let floats = [0.0, -0.0, 1.5, -2.25e10, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-30];
    let some = |dice: &mut Dice, ty: &TyId| Box::new(any_value(types, dice, *ty));
    match types.get(ty) {
        Ty::Bool => Val::Bool(dice.below(2) == 0),
        Ty::Int(int) => any_integer(dice, *int),
        Ty::F32 => Val::Float32(match dice.below(2) {
            0 => *dice.pick(&floats) as f32,
            _ => f32::from_bits(dice.roll() as u32),
        }),
        Ty::F64 => Val::Float64(match dice.below(2) {
            0 => *dice.pick(&floats),
            _ => f64::from_bits(dice.roll()),
        }),
        Ty::Char => Val::Char(*dice.pick(&['a', '"', '\\', '\u{0}', 'é', '🦀', '\u{10ffff}'])),
        Ty::Text => Val::String((*dice.pick(&["", "plain", "\"quoted\"\n", "null", "🦀 é \u{7f}\u{0}"])).to_owned()),
        Ty::Bytes => Val::List((0..dice.below(9)).map(|_| Val::U8(dice.roll() as u8)).collect()),
        Ty::List(item) => Val::List((0..dice.below(4)).map(|_| *some(dice, item)).collect()),
        Ty::FixedList(item, length) => Val::FixedLengthList((0..*length).map(|_| *some(dice, item)).collect()),
        Ty::Tuple(items) => Val::Tuple(items.iter().map(|item| *some(dice, item)).collect()),
        Ty::Record(fields) => {
            Val::Record(fields.iter().map(|field| (field.wit_name.clone(), *some(dice, &field.ty))).collect())
        }
        Ty::Variant(cases) => {
            let case = dice.pick(cases);
            Val::Variant(case.name.clone(), case.payload.as_ref().map(|payload| some(dice, payload)))
        }
        Ty::Enum(labels) => Val::Enum(dice.pick(labels).clone()),
        Ty::Flags(labels) => Val::Flags(labels.iter().filter(|_| dice.below(2) == 0).cloned().collect()),
        Ty::Option(inner) => Val::Option((dice.below(3) > 0).then(|| some(dice, inner))),
        Ty::Result(ok, err) => match dice.below(2) {
            0 => Val::Result(Ok(ok.as_ref().map(|ok| some(dice, ok)))),
            _ => Val::Result(Err(err.as_ref().map(|err| some(dice, err)))),
        },
    }
}

/// Spoils one place of a JSON value, or leaves it as it is. Gives the place; `path` is that of the value.
fn spoil(dice: &mut Dice, json: &mut Value, path: String) -> String {
    if dice.below(3) > 0 {
        match json {
            Value::Array(items) if !items.is_empty() => {
                let at = dice.below(items.len() as u64) as usize;
                return spoil(dice, &mut items[at], format!("{path}[{at}]"));
            }
            Value::Object(fields) if !fields.is_empty() => {
                let at = dice.below(fields.len() as u64) as usize;
                let (key, value) = fields.iter_mut().nth(at).unwrap();
                // As the key of the root, so that only the root is written besides.
                let step = Path::ROOT.key(key).to_string().split_off(1);
                return spoil(dice, value, path + &step);
            }
            _ => {}
        }
    }
    let others = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(255),
        json!(256),
        json!(1e30),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("a"),
        json!("aa"),
        json!("0"),
        json!("-0"),
        json!("01"),
        json!("+1"),
        json!("18446744073709551615"),
        json!("18446744073709551616"),
        json!("-9223372036854775808"),
        json!("-9223372036854775809"),
        json!("NaN"),
        json!("label-0"),
        json!("case-0"),
        json!("AAAA"),
        json!("AAA="),
        json!("AAA"),
        json!([]),
        json!([0]),
        json!({}),
        json!({"some": null}),
        json!({"ok": null}),
        json!({"err": 1}),
        json!({"case-0": null}),
        json!(["label-0"]),
        json!(["label-0", "label-0"]),
    ];
    match (dice.below(4), json) {
        (0, Value::Array(items)) => items.push(dice.pick(&others).clone()),
        (1, Value::Array(items)) => drop(items.pop()),
        (0, Value::Object(fields)) => drop(fields.insert("other".to_owned(), dice.pick(&others).clone())),
        (1, Value::Object(fields)) => {
            let key = fields.keys().next().cloned();
            key.map(|key| fields.shift_remove(&key));
        }
        (_, json) => *json = dice.pick(&others).clone(),
    }
    path
}

#[test]
fn a_value_survives_json_and_back() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3_000 {
        let mut types = Types::default();
        let ty = any_type(&mut types, &mut dice, 4);
        for _ in 0..4 {
            let value = any_value(&types, &mut dice, ty);
            let json = encode::value(&types, ty, &value, usize::MAX).unwrap();
            let back = decode::value(&types, ty, &json, BYTES_MAX).unwrap_or_else(|error| panic!("{error}: {json}"));
            assert_eq!(back, value, "{json}");
        }
    }
}

#[test]
fn the_schema_accepts_exactly_what_converts() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut types = Types::default();
        let ty = any_type(&mut types, &mut dice, 3);
        let field = Field { wit_name: "it".to_owned(), name: "it".to_owned(), ty };
        let schema = schema::of_fields(&types, &NoDocs, std::slice::from_ref(&field), &[]);
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for _ in 0..6 {
            let value = any_value(&types, &mut dice, ty);
            let text = encode::value(&types, ty, &value, usize::MAX).unwrap();
            let mut json = json!({"it": serde_json::from_str::<Value>(&text).unwrap()});
            assert!(validator.is_valid(&json), "{schema:#}\n{json}");
            spoil(&mut dice, &mut json, "$".to_owned());
            let converted = decode::arguments(&types, std::slice::from_ref(&field), &json.to_string(), BYTES_MAX);
            assert_eq!(validator.is_valid(&json), converted.is_ok(), "{schema:#}\n{json}\n{converted:?}");
            match converted {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 1_000 && refused > 5_000, "both happen: {accepted}, {refused}");
}

fn days() -> (Types, Field) {
    let mut types = Types::default();
    let number = types.push(Ty::F64).unwrap();
    let small = types.push(Ty::Int(Int::U8)).unwrap();
    let maybe = types.push(Ty::Option(small)).unwrap();
    let field = |name: &str, ty| Field { wit_name: name.to_owned(), name: super::ty::json_name(name), ty };
    let day = types.push(Ty::Record(vec![field("temp", number), field("wind-speed", maybe)])).unwrap();
    let list = types.push(Ty::List(day)).unwrap();
    (types, field("days", list))
}

#[test]
fn what_does_not_convert_is_named_by_its_path() {
    let (types, days) = days();
    let cases = [
        (
            r#"{"days":[{"temp":1},{"temp":"x"}]}"#,
            "$.days[1].temp: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        ),
        (r#"{"days":[{}]}"#, "$.days[0].temp: is missing"),
        (r#"{"days":[{"temp":1,"wind_speed":256}]}"#, "$.days[0].wind_speed: expected an integer from 0 to 255"),
        (
            r#"{"days":[{"temp":1,"wind speed":2}]}"#,
            "$.days[0][\"wind speed\"]: unknown; known are \"temp\", \"wind_speed\"",
        ),
        (r#"{"days":[{"temp":1,"temp":2}]}"#, "$.days[0].temp: is there already"),
        (r#"{"days":{}}"#, "$.days: expected an array"),
        (r#"[]"#, "$: expected an object"),
        (r#"{}"#, "$.days: is missing"),
    ];
    for (json, expected) in cases {
        let error = decode::arguments(&types, std::slice::from_ref(&days), json, BYTES_MAX).unwrap_err();
        assert_eq!(error.to_string(), expected, "{json}");
    }
}

#[test]
fn values_that_take_too_much_memory_are_refused() {
    let (types, days) = days();
    let json = format!("{{\"days\":[{}]}}", vec!["{\"temp\":1}"; 100].join(","));
    let read = |bytes_max| decode::arguments(&types, std::slice::from_ref(&days), &json, bytes_max);
    assert!(read(BYTES_MAX).is_ok());
    assert!(read(4_096).unwrap_err().to_string().contains("host_data"));
}

#[test]
fn a_result_that_is_too_long_is_refused_as_it_grows() {
    let mut types = Types::default();
    let text = types.push(Ty::Text).unwrap();
    let value = Val::String("x".repeat(100));
    assert_eq!(encode::result(&types, Some(text), Some(&value), 113).unwrap().len(), 113);
    assert_eq!(encode::result(&types, Some(text), Some(&value), 112), Err(encode::EncodeError::TooLong));
}

#[test]
fn types_that_double_at_each_level_keep_the_schema_small() {
    let mut types = Types::default();
    let mut ty = types.push(Ty::Text).unwrap();
    for _ in 0..40 {
        ty = types.push(Ty::Tuple(vec![ty, ty])).unwrap();
    }
    let schema = schema::of_result(&types, &NoDocs, Some(ty));
    assert!(schema.to_string().len() < 16_384, "{}", schema.to_string().len());
}

#[test]
fn a_type_used_twice_is_defined_once() {
    let (types, days) = days();
    let again = Field { name: "more".to_owned(), ..days.clone() };
    let schema = schema::of_fields(&types, &NoDocs, &[days, again], &[]);
    assert_eq!(schema["properties"]["days"]["items"], json!({"$ref": "#/$defs/record"}));
    assert_eq!(schema["properties"]["days"]["items"], schema["properties"]["more"]["items"]);
    assert_eq!(schema["$defs"]["record"]["required"], json!(["temp"]));
}

/// Texts that are hardly ever JSON of the types: valid ones with some bytes replaced, left out or repeated.
#[test]
fn any_text_is_accepted_by_the_schema_or_refused_without_harm() {
    let mut dice = Dice(0x8538_ecb5_bd45_6ea3);
    let mut accepted = 0;
    for _ in 0..200 {
        let mut types = Types::default();
        let ty = any_type(&mut types, &mut dice, 4);
        let field = Field { wit_name: "it".to_owned(), name: "it".to_owned(), ty };
        let schema = schema::of_fields(&types, &NoDocs, std::slice::from_ref(&field), &[]);
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for _ in 0..100 {
            let value = any_value(&types, &mut dice, ty);
            let json = encode::value(&types, ty, &value, usize::MAX).unwrap();
            let mut bytes = format!("{{\"it\":{json}}}").into_bytes();
            for _ in 0..dice.below(4) {
                let at = dice.below(bytes.len() as u64) as usize;
                match dice.below(3) {
                    0 => bytes[at] = *dice.pick(b"{}[]\",:0123456789.eE+-ntu\\ "),
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[at]),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            let converted = decode::arguments(&types, std::slice::from_ref(&field), &text, BYTES_MAX);
            match serde_json::from_str::<Value>(&text) {
                Err(_) => assert!(converted.is_err(), "{text}"),
                // Of two values of one key, JSON that is read into a map has the last.
                Ok(json) if validator.is_valid(&json) => accepted += usize::from(converted.is_ok()),
                Ok(_) => assert!(converted.is_err(), "{schema:#}\n{text}"),
            }
        }
    }
    assert!(accepted > 2_000, "{accepted}");
}
