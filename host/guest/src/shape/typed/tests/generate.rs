//! Random types, random values of them, and JSON spoiled in one place.
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::path::Path;
use super::ty::{Case, Int, Ty, TyId, TypedField, Types};

/// The source of choices.
pub(crate) trait Dice {
    /// Any number.
    fn roll(&mut self) -> u64;

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// One of these.
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

const INTS: [Int; 8] = [Int::S8, Int::U8, Int::S16, Int::U16, Int::S32, Int::U32, Int::S64, Int::U64];

fn labels(dice: &mut impl Dice) -> Vec<String> {
    (0..=dice.below(4)).map(|at| format!("label-{at}")).collect()
}

/// Any type, nested as deep as `depth`.
pub(crate) fn any_type<D: Dice>(types: &mut Types, dice: &mut D, depth: u32) -> TyId {
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
                .map(|at| TypedField {
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
            let mut part = |dice: &mut D| (dice.below(2) == 0).then(|| any_type(types, dice, depth - 1));
            Ty::Result(part(dice), part(dice))
        }
    };
    types.push(ty).unwrap()
}

fn any_integer(dice: &mut impl Dice, int: Int) -> Val {
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

/// Any value of a type.
pub(crate) fn any_value<D: Dice>(types: &Types, dice: &mut D, ty: TyId) -> Val {
    let floats = [0.0, -0.0, 1.5, -2.25e10, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-30];
    let some = |dice: &mut D, ty: &TyId| Box::new(any_value(types, dice, *ty));
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
        Ty::Stream(_) | Ty::Future(_) => unreachable!("no type of these has one"),
    }
}

/// Spoils one place of a JSON value, or leaves it unchanged. Returns the place; `path` is that of
/// the value.
pub(crate) fn spoil(dice: &mut impl Dice, json: &mut Value, path: String) -> String {
    if dice.below(3) > 0 {
        match json {
            Value::Array(items) if !items.is_empty() => {
                let at = dice.below(items.len() as u64) as usize;
                return spoil(dice, &mut items[at], format!("{path}[{at}]"));
            }
            Value::Object(fields) if !fields.is_empty() => {
                let at = dice.below(fields.len() as u64) as usize;
                let (key, value) = fields.iter_mut().nth(at).unwrap();
                // The path of this key under the root, without the root itself.
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
        json!("-1.5e+3"),
        json!("1e999"),
        json!("1."),
        json!(".5"),
        json!("1e"),
        json!("inf"),
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

/// True if it is a problem that schemas leave to the conversion: the ranges of 64-bit integers and
/// floats.
pub(crate) fn is_out_of_range(problem: &str) -> bool {
    let wide =
        ["to 9223372036854775807", "to 18446744073709551615", "expected a number, ", "expected a number within ±"];
    wide.iter().any(|wide| problem.contains(wide))
}
