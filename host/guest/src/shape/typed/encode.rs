//! Component values → JSON text, driven by the types.
use std::fmt::{self, Write as _};

use base64::Engine as _;
use wasmtime::component::Val;

use super::ty::{Int, Ty, TyId, TypedField, Types};

type Result<T> = std::result::Result<T, EncodeError>;

/// The largest integer that every JSON parser keeps exactly: 2^53 - 1.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// Why a value cannot be written as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodeError {
    /// The text would be longer than allowed.
    #[error("the result's JSON is too long")]
    TooLong,
    /// The engine returned a value of another type.
    #[error("the result is not of its type")]
    Mismatch,
}

/// The JSON of a function's result, as an object: a record itself, any other value as `result`.
pub(crate) fn result(types: &Types, ty: Option<TyId>, value: Option<&Val>, bytes_max: usize) -> Result<String> {
    let mut writer = ValueWriter { types, text: String::new(), bytes_max };
    match (ty, value) {
        (None, None) => writer.push("{}")?,
        (Some(ty), Some(value)) if matches!(types.get(ty), Ty::Record(_)) => writer.value(ty, value)?,
        (Some(ty), Some(value)) => writer.tagged("result", Some((ty, value)))?,
        _ => return Err(EncodeError::Mismatch),
    }
    Ok(writer.text)
}

/// The JSON of a typed error, as an object: `{"error": …}`.
pub(crate) fn error(types: &Types, ty: Option<TyId>, value: Option<&Val>, bytes_max: usize) -> Result<String> {
    let mut writer = ValueWriter { types, text: String::new(), bytes_max };
    writer.tagged("error", ty.zip(value))?;
    Ok(writer.text)
}

/// The JSON of a value.
///
/// # Errors
/// [`EncodeError`] if it is longer than `bytes_max`.
#[cfg(test)]
pub(crate) fn value(types: &Types, ty: TyId, value: &Val, bytes_max: usize) -> Result<String> {
    let mut writer = ValueWriter { types, text: String::new(), bytes_max };
    writer.value(ty, value)?;
    Ok(writer.text)
}

/// Bytes that are checked together: a cache line.
const STRIDE: usize = 64;

/// True if a text needs no escapes in JSON. Each stride is checked without an early exit, so it is
/// vectorized.
fn is_plain(text: &str) -> bool {
    let escaped = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    text.as_bytes().chunks(STRIDE).all(|bytes| !bytes.iter().fold(false, |found, byte| found | escaped(byte)))
}

struct ValueWriter<'a> {
    types: &'a Types,
    text: String,
    bytes_max: usize,
}

impl ValueWriter<'_> {
    fn push(&mut self, part: &str) -> Result<()> {
        if self.text.len() + part.len() > self.bytes_max {
            return Err(EncodeError::TooLong);
        }
        self.text.push_str(part);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<()> {
        // Texts always serialize. A text that is too long is refused before it is copied.
        if text.len() > self.bytes_max {
            return Err(EncodeError::TooLong);
        }
        if is_plain(text) {
            // Reserved at once, so that a long text is not moved when more text follows.
            self.text.reserve(text.len() + 2);
            self.push("\"")?;
            self.push(text)?;
            return self.push("\"");
        }
        let quoted = serde_json::to_string(text).map_err(|_| EncodeError::Mismatch)?;
        self.push(&quoted)
    }

    /// A short text, written in place.
    fn push_shown(&mut self, shown: impl fmt::Display) -> Result<()> {
        let before = self.text.len();
        write!(self.text, "{shown}").map_err(|_| EncodeError::Mismatch)?;
        if self.text.len() > self.bytes_max {
            self.text.truncate(before);
            return Err(EncodeError::TooLong);
        }
        Ok(())
    }

    fn value(&mut self, ty: TyId, value: &Val) -> Result<()> {
        let types = self.types;
        match (types.get(ty), value) {
            (Ty::Bool, Val::Bool(value)) => self.push(if *value { "true" } else { "false" }),
            (Ty::Int(int), value) => self.integer(*int, value),
            (Ty::F32, Val::Float32(value)) => {
                // The shortest text of the largest f32, parsed as f64, is larger than it.
                let shortest = (value.abs() < f32::MAX).then(|| value.to_string());
                self.float(shortest, f64::from(*value))
            }
            (Ty::F64, Val::Float64(value)) => self.float(None, *value),
            (Ty::Char, Val::Char(value)) => self.string(value.encode_utf8(&mut [0; 4])),
            (Ty::Text, Val::String(value)) => self.string(value),
            (Ty::Bytes, Val::List(values)) => self.bytes(values),
            (Ty::List(item), Val::List(values)) | (Ty::FixedList(item, _), Val::FixedLengthList(values)) => {
                self.array(values, |writer, value| writer.value(*item, value))
            }
            (Ty::Tuple(types), Val::Tuple(values)) => {
                self.array(types.iter().zip(values), |writer, (ty, value)| writer.value(*ty, value))
            }
            (Ty::Record(fields), Val::Record(values)) => self.record(fields, values),
            (Ty::Variant(cases), Val::Variant(name, payload)) => {
                let case = cases.iter().find(|case| case.name == *name).ok_or(EncodeError::Mismatch)?;
                match (case.payload, payload) {
                    (None, None) => self.string(name),
                    (Some(ty), Some(value)) => self.tagged(name, Some((ty, value))),
                    _ => Err(EncodeError::Mismatch),
                }
            }
            (Ty::Enum(_), Val::Enum(label)) => self.string(label),
            (Ty::Flags(_), Val::Flags(labels)) => self.array(labels, |writer, label| writer.string(label)),
            (Ty::Option(_), Val::Option(None)) => self.push("null"),
            (Ty::Option(inner), Val::Option(Some(value))) if types.is_optional(*inner) => {
                self.tagged("some", Some((*inner, value)))
            }
            (Ty::Option(inner), Val::Option(Some(value))) => self.value(*inner, value),
            (Ty::Result(ok, err), Val::Result(result)) => {
                let (key, ty, payload) = match result {
                    Ok(payload) => ("ok", ok, payload),
                    Err(payload) => ("err", err, payload),
                };
                self.tagged(key, (*ty).zip(payload.as_deref()))
            }
            (Ty::Stream(Some(item)), Val::List(values)) => {
                self.array(values, |writer, value| writer.value(*item, value))
            }
            (Ty::Stream(Some(_)), Val::String(bytes)) => self.string(bytes),
            (Ty::Stream(None), Val::List(nothings)) => self.array(nothings, |writer, _| writer.push("null")),
            (Ty::Future(item), Val::List(values)) => match (item, values.as_slice()) {
                (Some(item), [value]) => self.value(*item, value),
                (None, [_]) => self.push("null"),
                _ => Err(EncodeError::Mismatch),
            },
            _ => Err(EncodeError::Mismatch),
        }
    }

    fn integer(&mut self, int: Int, value: &Val) -> Result<()> {
        // Most are small. 64 bits are written in a fraction of the time of 128.
        let (small, magnitude) = match value {
            Val::S8(value) => (i64::from(*value), 0),
            Val::U8(value) => (i64::from(*value), 0),
            Val::S16(value) => (i64::from(*value), 0),
            Val::U16(value) => (i64::from(*value), 0),
            Val::S32(value) => (i64::from(*value), 0),
            Val::U32(value) => (i64::from(*value), 0),
            Val::S64(value) => (*value, value.unsigned_abs()),
            Val::U64(value) => match i64::try_from(*value) {
                Ok(small) => (small, *value),
                Err(_) => return self.push_shown(format_args!("\"{value}\"")),
            },
            _ => return Err(EncodeError::Mismatch),
        };
        if int.is_wide() && magnitude > EXACT_MAX {
            return self.push_shown(format_args!("\"{small}\""));
        }
        self.push_shown(small)
    }

    /// `shortest` is the text of an f32: as an f64 it would have extra digits.
    fn float(&mut self, shortest: Option<String>, value: f64) -> Result<()> {
        if value.is_nan() {
            return self.push("\"NaN\"");
        }
        if value.is_infinite() {
            return self.push(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
        }
        let text = match shortest {
            Some(text) => text,
            None => serde_json::to_string(&value).map_err(|_| EncodeError::Mismatch)?,
        };
        self.push(&text)
    }

    fn bytes(&mut self, values: &[Val]) -> Result<()> {
        if values.len() > self.bytes_max {
            return Err(EncodeError::TooLong);
        }
        let bytes: Option<Vec<u8>> =
            values.iter().map(|value| if let Val::U8(byte) = value { Some(*byte) } else { None }).collect();
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes.ok_or(EncodeError::Mismatch)?);
        self.string(&encoded)
    }

    /// Items in brackets, each written by `write`.
    fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.push("[")?;
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.push(",")?;
            }
            write(self, item)?;
        }
        self.push("]")
    }

    fn record(&mut self, fields: &[TypedField], values: &[(String, Val)]) -> Result<()> {
        self.push("{")?;
        let mut is_first = true;
        for (field, (_, value)) in fields.iter().zip(values) {
            // An empty option is left out.
            if matches!(value, Val::Option(None)) {
                continue;
            }
            // WIT names are letters, digits and hyphens, so they need no escapes.
            self.push(if is_first { "\"" } else { ",\"" })?;
            is_first = false;
            self.push(&field.name)?;
            self.push("\":")?;
            self.value(field.ty, value)?;
        }
        self.push("}")
    }

    fn tagged(&mut self, key: &str, payload: Option<(TyId, &Val)>) -> Result<()> {
        self.push("{")?;
        self.string(key)?;
        self.push(":")?;
        match payload {
            Some((ty, value)) => self.value(ty, value)?,
            None => self.push("null")?,
        }
        self.push("}")
    }
}
