//! Properties over generated types: a value survives JSON and back, and the schema accepts exactly
//! what converts.
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::schema::NoDocs;
use super::ty::{Case, Int, Ty, TypedField, Types};
use super::{decode, encode, path, schema, ty};
use generate::{Dice, any_type, any_value, is_out_of_range, spoil};

mod components;
mod generate;
mod writings;

const BYTES_MAX: u64 = 64 << 20;

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Dice for Random {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn a_value_survives_json_and_back() {
    let mut dice = Random(0x9e37_79b9_7f4a_7c15);
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
fn floats_at_the_ends_of_their_range_survive_and_lie_within_the_schema() {
    let mut types = Types::default();
    let ty = types.push(Ty::F32).unwrap();
    let field = TypedField { wit_name: "it".to_owned(), name: "it".to_owned(), ty };
    let validator =
        jsonschema::draft202012::new(&schema::of_fields(&types, &NoDocs, std::slice::from_ref(&field), &[])).unwrap();
    let below = f32::from_bits(f32::MAX.to_bits() - 1);
    for number in [f32::MAX, f32::MIN, below, -below, f32::MIN_POSITIVE, f32::from_bits(1), 0.0, -0.0] {
        let json = encode::value(&types, ty, &Val::Float32(number), usize::MAX).unwrap();
        assert_eq!(decode::value(&types, ty, &json, BYTES_MAX).unwrap(), Val::Float32(number), "{json}");
        let object: Value = serde_json::from_str(&format!("{{\"it\":{json}}}")).unwrap();
        assert!(validator.is_valid(&object), "{json}");
    }
}

#[test]
fn a_float_as_decimal_text_is_an_argument_and_no_result() {
    let mut types = Types::default();
    let [small, wide] = [Ty::F32, Ty::F64].map(|ty| types.push(ty).unwrap());
    let read = |ty, json: &str| decode::value(&types, ty, json, BYTES_MAX);
    for (text, value) in [("1", 1.0), ("-0.25", -0.25), ("007", 7.0), ("1.5e+3", 1500.0), ("2E-1", 0.2), ("1e39", 1e39)]
    {
        let json = format!("{text:?}");
        assert_eq!(read(wide, &json), Ok(Val::Float64(value)), "{text}");
        assert_eq!(read(small, &json).ok(), (value < 1e38).then_some(Val::Float32(value as f32)), "{text}");
    }
    for text in
        ["", "-", "+1", "1.", ".5", "1.2.3", "1e", "1e+-2", "e5", "1_0", " 1", "0x1", "inf", "nan", "1e999", "١"]
    {
        let error = read(wide, &format!("{text:?}")).unwrap_err();
        assert_eq!(error.message, "expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"", "{text}");
    }
    let result = schema::of_result(&types, &NoDocs, Some(wide));
    let validator = jsonschema::draft202012::new(&result).unwrap();
    assert!(validator.is_valid(&json!({"result": "NaN"})) && !validator.is_valid(&json!({"result": "1"})), "{result}");
}

#[test]
fn the_schema_accepts_exactly_what_converts() {
    let mut dice = Random(0x2545_f491_4f6c_dd1d);
    let mut accepted = 0;
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut types = Types::default();
        let ty = any_type(&mut types, &mut dice, 3);
        let field = TypedField { wit_name: "it".to_owned(), name: "it".to_owned(), ty };
        let schema = schema::of_fields(&types, &NoDocs, std::slice::from_ref(&field), &[]);
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        for _ in 0..6 {
            let value = any_value(&types, &mut dice, ty);
            let text = encode::value(&types, ty, &value, usize::MAX).unwrap();
            let mut json = json!({"it": serde_json::from_str::<Value>(&text).unwrap()});
            assert!(validator.is_valid(&json), "{schema:#}\n{json}");
            spoil(&mut dice, &mut json, "$".to_owned());
            let converted = decode::arguments(&types, std::slice::from_ref(&field), &json.to_string(), BYTES_MAX);
            let out_of_range = converted.as_ref().is_err_and(|error| is_out_of_range(&error.message));
            let valid = validator.is_valid(&json);
            assert!(valid == converted.is_ok() || (valid && out_of_range), "{schema:#}\n{json}\n{converted:?}");
            match converted {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 1_000 && refused > 5_000, "both happen: {accepted}, {refused}");
}

#[test]
fn a_number_that_the_parser_rounded_is_no_integer_and_the_largest_float_may_be_spelled_as_usual() {
    let mut types = Types::default();
    let [signed, unsigned, float] = [Ty::Int(Int::S64), Ty::Int(Int::U64), Ty::F32].map(|ty| types.push(ty).unwrap());
    let read = |ty, json: &str| decode::value(&types, ty, json, BYTES_MAX);
    assert_eq!(read(signed, "-9007199254740992.0"), Ok(Val::S64(-9_007_199_254_740_992)));
    assert_eq!(read(signed, "-9223372036854775808"), Ok(Val::S64(i64::MIN)));
    for (ty, rounded) in [(signed, "-9223372036854775809"), (unsigned, "9007199254740993.5e1"), (unsigned, "1e19")] {
        let message = read(ty, rounded).unwrap_err().message;
        assert!(message.ends_with("and this one was rounded: give its digits as a string"), "{rounded}: {message}");
    }
    assert_eq!(read(unsigned, "\"10000000000000000000\""), Ok(Val::U64(10_000_000_000_000_000_000)));
    assert_eq!(read(float, "3.4028235e38"), Ok(Val::Float32(f32::MAX)));
    let message = read(float, "1e39").unwrap_err().message;
    assert!(message.starts_with("expected a number within ±3.4028235e38, "), "{message}");
}

fn days() -> (Types, TypedField) {
    let mut types = Types::default();
    let number = types.push(Ty::F64).unwrap();
    let small = types.push(Ty::Int(Int::U8)).unwrap();
    let maybe = types.push(Ty::Option(small)).unwrap();
    let field = |name: &str, ty| TypedField { wit_name: name.to_owned(), name: super::ty::json_name(name), ty };
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
        (r#"{"days":[{"temp":1,"temp":2}]}"#, "$.days[0].temp: appears twice"),
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
fn names_that_values_repeat_and_what_options_hold_count_as_memory() {
    let long = "a".repeat(1_000);
    let case = Case { name: long.clone(), payload: None };
    let read = |ty: Ty, json: &str, bytes_max: usize| {
        let mut types = Types::default();
        let item = types.push(ty).unwrap();
        let list = types.push(Ty::List(item)).unwrap();
        decode::value(&types, list, json, bytes_max as u64).map(drop).map_err(|error| error.message)
    };
    let hundred = |json: &str| format!("[{}]", vec![json; 100].join(","));
    let name = hundred(&format!("{long:?}"));
    for ty in [Ty::Enum(vec![long.clone()]), Ty::Variant(vec![case])] {
        assert!(read(ty.clone(), &name, 50_000).unwrap_err().contains("host_data"), "{ty:?}");
        assert_eq!(read(ty, &name, 200_000), Ok(()));
    }
    let mut types = Types::default();
    let flag = types.push(Ty::Bool).unwrap();
    let maybe = types.push(Ty::Option(flag)).unwrap();
    let list = types.push(Ty::List(maybe)).unwrap();
    let room = 201 * size_of::<Val>();
    assert!(decode::value(&types, list, &hundred("true"), room as u64 - 1).is_err());
    assert!(decode::value(&types, list, &hundred("true"), room as u64).is_ok());
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
    let again = TypedField { name: "more".to_owned(), ..days.clone() };
    let schema = schema::of_fields(&types, &NoDocs, &[days, again], &[]);
    assert_eq!(schema["properties"]["days"]["items"], json!({"$ref": "#/$defs/record"}));
    assert_eq!(schema["properties"]["days"]["items"], schema["properties"]["more"]["items"]);
    assert_eq!(schema["$defs"]["record"]["required"], json!(["temp"]));
}

/// Texts that are hardly ever JSON of the types: valid ones with some bytes replaced, left out or
/// repeated.
#[test]
fn any_text_is_accepted_by_the_schema_or_refused_without_harm() {
    let mut dice = Random(0x8538_ecb5_bd45_6ea3);
    let mut accepted = 0;
    for _ in 0..200 {
        let mut types = Types::default();
        let ty = any_type(&mut types, &mut dice, 4);
        let field = TypedField { wit_name: "it".to_owned(), name: "it".to_owned(), ty };
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
                // If a key repeats, JSON that is read into a map keeps the last value.
                Ok(json) if validator.is_valid(&json) => accepted += usize::from(converted.is_ok()),
                Ok(_) => assert!(converted.is_err(), "{schema:#}\n{text}"),
            }
        }
    }
    assert!(accepted > 2_000, "{accepted}");
}
