//! An OpenAPI document: its version, and what its references lead to.
use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::BridgeError;
use crate::limits::{POINTER_SEGMENTS_MAX, REFERENCES_MAX};

/// A document of a version that is read.
pub(crate) struct Document<'a> {
    pub(crate) root: &'a Map<String, Value>,
    /// True for 3.0, whose schemas have `nullable` and bounds that are true or false.
    pub(crate) is_30: bool,
}

impl<'a> Document<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, BridgeError> {
        let form = "an OpenAPI document has `openapi: 3.0.x` or `3.1.x`, `info` and `paths`";
        let Value::Object(root) = value else {
            return Err(BridgeError::new("the document is not an object", form));
        };
        if let Some(Value::String(version)) = root.get("swagger") {
            let hint = "convert it to OpenAPI 3 first, such as with `npx swagger2openapi`";
            return Err(BridgeError::new(format!("the document is Swagger {}", crate::names::shown(version)), hint));
        }
        // In YAML a version of two parts is a number.
        let version = match root.get("openapi") {
            Some(Value::Number(version)) => Some(version.to_string()),
            version => version.and_then(Value::as_str).map(str::to_owned),
        };
        let is_30 = match version.as_deref() {
            Some(version) if version.starts_with("3.0") => true,
            // What is new in 3.2 is beside what is read here.
            Some(version) if ["3.1", "3.2"].iter().any(|known| version.starts_with(known)) => false,
            Some(version) => {
                let problem = format!("the document is of OpenAPI {}", crate::names::shown(version));
                return Err(BridgeError::new(problem, "3.0, 3.1 and 3.2 are read"));
            }
            None => return Err(BridgeError::new("the document does not say its version of OpenAPI", form)),
        };
        Ok(Self { root, is_30 })
    }

    /// The text of a member of `info`.
    pub(crate) fn info(&self, key: &str) -> &'a str {
        self.root.get("info").and_then(|info| info.get(key)?.as_str()).unwrap_or_default()
    }

    /// What a value is once its references are followed. `Err` is the end of a sentence.
    pub(crate) fn followed(&self, value: &'a Value) -> Result<&'a Value, String> {
        let mut value = value;
        for _ in 0..=REFERENCES_MAX {
            match value.get("$ref") {
                Some(Value::String(reference)) => value = self.target(reference)?,
                _ => return Ok(value),
            }
        }
        Err(format!("has more than {REFERENCES_MAX} references one behind the other"))
    }

    /// What a reference within the document leads to.
    pub(crate) fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let shown = || crate::names::shown(reference);
        let Some(pointer) = reference.strip_prefix("#/") else {
            return Err(format!("refers to {}, which is not in the document", shown()));
        };
        let mut segments = pointer.split('/');
        let first = segments.next().map(unescaped).unwrap_or_default();
        let mut value = self.root.get(first.as_ref());
        for segment in segments.by_ref().take(POINTER_SEGMENTS_MAX) {
            let segment = unescaped(segment);
            value = value.and_then(|value| match value {
                Value::Object(members) => members.get(segment.as_ref()),
                Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
                _ => None,
            });
        }
        if segments.next().is_some() {
            return Err(format!("refers to {}, which is too deep", shown()));
        }
        value.ok_or_else(|| format!("refers to {}, which does not exist", shown()))
    }
}

/// A pointer's segment without its escapes: `~1`, `~0`, and those of a fragment.
fn unescaped(segment: &str) -> Cow<'_, str> {
    if !segment.contains(['~', '%']) {
        return Cow::Borrowed(segment);
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let value = after.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match (byte, value) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Cow::Owned(text.replace("~1", "/").replace("~0", "~"))
}
