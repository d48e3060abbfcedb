//! What HTTP requests say besides their URL: headers and bodies, as a guest builds them.
use std::collections::HashMap;

use serde_json::{Value, json};
use toolcell_wall::tape::TapeEntry;

use super::values;

/// Bytes of headers and bodies that are kept of one call: as many as a recording has. Copies of
/// headers count as well.
const BYTES_MAX: usize = 16 << 20;

/// Headers of one request whose changes are followed. Each `set` and `delete` looks at all of them.
const HEADERS_MAX: usize = 1_000;

/// Bytes that a header counts besides its texts.
const HEADER_BYTES: usize = 64;

type Headers = Vec<(String, Value)>;

/// The requests of one call, whether they are sent or not.
#[derive(Default)]
pub(super) struct Requests {
    fields: HashMap<u32, Headers>,
    /// The places of requests, by the handles of requests, bodies and the streams of bodies.
    places: HashMap<u32, usize>,
    built: Vec<RequestContent>,
    bytes: usize,
}

/// Headers and body of a request.
#[derive(Default)]
pub(super) struct RequestContent {
    headers: Headers,
    body: Vec<u8>,
}

impl RequestContent {
    /// True if both have the same headers. Their order says nothing.
    pub(super) fn has_headers_of(&self, other: &Self) -> bool {
        let sorted = |headers: &Headers| {
            let mut lines: Vec<String> =
                headers.iter().map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase())).collect();
            lines.sort();
            lines
        };
        self.headers.len() == other.headers.len() && sorted(&self.headers) == sorted(&other.headers)
    }

    /// True if the body of this request may become that of the other one.
    pub(super) fn may_become(&self, other: &Self) -> bool {
        other.body.starts_with(&self.body)
    }

    /// True if both have the same body.
    pub(super) fn has_body_of(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

impl Requests {
    /// The place of the request, body or stream of this handle.
    pub(super) fn place(&self, handle: u32) -> Option<usize> {
        self.places.get(&handle).copied()
    }

    pub(super) fn get(&self, place: usize) -> Option<&RequestContent> {
        self.built.get(place)
    }

    /// False once they are larger than what is kept. They say nothing then.
    pub(super) fn are_whole(&self) -> bool {
        self.bytes <= BYTES_MAX
    }

    /// What a function reads of headers that the guest has built.
    pub(super) fn headers_read(&self, asked: &TapeEntry) -> Option<Value> {
        let headers = self.fields.get(&first_handle(asked)?)?;
        let name = asked.arguments.get(1).and_then(Value::as_str).unwrap_or_default();
        let of_name = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        match asked.function.strip_prefix("wasi:http/types#[method]fields.")? {
            "get" => Some(of_name.cloned().collect()),
            "has" => Some(json!(of_name.count() > 0)),
            "entries" => Some(headers.iter().map(|(name, value)| json!([name, value])).collect()),
            _ => None,
        }
    }

    /// Notes what a function built.
    pub(super) fn note(&mut self, entry: &TapeEntry) {
        let is_http = entry.function.starts_with("wasi:http/types#");
        if !self.are_whole() || (!is_http && !entry.function.starts_with("wasi:io/streams#")) {
            return;
        }
        let result = entry.results.first();
        if result.is_some_and(|result| result.get("err").is_some()) {
            return;
        }
        let given = result.and_then(|result| values::recorded_handle(result.get("ok").unwrap_or(result)));
        let Some((_, function)) = entry.function.split_once('#') else { return };
        match function {
            "[constructor]fields" => self.keep(given, Headers::new()),
            "[static]fields.from-list" => self.keep(given, listed(entry.arguments.first())),
            "[method]fields.clone" => {
                let copy = first_handle(entry).and_then(|from| self.fields.get(&from)).cloned();
                self.keep(given, copy.unwrap_or_default());
            }
            "[method]fields.append" | "[method]fields.set" | "[method]fields.delete" => self.change(function, entry),
            "[constructor]outgoing-request" => {
                let headers = first_handle(entry).and_then(|fields| self.fields.remove(&fields)).unwrap_or_default();
                self.place_at(given, self.built.len());
                self.built.push(RequestContent { headers, body: Vec::new() });
            }
            "[method]outgoing-request.headers" => {
                let built = first_handle(entry).and_then(|handle| self.place(handle)).and_then(|at| self.get(at));
                let headers = built.map(|built| built.headers.clone());
                self.keep(given, headers.unwrap_or_default());
            }
            "[method]outgoing-request.body" | "[method]outgoing-body.write" => {
                if let Some(place) = first_handle(entry).and_then(|handle| self.place(handle)) {
                    self.place_at(given, place);
                }
            }
            _ => self.write(function, entry),
        }
    }

    fn place_at(&mut self, handle: Option<u32>, place: usize) {
        if let Some(handle) = handle {
            self.places.insert(handle, place);
        }
    }

    fn keep(&mut self, handle: Option<u32>, headers: Headers) {
        self.bytes = self.bytes.saturating_add(headers.iter().map(|(name, value)| size(name, value)).sum());
        if let Some(handle) = handle.filter(|_| self.are_whole()) {
            self.fields.insert(handle, headers);
        }
    }

    fn change(&mut self, function: &str, entry: &TapeEntry) {
        let Some(headers) = first_handle(entry).and_then(|handle| self.fields.get_mut(&handle)) else { return };
        let Some(name) = entry.arguments.get(1).and_then(Value::as_str) else { return };
        if function != "[method]fields.append" {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        }
        let added = match (function, entry.arguments.get(2)) {
            ("[method]fields.append", Some(value)) => vec![value.clone()],
            ("[method]fields.set", Some(Value::Array(values))) => values.clone(),
            _ => Vec::new(),
        };
        if headers.len().saturating_add(added.len()) > HEADERS_MAX {
            self.bytes = usize::MAX;
            return;
        }
        for value in added {
            self.bytes = self.bytes.saturating_add(size(name, &value));
            headers.push((name.to_owned(), value));
        }
    }

    /// Notes bytes of a body.
    fn write(&mut self, function: &str, entry: &TapeEntry) {
        let Some(function) = function.strip_prefix("[method]output-stream.") else { return };
        let Some(place) = first_handle(entry).and_then(|handle| self.place(handle)) else { return };
        let bytes = entry.arguments.get(1).and_then(|what| values::written_bytes(function, what));
        if let (Some(bytes), Some(request)) = (bytes, self.built.get_mut(place)) {
            self.bytes = self.bytes.saturating_add(bytes.len());
            request.body.extend(bytes);
        }
    }
}

fn first_handle(entry: &TapeEntry) -> Option<u32> {
    entry.arguments.first().and_then(values::recorded_handle)
}

/// Headers as a list of pairs.
fn listed(list: Option<&Value>) -> Headers {
    let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.clone()));
    list.and_then(Value::as_array).into_iter().flatten().filter_map(pair).collect()
}

/// Bytes that a header counts. Its value is bytes, as text.
fn size(name: &str, value: &Value) -> usize {
    let value = value.as_object().and_then(|value| value.values().next()).and_then(Value::as_str);
    HEADER_BYTES + name.len() + value.map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(function: &str, arguments: Value, result: Value) -> TapeEntry {
        let function = format!("wasi:http/types#{function}");
        let arguments = arguments.as_array().cloned().unwrap();
        TapeEntry { function, arguments, results: vec![result], ..TapeEntry::default() }
    }

    fn fields(number: u32) -> TapeEntry {
        entry("[constructor]fields", json!([]), json!({ "handle": number }))
    }

    fn append(number: u32, name: &str, value: &str) -> TapeEntry {
        let arguments = json!([{ "handle": number }, name, { "text": value }]);
        entry("[method]fields.append", arguments, json!({ "ok": null }))
    }

    fn request(number: u32, fields: u32) -> TapeEntry {
        entry("[constructor]outgoing-request", json!([{ "handle": fields }]), json!({ "handle": number }))
    }

    fn built(entries: &[TapeEntry]) -> Requests {
        let mut requests = Requests::default();
        entries.iter().for_each(|entry| requests.note(entry));
        requests
    }

    #[test]
    fn headers_are_the_same_in_any_order_and_bodies_are_not() {
        let body = |text: &str| {
            [
                entry("[method]outgoing-request.body", json!([{"handle": 2}]), json!({"ok": {"handle": 3}})),
                entry("[method]outgoing-body.write", json!([{"handle": 3}]), json!({"ok": {"handle": 4}})),
                TapeEntry {
                    function: "wasi:io/streams#[method]output-stream.write".to_owned(),
                    arguments: vec![json!({"handle": 4}), json!({ "text": text })],
                    ..TapeEntry::default()
                },
            ]
        };
        let one = [&[fields(1), append(1, "A", "x"), append(1, "b", "y"), request(2, 1)][..], &body("text")].concat();
        let list = entry(
            "[static]fields.from-list",
            json!([[["B", {"text": "y"}], ["a", {"text": "x"}]]]),
            json!({"ok": {"handle": 1}}),
        );
        let other = [&[list, request(2, 1)][..], &body("te")].concat();
        let one = built(&one);
        let other = built(&other);
        let [one, other] = [&one, &other].map(|requests| requests.get(requests.place(4).unwrap()).unwrap());
        assert!(one.has_headers_of(other) && other.may_become(one));
        assert!(!one.may_become(other) && !one.has_body_of(other));
    }

    #[test]
    fn headers_that_a_guest_built_can_be_read_and_refused_ones_are_not_there() {
        let refused =
            entry("[method]fields.append", json!([{"handle": 1}, "host", {"text": "h"}]), json!({"err": "forbidden"}));
        let set = entry("[method]fields.set", json!([{"handle": 1}, "a", [{"text": "z"}]]), json!({"ok": null}));
        let requests = built(&[fields(1), append(1, "A", "x"), append(1, "A", "y"), refused, set]);
        let read = |function: &str, name: &str| {
            requests.headers_read(&entry(
                &format!("[method]fields.{function}"),
                json!([{"handle": 1}, name]),
                json!(null),
            ))
        };
        assert_eq!(read("get", "A"), Some(json!([{"text": "z"}])));
        assert_eq!(read("has", "host"), Some(json!(false)));
        assert_eq!(read("entries", ""), Some(json!([["a", {"text": "z"}]])));
    }

    #[test]
    fn what_is_kept_of_requests_is_bounded() {
        let mut requests = built(&[fields(1)]);
        (0..HEADERS_MAX).for_each(|_| requests.note(&append(1, "a", "x")));
        assert!(requests.are_whole());
        requests.note(&append(1, "a", "x"));
        assert!(!requests.are_whole(), "headers of one request");
        let mut requests = built(&[fields(1), append(1, "a", &"x".repeat(1 << 20))]);
        let copy = |number: u32| entry("[method]fields.clone", json!([{"handle": 1}]), json!({ "handle": number }));
        (2..40).for_each(|number| requests.note(&copy(number)));
        assert!(!requests.are_whole(), "copies of headers");
        assert!(requests.fields.len() < 20);
    }
}
