//! The cases of `tests/clients/cases.json`, as the Rust client reads them: servers, calls and
//! expectations.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// One toolcell to start, and the requests to make of it.
pub(super) struct Server(Value);

/// One call and its expected result.
#[derive(Clone, Copy)]
pub(super) struct Case<'a>(&'a Value);

impl Server {
    /// The server of this name.
    pub(super) fn named(name: &str) -> Self {
        let path = super::folder().join("cases.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let all: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(all[name].clone())
    }

    /// The manifest to serve.
    pub(super) fn manifest(&self) -> PathBuf {
        super::folder().join(text(&self.0["manifest"]))
    }

    /// The arguments with which the binary under test serves this to the client that starts it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let manifest = self.manifest();
        let options = self.0["options"].as_array().into_iter().flatten().map(|option| text(option).to_owned());
        ["serve".to_owned(), "--manifest".to_owned(), manifest.display().to_string()]
            .into_iter()
            .chain(options)
            .collect()
    }

    /// The cases of one kind: `calls`, `refusals` or `resources`.
    pub(super) fn cases(&self, kind: &str) -> impl Iterator<Item = Case<'_>> {
        self.0[kind].as_array().unwrap_or_else(|| panic!("cases.json: no {kind}")).iter().map(Case)
    }

    /// Fails unless the definitions of these tools, by name, hold everything the cases expect.
    pub(super) fn check_definitions(&self, tools: &Value) {
        let wrong = mismatches(&self.0["definitions"], tools, "$");
        assert!(wrong.is_empty(), "definitions\n  {}", wrong.join("\n  "));
    }

    /// The short call that is made while another runs.
    pub(super) fn meanwhile(&self) -> Case<'_> {
        Case(&self.0["meanwhile"])
    }

    /// The page size in the manifest, in tools.
    pub(super) fn page_size(&self) -> usize {
        self.0["pageSize"].as_u64().and_then(|size| usize::try_from(size).ok()).expect("cases.json: a pageSize")
    }
}

impl<'a> Case<'a> {
    /// The tool to call.
    pub(super) fn tool(self) -> &'a str {
        text(&self.0["tool"])
    }

    /// The purpose of the case, for messages.
    pub(super) fn shows(self) -> &'a str {
        text(&self.0["shows"])
    }

    /// The arguments of the call.
    pub(super) fn arguments(self) -> Map<String, Value> {
        self.0["arguments"].as_object().unwrap().clone()
    }

    /// True if the tool reports progress.
    pub(super) fn reports_progress(self) -> bool {
        self.0["progress"] == Value::Bool(true)
    }

    /// The template that lists a resource.
    pub(super) fn template(self) -> &'a str {
        text(&self.0["template"])
    }

    /// The address of a resource.
    pub(super) fn uri(self) -> &'a str {
        text(&self.0["uri"])
    }

    /// Fails unless the resource holds what the case expects.
    pub(super) fn check_contents(self, contents: &Value) {
        let wrong = mismatches(&self.0["contents"], contents, "$");
        assert!(wrong.is_empty(), "{}\n  {}", self.shows(), wrong.join("\n  "));
    }

    /// Fails unless the result is the one that the case expects.
    pub(super) fn check(self, result: &Value) {
        let wrong = mismatches(&self.0["result"], result, "$");
        assert!(wrong.is_empty(), "{}: {}\n  {}", self.tool(), self.shows(), wrong.join("\n  "));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("cases.json: {value} is not text"))
}

/// The places where `value` differs from `pattern`. Objects may hold more than the pattern names;
/// lists may not.
fn mismatches(pattern: &Value, value: &Value, path: &str) -> Vec<String> {
    match (pattern, value) {
        (Value::Object(wanted), _) if wanted.len() == 1 && wanted.keys().all(|key| key.starts_with('$')) => {
            let met = wanted.iter().all(|(operator, operand)| holds(operator, operand, value));
            if met { Vec::new() } else { vec![format!("{path}: {} is not {pattern}", shortened(value))] }
        }
        (Value::Object(wanted), Value::Object(had)) => wanted
            .iter()
            .flat_map(|(key, want)| match had.get(key) {
                Some(have) => mismatches(want, have, &format!("{path}.{key}")),
                None => vec![format!("{path}: no {key:?} in {}", shortened(value))],
            })
            .collect(),
        (Value::Array(wanted), Value::Array(had)) if wanted.len() == had.len() => {
            let pairs = wanted.iter().zip(had).enumerate();
            pairs.flat_map(|(at, (want, have))| mismatches(want, have, &format!("{path}[{at}]"))).collect()
        }
        (Value::Number(want), Value::Number(have)) if want.as_f64() == have.as_f64() => Vec::new(),
        _ if pattern == value => Vec::new(),
        _ => vec![format!("{path}: {} is not {}", shortened(value), shortened(pattern))],
    }
}

/// True if this operator of cases.json holds for `value`.
fn holds(operator: &str, operand: &Value, value: &Value) -> bool {
    match operator {
        "$contains" => value.as_str().is_some_and(|value| value.contains(text(operand))),
        "$bytes" => value.as_str().is_some_and(|value| hexadecimal(value).starts_with(text(operand))),
        "$atLeast" => value.as_f64().is_some_and(|value| value >= operand.as_f64().unwrap()),
        _ => panic!("cases.json: no operator {operator}"),
    }
}

/// The bytes of a base64 text, in hexadecimal. Bits that do not fill a byte are left out.
fn hexadecimal(base64: &str) -> String {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = base64.trim_end_matches('=').chars();
    let bits: String = digits.map(|digit| format!("{:06b}", DIGITS.find(digit).expect("a base64 digit"))).collect();
    let whole = bits.as_bytes().chunks_exact(8);
    whole.map(|byte| format!("{:02x}", u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())).collect()
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(600).collect()
}
