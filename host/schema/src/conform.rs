//! Normalises arguments by their schema: an optional member that is `null` where `null` is not
//! allowed is left out, and an integer written as `1.0` becomes `1`.
//!
//! Only these places of the text change, so all other numbers and names stay as they are.

use serde_json::{Map, Value};

use crate::graph::normal;
use crate::keywords::names_type;

/// Most steps for one text: visited subschemas, members and choices. An argument takes two or
/// three, and two million take a tenth of a second. The rest of the text then stays as it is.
const STEPS_MAX: usize = 2_000_000;

/// Deepest chain of references and alternatives for one value.
const DEPTH_MAX: usize = 32;

/// The rewritten text; `None` if nothing changes.
pub(crate) fn rewritten(schema: &Value, text: &str) -> Option<String> {
    if !may_change(text.as_bytes()) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let mut rewriter = Rewriter { root: schema, text, at: 0, out: String::new(), copied: 0, steps: STEPS_MAX };
    rewriter.value(&value, vec![schema]);
    if rewriter.copied == 0 {
        return None;
    }
    rewriter.out.push_str(text.get(rewriter.copied..).unwrap_or_default());
    Some(rewriter.out)
}

/// True if a text contains a `null`, or a number with a fraction or an exponent.
fn may_change(text: &[u8]) -> bool {
    let is_number = |pair: &[u8]| matches!(pair, [b'0'..=b'9', b'.' | b'e' | b'E']);
    text.windows(4).any(|four| four == b"null") || text.windows(2).any(is_number)
}

struct Rewriter<'a> {
    root: &'a Value,
    text: &'a str,
    /// Offset of the next byte.
    at: usize,
    out: String,
    /// Up to here the text is in `out` or left out.
    copied: usize,
    steps: usize,
}

impl<'a> Rewriter<'a> {
    /// Rewrites one value, to which these schemas apply.
    fn value(&mut self, value: &Value, schemas: Vec<&'a Value>) {
        self.skip_blank();
        let mut applied = Vec::new();
        for schema in schemas {
            self.applied(schema, value, 0, &mut applied);
        }
        match value {
            Value::Object(members) => self.object(members, &applied),
            Value::Array(items) => self.array(items, &applied),
            Value::String(_) => drop(self.string()),
            Value::Number(number) => {
                let from = self.at;
                self.skip_token();
                let exact = number.as_f64().filter(|_| number.is_f64()).and_then(whole);
                if let Some(integer) = exact.filter(|_| applied.iter().any(|schema| wants_integer(schema))) {
                    self.replace(from, self.at, &integer);
                }
            }
            Value::Bool(_) | Value::Null => self.skip_token(),
        }
    }

    fn object(&mut self, members: &Map<String, Value>, applied: &[&'a Map<String, Value>]) {
        self.at += 1;
        // The end of the last member that stays.
        let mut kept_end = None;
        loop {
            self.skip_blank();
            match self.byte() {
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                Some(b'"') => {}
                _ => break,
            }
            let from = self.at;
            let name = self.string();
            self.skip_blank();
            self.at += 1;
            let value = members.get(name.as_ref()).unwrap_or(&Value::Null);
            let applied = if self.pay(applied.len()) { applied } else { &[] };
            let declared: Vec<&'a Value> =
                applied.iter().filter_map(|schema| schema.get("properties")?.get(name.as_ref())).collect();
            if value.is_null() && self.is_left_out(&name, &declared, applied) {
                self.skip_blank();
                self.skip_token();
                self.leave_out(from, kept_end);
                continue;
            }
            let schemas = if declared.is_empty() {
                applied.iter().filter_map(|schema| schema.get("additionalProperties")).collect()
            } else {
                declared
            };
            self.value(value, schemas);
            kept_end = Some(self.at);
        }
        self.at += 1;
    }

    /// True if this optional member is `null` where that is not allowed, which means that it is
    /// absent.
    fn is_left_out(&mut self, name: &str, declared: &[&'a Value], applied: &[&'a Map<String, Value>]) -> bool {
        for schema in applied {
            let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if !self.pay(required.len()) || required.iter().any(|required| required == name) {
                return false;
            }
        }
        declared.iter().any(|schema| self.refuses_null(schema, 0))
    }

    /// Leaves a member out, with one of the commas around it.
    fn leave_out(&mut self, from: usize, kept_end: Option<usize>) {
        let from = match kept_end {
            Some(end) => end.max(self.copied),
            None => {
                self.skip_blank();
                if self.byte() == Some(b',') {
                    self.at += 1;
                }
                from
            }
        };
        self.replace(from, self.at, "");
    }

    fn array(&mut self, items: &[Value], applied: &[&'a Map<String, Value>]) {
        self.at += 1;
        for (place, item) in items.iter().enumerate() {
            let applied = if self.pay(applied.len()) { applied } else { &[] };
            let schemas = applied.iter().filter_map(|schema| {
                let listed = schema.get("prefixItems").or_else(|| schema.get("items").filter(|items| items.is_array()));
                listed
                    .and_then(|listed| listed.get(place))
                    .or_else(|| schema.get("items").filter(|items| items.is_object()))
            });
            let schemas = schemas.collect();
            self.value(item, schemas);
            self.skip_blank();
            // A comma, or the end.
            self.at += 1;
        }
        if items.is_empty() {
            self.skip_blank();
            self.at += 1;
        }
    }

    /// Adds the schemas that apply to a value together with this one: itself, and those that it
    /// refers to or contains.
    fn applied(&mut self, schema: &'a Value, value: &Value, depth: usize, found: &mut Vec<&'a Map<String, Value>>) {
        let Some(members) = schema.as_object() else { return };
        if depth > DEPTH_MAX || !self.pay(1) {
            return;
        }
        found.push(members);
        if let Some(target) = self.target(members) {
            self.applied(target, value, depth + 1, found);
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.applied(part, value, depth + 1, found);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = members.get(keyword).and_then(Value::as_array).into_iter().flatten();
            let fitting: Vec<&'a Value> = branches.filter(|branch| self.may_fit(branch, value, depth + 1)).collect();
            if let [only] = fitting.as_slice() {
                self.applied(only, value, depth + 1, found);
            }
        }
    }

    /// False if a value clearly does not match an alternative: by its type, a missing member, or a
    /// constant. True if the steps are used up, so that none is taken for the only match.
    fn may_fit(&mut self, branch: &'a Value, value: &Value, depth: usize) -> bool {
        let Some(members) = branch.as_object() else { return branch != &Value::Bool(false) };
        if !self.pay(1) {
            return true;
        }
        if let Some(target) = self.target(members).filter(|_| depth <= DEPTH_MAX) {
            return self.may_fit(target, value, depth + 1);
        }
        let of_type = match members.get("type") {
            Some(Value::String(ty)) => is_of_type(value, ty),
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).any(|ty| is_of_type(value, ty)),
            _ => true,
        };
        if !of_type || !self.may_be(members, value) {
            return false;
        }
        let Value::Object(given) = value else { return true };
        let required = members.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !self.pay(required.len()) {
            return true;
        }
        if required.iter().filter_map(Value::as_str).any(|name| !given.contains_key(name)) {
            return false;
        }
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_another = match (given.get(name), schema) {
                (Some(value), Value::Object(schema)) => !value.is_null() && !self.may_be(schema, value),
                _ => false,
            };
            if is_another || !self.pay(1) {
                return !is_another;
            }
        }
        true
    }

    /// False if a schema enumerates its values and this is not among them.
    fn may_be(&mut self, schema: &Map<String, Value>, value: &Value) -> bool {
        let constant = schema.get("const").map(std::slice::from_ref);
        for choices in [constant, schema.get("enum").and_then(Value::as_array).map(Vec::as_slice)].into_iter().flatten()
        {
            if self.pay(choices.len()) && !choices.contains(value) {
                return false;
            }
        }
        true
    }

    /// True if a schema clearly does not accept `null`.
    fn refuses_null(&mut self, schema: &'a Value, depth: usize) -> bool {
        let Some(members) = schema.as_object().filter(|_| depth <= DEPTH_MAX) else {
            return schema == &Value::Bool(false);
        };
        if !self.pay(1) {
            return false;
        }
        let ty = members.get("type").filter(|ty| ty.is_string() || ty.is_array());
        let is_another = ty.is_some() && !names_type(ty, "null");
        if is_another || !self.may_be(members, &Value::Null) {
            return true;
        }
        if self.target(members).is_some_and(|target| self.refuses_null(target, depth + 1)) {
            return true;
        }
        let list = |keyword: &str| members.get(keyword).and_then(Value::as_array);
        if list("allOf").is_some_and(|parts| parts.iter().any(|part| self.refuses_null(part, depth + 1))) {
            return true;
        }
        ["anyOf", "oneOf"]
            .into_iter()
            .filter_map(list)
            .any(|branches| !branches.is_empty() && branches.iter().all(|branch| self.refuses_null(branch, depth + 1)))
    }

    /// Uses steps. False once they are used up.
    fn pay(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// The schema that a reference by JSON Pointer names.
    fn target(&self, members: &'a Map<String, Value>) -> Option<&'a Value> {
        let fragment = members.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(&normal(fragment))
    }

    fn replace(&mut self, from: usize, to: usize, by: &str) {
        self.out.push_str(self.text.get(self.copied..from).unwrap_or_default());
        self.out.push_str(by);
        self.copied = to;
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips a number, `true`, `false` or `null`.
    fn skip_token(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
    }

    /// Parses a string.
    fn string(&mut self) -> std::borrow::Cow<'a, str> {
        let from = self.at;
        self.at += 1;
        let mut escapes = false;
        while let Some(byte) = self.byte() {
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    escapes = true;
                    self.at += 1;
                }
                _ => {}
            }
        }
        let whole = self.text.get(from..self.at).unwrap_or_default();
        if escapes {
            return serde_json::from_str::<String>(whole).unwrap_or_default().into();
        }
        whole.trim_matches('"').into()
    }
}

fn is_of_type(value: &Value, ty: &str) -> bool {
    match (ty, value) {
        ("object", Value::Object(_)) | ("array", Value::Array(_)) | ("string", Value::String(_)) => true,
        ("boolean", Value::Bool(_)) | ("null", Value::Null) | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    }
}

/// True if numbers of this schema are integers.
fn wants_integer(schema: &Map<String, Value>) -> bool {
    let ty = schema.get("type");
    names_type(ty, "integer") && !names_type(ty, "number")
}

/// A float without a fraction, as a 64-bit integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the ranges are checked")]
fn whole(float: f64) -> Option<String> {
    const PAST_I64: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() != 0.0 {
        return None;
    }
    if (-PAST_I64..PAST_I64).contains(&float) {
        return Some((float as i64).to_string());
    }
    (PAST_I64..2.0 * PAST_I64).contains(&float).then(|| (float as u64).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::rewritten;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "mode": {"type": "string"}, "indent": {"type": "integer"}, "free": {}, "maybe": {"type": ["string", "null"]},
                "ref": {"$ref": "#/$defs/inner"}, "list": {"type": "array", "items": {"$ref": "#/$defs/inner"}},
                "pair": {"prefixItems": [{"type": "integer"}, {"type": "number"}], "items": {}},
                "wide": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "tag": {"oneOf": [
                    {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k"]},
                    {"properties": {"k": {"const": "b"}, "n": {"type": "number"}}, "required": ["k"]}
                ]}
            },
            "required": ["mode"],
            "$defs": {"inner": {"type": "object", "properties": {"n": {"enum": [1, 2]}, "m": {"type": "integer"}}, "required": ["n"]}}
        })
    }

    #[test]
    fn only_what_stands_for_absence_and_for_an_integer_is_rewritten() {
        for (text, expected) in [
            (r#"{"mode":"crlf","indent":null}"#, Some(r#"{"mode":"crlf"}"#)),
            (r#"{ "indent" : null , "mode" : "a.b" }"#, Some(r#"{  "mode" : "a.b" }"#)),
            (r#"{"indent":null,"ref":null}"#, Some("{}")),
            (r#"{"mode":"x","indent":null,"ref":null,"free":1}"#, Some(r#"{"mode":"x","free":1}"#)),
            (r#"{"free":null,"maybe":null,"mode":null,"other":null}"#, None),
            (r#"{"i\u006edent":null,"mode":"null"}"#, Some(r#"{"mode":"null"}"#)),
            (r#"{"ref":{"n":null,"m":null}}"#, Some(r#"{"ref":{"n":null}}"#)),
            (
                r#"{"list":[{"m":null},{"n":1.0,"m":-2.0}],"free":1.0}"#,
                Some(r#"{"list":[{},{"n":1.0,"m":-2}],"free":1.0}"#),
            ),
            (r#"{"indent":1.0,"free":0.10000000000000000001}"#, Some(r#"{"indent":1,"free":0.10000000000000000001}"#)),
            (
                r#"{"indent":1e3,"wide":2.0,"pair":[3.0,4.0,5.0]}"#,
                Some(r#"{"indent":1000,"wide":2,"pair":[3,4.0,5.0]}"#),
            ),
            (r#"{"indent":1.5,"wide":1e300}"#, None),
            (r#"{"indent":9223372036854775808.0}"#, Some(r#"{"indent":9223372036854775808}"#)),
            (r#"{"tag":{"k":"a","n":1.0}}"#, Some(r#"{"tag":{"k":"a","n":1}}"#)),
            (r#"{"tag":{"k":"b","n":1.0}}"#, None),
            (r#"{"tag":{"k":"a","n":null}}"#, Some(r#"{"tag":{"k":"a"}}"#)),
        ] {
            assert_eq!(rewritten(&schema(), text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_schema_that_multiplies_is_followed_as_far_as_the_steps_go() {
        let mut doubled = json!({"type": "integer"});
        for _ in 0..15 {
            doubled = json!({"allOf": [doubled, doubled]});
        }
        let schema = json!({"items": doubled});
        let text = json!(vec![1.0; 1_000]).to_string();
        let changed = rewritten(&schema, &text).unwrap_or_default();
        assert!(changed.starts_with("[1,1,1") && changed.ends_with("1.0,1.0]"), "{changed}");
        // Alternatives, choices and required names take steps too.
        let choices: Vec<String> = (0..5_000).map(|number| format!("c{number}")).collect();
        let branch = json!({"properties": {"k": {"enum": choices}}, "required": choices});
        let alternatives = json!({"items": {"anyOf": vec![branch; 10], "properties": {"n": {"type": "integer"}}, "required": choices}});
        let text = json!(vec![json!({"k": "other", "n": null}); 20_000]).to_string();
        let began = std::time::Instant::now();
        let changed = rewritten(&alternatives, &text).unwrap_or_default();
        assert!(changed.starts_with(r#"[{"k":"other"}"#) && changed.ends_with(r#""n":null}]"#), "{}", changed.len());
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(rewritten(&json!({"properties": {"a": {"$ref": "#/properties/a"}}}), r#"{"a":null}"#), None);
    }
}
