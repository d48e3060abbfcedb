//! Values of the component model as JSON, and back by their types.
//!
//! | WIT | JSON |
//! |---|---|
//! | `list<u8>` | `{"text": "…"}` for UTF-8, `{"base64": "…"}` for other bytes |
//! | `record`, other `list`, `tuple`, `flags` | object, array, array, array of names |
//! | `variant`, `enum` | the case's name, or `{"case": value}` |
//! | `option` | `null` or `{"some": value}` |
//! | `result` | `{"ok": value}` or `{"err": value}` |
//! | a handle | `{"handle": number}`, by its order in the recording |
//! | `f32`, `f64` | text, which is exact; infinities and NaN by their bits |
use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use wasmtime::component::types::{Case, Field};
use wasmtime::component::{ResourceAny, ResourceType, Type, Val};

/// The key of bytes that are not text.
const BYTES: &str = "base64";

/// The key of bytes that are text.
const TEXT: &str = "text";

/// The key of a handle.
const HANDLE: &str = "handle";

/// Bytes that one function for writing zeroes writes: the host takes 4 KiB at most.
const ZEROES_MAX: u64 = 4096;

/// Makes the handle of a number, of a type.
pub(super) type MakeHandle<'h> = dyn FnMut(u32, &ResourceType) -> wasmtime::Result<ResourceAny> + 'h;

/// Exchanges a handle for another one.
pub(super) type ExchangeHandle<'h> = dyn FnMut(ResourceAny, &ResourceType) -> wasmtime::Result<ResourceAny> + 'h;

/// A value of a kind that only asynchronous functions have: a stream, a future.
const NO_JSON: &str = "a value of a kind that no recording has";

/// Values as a list of JSON, whose handles have these numbers, in their order.
pub(super) struct Shown<'v> {
    values: &'v [Val],
    /// Those that follow.
    numbers: Cell<&'v [u32]>,
}

impl<'v> Shown<'v> {
    pub(super) fn new(values: &'v [Val], numbers: &'v [u32]) -> Self {
        Self { values, numbers: Cell::new(numbers) }
    }

    /// The same, or `None` for an empty list.
    pub(super) fn unless_empty(values: &'v [Val], numbers: &'v [u32]) -> Option<Self> {
        (!values.is_empty()).then(|| Self::new(values, numbers))
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        list(self.values, &self.numbers, to)
    }
}

/// One of the values.
struct ShownValue<'v, 'n> {
    value: &'v Val,
    numbers: &'v Cell<&'n [u32]>,
}

impl Serialize for ShownValue<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { value, numbers } = *self;
        match value {
            Val::Bool(value) => to.serialize_bool(*value),
            Val::U8(value) => to.serialize_u8(*value),
            Val::U16(value) => to.serialize_u16(*value),
            Val::U32(value) => to.serialize_u32(*value),
            Val::U64(value) => to.serialize_u64(*value),
            Val::S8(value) => to.serialize_i8(*value),
            Val::S16(value) => to.serialize_i16(*value),
            Val::S32(value) => to.serialize_i32(*value),
            Val::S64(value) => to.serialize_i64(*value),
            Val::Float32(value) if value.is_finite() => to.collect_str(value),
            Val::Float32(value) => to.collect_str(&format_args!("{:#010x}", value.to_bits())),
            Val::Float64(value) if value.is_finite() => to.collect_str(value),
            Val::Float64(value) => to.collect_str(&format_args!("{:#018x}", value.to_bits())),
            Val::Char(value) => to.serialize_char(*value),
            Val::String(value) | Val::Enum(value) => to.serialize_str(value),
            Val::List(values) => match bytes_of(values) {
                Some(bytes) => ShownBytes(&bytes).serialize(to),
                None => list(values, numbers, to),
            },
            Val::Tuple(values) => list(values, numbers, to),
            Val::Record(fields) => to.collect_map(fields.iter().map(|(name, value)| (name, Self { value, numbers }))),
            Val::Variant(case, None) => to.serialize_str(case),
            Val::Variant(case, Some(value)) => one(to, case, &Self { value, numbers }),
            Val::Option(None) => to.serialize_none(),
            Val::Option(Some(value)) => one(to, "some", &Self { value, numbers }),
            Val::Result(Ok(value)) => one(to, "ok", &value.as_deref().map(|value| Self { value, numbers })),
            Val::Result(Err(value)) => one(to, "err", &value.as_deref().map(|value| Self { value, numbers })),
            Val::Flags(names) => to.collect_seq(names),
            Val::Resource(_) => {
                let next = numbers.get();
                numbers.set(next.get(1..).unwrap_or_default());
                one(to, HANDLE, &next.first())
            }
            _ => Err(S::Error::custom(NO_JSON)),
        }
    }
}

/// Bytes as JSON.
pub(super) struct ShownBytes<'b>(pub(super) &'b [u8]);

impl Serialize for ShownBytes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            // As any empty list.
            Ok("") => to.collect_seq::<[u8; 0]>([]),
            Ok(text) => one(to, TEXT, text),
            Err(_) => one(to, BYTES, &BASE64.encode(self.0)),
        }
    }
}

fn list<'v, S: Serializer>(values: &'v [Val], numbers: &'v Cell<&[u32]>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(|value| ShownValue { value, numbers }))
}

/// An object with one key.
fn one<S: Serializer>(to: S, key: &str, value: &(impl Serialize + ?Sized)) -> Result<S::Ok, S::Error> {
    to.collect_map([(key, value)])
}

/// The values as JSON.
///
/// # Errors
/// One holds what only asynchronous functions have.
pub(super) fn to_json(values: &[Val], numbers: &[u32]) -> wasmtime::Result<Vec<Value>> {
    match serde_json::to_value(Shown::new(values, numbers))? {
        Value::Array(values) => Ok(values),
        other => Ok(vec![other]),
    }
}

/// The bytes of a `list<u8>`; `None` for any other list, and for an empty one.
fn bytes_of(values: &[Val]) -> Option<Vec<u8>> {
    let byte = |value: &Val| match value {
        Val::U8(byte) => Some(*byte),
        _ => None,
    };
    // Only the first is looked at before all are: elements have one type.
    values.first().and_then(byte)?;
    values.iter().map(byte).collect()
}

/// The value of this type that the JSON stands for.
///
/// # Errors
/// It stands for none. The recording was changed, or is another component's.
pub(super) fn from_json(value: &Value, ty: &Type, handles: &mut MakeHandle<'_>) -> wasmtime::Result<Val> {
    let unfit = || wasmtime::Error::msg(format!("the recording has a value of another type than {}", kind(ty)));
    let whole = || value.as_u64().ok_or_else(unfit);
    let signed = || value.as_i64().ok_or_else(unfit);
    Ok(match ty {
        Type::Bool => Val::Bool(value.as_bool().ok_or_else(unfit)?),
        Type::U8 => Val::U8(whole()?.try_into().map_err(|_| unfit())?),
        Type::U16 => Val::U16(whole()?.try_into().map_err(|_| unfit())?),
        Type::U32 => Val::U32(whole()?.try_into().map_err(|_| unfit())?),
        Type::U64 => Val::U64(whole()?),
        Type::S8 => Val::S8(signed()?.try_into().map_err(|_| unfit())?),
        Type::S16 => Val::S16(signed()?.try_into().map_err(|_| unfit())?),
        Type::S32 => Val::S32(signed()?.try_into().map_err(|_| unfit())?),
        Type::S64 => Val::S64(signed()?),
        Type::Float32 => Val::Float32(float32(value).ok_or_else(unfit)?),
        Type::Float64 => Val::Float64(float64(value).ok_or_else(unfit)?),
        Type::Char => Val::Char(value.as_str().and_then(|text| text.parse().ok()).ok_or_else(unfit)?),
        Type::String => Val::String(value.as_str().ok_or_else(unfit)?.to_owned()),
        Type::Enum(cases) => {
            let name = value.as_str().filter(|name| cases.names().any(|case| case == *name));
            Val::Enum(name.ok_or_else(unfit)?.to_owned())
        }
        Type::List(list) if list.ty() == Type::U8 => {
            Val::List(recorded_bytes(value).ok_or_else(unfit)?.into_iter().map(Val::U8).collect())
        }
        Type::List(list) => {
            let element = list.ty();
            let values = value.as_array().ok_or_else(unfit)?.iter();
            Val::List(values.map(|value| from_json(value, &element, handles)).collect::<wasmtime::Result<_>>()?)
        }
        Type::Tuple(tuple) => {
            let values = value.as_array().filter(|values| values.len() == tuple.types().len()).ok_or_else(unfit)?;
            let pairs = values.iter().zip(tuple.types());
            Val::Tuple(pairs.map(|(value, ty)| from_json(value, &ty, handles)).collect::<wasmtime::Result<_>>()?)
        }
        Type::Record(record) => {
            let object = value.as_object().filter(|object| object.len() == record.fields().len()).ok_or_else(unfit)?;
            let mut fields = Vec::with_capacity(object.len());
            for Field { name, ty } in record.fields() {
                let value = object.get(name).ok_or_else(unfit)?;
                fields.push((name.to_owned(), from_json(value, &ty, handles)?));
            }
            Val::Record(fields)
        }
        Type::Variant(variant) => {
            let (name, inner) = case_of(value).ok_or_else(unfit)?;
            let Case { ty, .. } = variant.cases().find(|case| case.name == name).ok_or_else(unfit)?;
            Val::Variant(name.to_owned(), boxed(inner, ty.as_ref(), handles)?)
        }
        Type::Option(option) => match value {
            Value::Null => Val::Option(None),
            _ => {
                let some = value.get("some").ok_or_else(unfit)?;
                Val::Option(Some(Box::new(from_json(some, &option.ty(), handles)?)))
            }
        },
        Type::Result(result) => match (value.get("ok"), value.get("err")) {
            (Some(value), None) => Val::Result(Ok(boxed(Some(value), result.ok().as_ref(), handles)?)),
            (None, Some(value)) => Val::Result(Err(boxed(Some(value), result.err().as_ref(), handles)?)),
            _ => return Err(unfit()),
        },
        Type::Flags(flags) => {
            let names: Option<Vec<&str>> = value.as_array().and_then(|names| names.iter().map(Value::as_str).collect());
            let names = names.filter(|names| names.iter().all(|name| flags.names().any(|flag| flag == *name)));
            Val::Flags(names.ok_or_else(unfit)?.into_iter().map(str::to_owned).collect())
        }
        Type::Own(resource) => Val::Resource(handles(recorded_handle(value).ok_or_else(unfit)?, resource)?),
        _ => return Err(unfit()),
    })
}

/// The value of a case, which may have none.
fn boxed(value: Option<&Value>, ty: Option<&Type>, handles: &mut MakeHandle<'_>) -> wasmtime::Result<Option<Box<Val>>> {
    match (value, ty) {
        (Some(value), Some(ty)) => Ok(Some(Box::new(from_json(value, ty, handles)?))),
        (None | Some(Value::Null), None) => Ok(None),
        _ => Err(wasmtime::Error::msg("the recording has a case with another value")),
    }
}

/// A variant's case and its value.
fn case_of(value: &Value) -> Option<(&str, Option<&Value>)> {
    match value {
        Value::String(name) => Some((name, None)),
        Value::Object(object) if object.len() == 1 => {
            object.iter().next().map(|(name, value)| (name.as_str(), Some(value)))
        }
        _ => None,
    }
}

/// The bytes that a recorded argument stands for; `None` if it is something else.
pub(super) fn recorded_bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Array(none) if none.is_empty() => Some(Vec::new()),
        _ => match (value.get(TEXT), value.get(BYTES)) {
            (Some(Value::String(text)), None) => Some(text.clone().into_bytes()),
            (None, Some(Value::String(text))) => BASE64.decode(text).ok(),
            _ => None,
        },
    }
}

/// True if values of this type may hold handles.
pub(super) fn has_handles(ty: &Type) -> bool {
    match ty {
        Type::Own(_) | Type::Borrow(_) => true,
        Type::List(list) => has_handles(&list.ty()),
        Type::Option(option) => has_handles(&option.ty()),
        Type::Tuple(tuple) => tuple.types().any(|ty| has_handles(&ty)),
        Type::Record(record) => record.fields().any(|field| has_handles(&field.ty)),
        Type::Variant(variant) => variant.cases().any(|case| case.ty.is_some_and(|ty| has_handles(&ty))),
        Type::Result(result) => [result.ok(), result.err()].into_iter().flatten().any(|ty| has_handles(&ty)),
        _ => false,
    }
}

/// The value with each handle exchanged.
///
/// # Errors
/// Those of the exchange, and one if the value is of another type.
pub(super) fn exchanged(value: &Val, ty: &Type, exchange: &mut ExchangeHandle<'_>) -> wasmtime::Result<Val> {
    let mut inner = |value: &Option<Box<Val>>, ty: Option<Type>| match (value, ty) {
        (Some(value), Some(ty)) => exchanged(value, &ty, exchange).map(|value| Some(Box::new(value))),
        _ => Ok(None),
    };
    Ok(match (value, ty) {
        (Val::Resource(handle), Type::Own(resource) | Type::Borrow(resource)) => {
            Val::Resource(exchange(*handle, resource)?)
        }
        (Val::List(values), Type::List(list)) if has_handles(&list.ty()) => {
            let element = list.ty();
            let values: wasmtime::Result<_> = values.iter().map(|value| exchanged(value, &element, exchange)).collect();
            Val::List(values?)
        }
        (Val::Tuple(values), Type::Tuple(tuple)) => {
            let pairs = values.iter().zip(tuple.types());
            let values: wasmtime::Result<_> = pairs.map(|(value, ty)| exchanged(value, &ty, exchange)).collect();
            Val::Tuple(values?)
        }
        (Val::Record(fields), Type::Record(record)) => {
            let mut changed = Vec::with_capacity(fields.len());
            for ((name, value), field) in fields.iter().zip(record.fields()) {
                changed.push((name.clone(), exchanged(value, &field.ty, exchange)?));
            }
            Val::Record(changed)
        }
        (Val::Variant(name, value), Type::Variant(variant)) => {
            let case = variant.cases().find(|case| case.name == name);
            Val::Variant(name.clone(), inner(value, case.and_then(|case| case.ty))?)
        }
        (Val::Option(value), Type::Option(option)) => Val::Option(inner(value, Some(option.ty()))?),
        (Val::Result(Ok(value)), Type::Result(result)) => Val::Result(Ok(inner(value, result.ok())?)),
        (Val::Result(Err(value)), Type::Result(result)) => Val::Result(Err(inner(value, result.err())?)),
        _ => value.clone(),
    })
}

/// The bytes that a function of an output stream writes; `None` if it writes none.
pub(super) fn written_bytes(function: &str, what: &Value) -> Option<Vec<u8>> {
    match function {
        "write" | "blocking-write-and-flush" => recorded_bytes(what),
        "write-zeroes" | "blocking-write-zeroes-and-flush" => {
            Some(vec![0; usize::try_from(what.as_u64()?.min(ZEROES_MAX)).ok()?])
        }
        _ => None,
    }
}

/// The number of a recorded handle.
pub(super) fn recorded_handle(value: &Value) -> Option<u32> {
    value.get(HANDLE).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok())
}

/// A float as text: exact, which a number of JSON is not with every parser.
fn float32(value: &Value) -> Option<f32> {
    let text = value.as_str()?;
    match text.strip_prefix("0x") {
        Some(bits) => u32::from_str_radix(bits, 16).ok().map(f32::from_bits),
        None => text.parse().ok(),
    }
}

fn float64(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    match text.strip_prefix("0x") {
        Some(bits) => u64::from_str_radix(bits, 16).ok().map(f64::from_bits),
        None => text.parse().ok(),
    }
}

fn kind(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => "an unsigned number",
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => "a signed number",
        Type::Float32 | Type::Float64 => "a float",
        Type::Char => "a char",
        Type::String => "a string",
        Type::List(_) => "a list",
        Type::Record(_) => "a record",
        Type::Tuple(_) => "a tuple",
        Type::Variant(_) => "a variant",
        Type::Enum(_) => "an enum",
        Type::Option(_) => "an option",
        Type::Result(_) => "a result",
        Type::Flags(_) => "flags",
        Type::Own(_) | Type::Borrow(_) => "a handle",
        _ => "what no recording has",
    }
}
