//! The grants that a recorded call used, in the words of `toolcell policy explain`.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolcell_sandbox::tapes::TapeEntry;

use super::recording::Recording;

/// What a recorded call used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// Each use once: `GET https://api.example.com/v1/now`, `read /data/a.txt`, `keyvalue`.
    pub texts: BTreeSet<String>,
    /// Uses that cannot be told from the recording.
    pub unknown: u64,
}

/// Functions of a folder that read what is at a path in it.
const READ_AT: [&str; 3] = ["stat-at", "readlink-at", "metadata-hash-at"];

/// Functions of a folder that change what is at a path in it.
const WRITE_AT: [&str; 7] = [
    "create-directory-at",
    "remove-directory-at",
    "unlink-file-at",
    "rename-at",
    "link-at",
    "symlink-at",
    "set-times-at",
];

impl Recording {
    /// The grants that the call used.
    #[must_use]
    pub fn uses(&self) -> RecordedUses {
        let mut reading = UseReading::default();
        self.entries.iter().for_each(|entry| reading.entry(entry));
        let UseReading { mut uses, has_lookups, has_sockets, .. } = reading;
        // A rule names the host, and the recording an address.
        uses.unknown += u64::from(has_lookups && has_sockets);
        uses.unknown += u64::from(self.is_cut());
        uses
    }
}

/// A request that a component has begun.
#[derive(Clone, Default)]
struct BegunRequest {
    method: Option<String>,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
}

#[derive(Default)]
struct UseReading {
    uses: RecordedUses,
    /// Requests and folders by their handles.
    requests: BTreeMap<u64, BegunRequest>,
    folders: BTreeMap<u64, String>,
    has_lookups: bool,
    has_sockets: bool,
}

impl UseReading {
    fn entry(&mut self, entry: &TapeEntry) {
        let Some((interface, function)) = entry.function.split_once('#') else { return };
        match interface {
            "wasi:http/types" => self.request(function, entry),
            "wasi:http/outgoing-handler" => self.send(entry),
            "wasi:filesystem/preopens" => self.mounts(entry),
            "wasi:filesystem/types" => self.file(function, entry),
            "wasi:sockets/tcp" if function == "[method]tcp-socket.start-connect" => {
                self.socket("tcp", entry.arguments.get(2));
            }
            "wasi:sockets/udp" => self.datagrams(function, entry),
            "wasi:sockets/ip-name-lookup" if function == "resolve-addresses" => {
                self.has_lookups = true;
                self.named("lookup", entry.arguments.get(1));
            }
            "wasi:cli/environment" if function == "get-environment" => self.add("env *".to_owned()),
            "wasi:config/store" | "wasi:config/runtime" => match function {
                "get" => self.named("config", entry.arguments.first()),
                _ => self.add("config *".to_owned()),
            },
            "toolcell:mcp/calling" => self.call(function, entry),
            _ if interface.starts_with("wasi:keyvalue/") => self.add("keyvalue".to_owned()),
            _ => {}
        }
    }

    fn add(&mut self, text: String) {
        self.uses.texts.insert(text);
    }

    /// Adds a use of this name, or notes that it has none.
    fn named(&mut self, word: &str, name: Option<&Value>) {
        match name.and_then(Value::as_str) {
            Some(name) => self.add(format!("{word} {name}")),
            None => self.uses.unknown += 1,
        }
    }

    fn call(&mut self, function: &str, entry: &TapeEntry) {
        let Some(argument) = entry.arguments.first() else { return };
        match function {
            "call" => self.named("call", Some(argument)),
            "call-all" => {
                argument.as_array().into_iter().flatten().for_each(|wanted| self.named("call", wanted.get("tool")));
            }
            _ => {}
        }
    }

    fn request(&mut self, function: &str, entry: &TapeEntry) {
        if function == "[constructor]outgoing-request" {
            if let Some(handle) = entry.results.first().and_then(handle) {
                self.requests.insert(handle, BegunRequest::default());
            }
            return;
        }
        let Some(part) = function.strip_prefix("[method]outgoing-request.set-") else { return };
        let request = entry.arguments.first().and_then(handle).and_then(|handle| self.requests.get_mut(&handle));
        let (Some(request), Some(value)) = (request, entry.arguments.get(1)) else { return };
        let value = value.get("some").unwrap_or(value);
        let text = value.as_str().or_else(|| value.get("other").and_then(Value::as_str)).map(str::to_owned);
        match part {
            "method" => request.method = text,
            "scheme" => request.scheme = text,
            "authority" => request.authority = text,
            "path-with-query" => request.path = text,
            _ => {}
        }
    }

    fn send(&mut self, entry: &TapeEntry) {
        let request = entry.arguments.first().and_then(handle).and_then(|handle| self.requests.remove(&handle));
        let Some(BegunRequest { method, scheme, authority: Some(authority), path }) = request else {
            self.uses.unknown += 1;
            return;
        };
        let method = method.unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
        let scheme = scheme.unwrap_or_else(|| "https".to_owned()).to_ascii_lowercase();
        let path = path.unwrap_or_else(|| "/".to_owned());
        let path = path.split_once('?').map_or(path.as_str(), |(path, _)| path);
        self.add(format!("{method} {scheme}://{authority}{path}"));
    }

    fn mounts(&mut self, entry: &TapeEntry) {
        for mount in entry.results.first().and_then(Value::as_array).into_iter().flatten() {
            if let (Some(handle), Some(path)) = (mount.get(0).and_then(handle), mount.get(1).and_then(Value::as_str)) {
                self.folders.insert(handle, path.to_owned());
            }
        }
    }

    fn file(&mut self, function: &str, entry: &TapeEntry) {
        let Some(function) = function.strip_prefix("[method]descriptor.") else { return };
        let folder = entry.arguments.first().and_then(handle).and_then(|handle| self.folders.get(&handle)).cloned();
        let Some(folder) = folder else {
            self.uses.unknown += 1;
            return;
        };
        // The path is the first text among the arguments.
        let path = entry.arguments.iter().find_map(Value::as_str).map(|path| joined(&folder, path));
        match (function, path) {
            ("open-at", Some(path)) => {
                let word = if opens_for_writing(entry) { "write" } else { "read" };
                if let Some(opened) = entry.results.first().and_then(|result| result.get("ok")).and_then(handle) {
                    self.folders.insert(opened, path.clone());
                }
                self.add(format!("{word} {path}"));
            }
            (function, Some(path)) if READ_AT.contains(&function) => self.add(format!("read {path}")),
            (function, Some(path)) if WRITE_AT.contains(&function) => {
                self.add(format!("write {path}"));
                self.moved_to(function, &folder, entry);
            }
            ("read-directory", _) => self.add(format!("read {folder}")),
            _ => {}
        }
    }

    /// The other end of a rename or a link.
    fn moved_to(&mut self, function: &str, folder: &str, entry: &TapeEntry) {
        if !["rename-at", "link-at"].contains(&function) {
            return;
        }
        let other = entry.arguments.iter().skip(1).find_map(handle);
        let other = other.and_then(|handle| self.folders.get(&handle)).map_or(folder, String::as_str);
        match entry.arguments.iter().rev().find_map(Value::as_str) {
            Some(path) => self.add(format!("write {}", joined(other, path))),
            None => self.uses.unknown += 1,
        }
    }

    fn datagrams(&mut self, function: &str, entry: &TapeEntry) {
        match function {
            "[method]udp-socket.stream" => {
                if let Some(remote) = entry.arguments.get(1).and_then(|remote| remote.get("some")) {
                    self.socket("udp", Some(remote));
                }
            }
            "[method]outgoing-datagram-stream.send" => {
                for datagram in entry.arguments.get(1).and_then(Value::as_array).into_iter().flatten() {
                    if let Some(remote) = datagram.get("remote-address").and_then(|remote| remote.get("some")) {
                        self.socket("udp", Some(remote));
                    }
                }
            }
            _ => {}
        }
    }

    fn socket(&mut self, protocol: &str, address: Option<&Value>) {
        self.has_sockets = true;
        match address.and_then(shown_address) {
            Some(address) => self.add(format!("{protocol} {address}")),
            None => self.uses.unknown += 1,
        }
    }
}

fn handle(value: &Value) -> Option<u64> {
    value.get("handle").and_then(Value::as_u64)
}

/// A path in a folder, in its normal form. It never leads out of the guest's tree.
fn joined(folder: &str, path: &str) -> String {
    let whole = format!("{folder}/{path}");
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn opens_for_writing(entry: &TapeEntry) -> bool {
    let flags = entry.arguments.iter().skip(1).filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let writing = ["write", "mutate-directory", "create", "exclusive", "truncate"];
    flags.into_iter().any(|flag| writing.contains(&flag))
}

fn shown_address(address: &Value) -> Option<String> {
    let numbers =
        |of: &Value| -> Option<Vec<u64>> { of.get("address")?.as_array()?.iter().map(Value::as_u64).collect() };
    if let Some(four) = address.get("ipv4") {
        let [a, b, c, d] = numbers(four)?.try_into().ok()?;
        return Some(format!("{a}.{b}.{c}.{d}:{}", four.get("port")?.as_u64()?));
    }
    let six = address.get("ipv6")?;
    let parts: Vec<u16> = numbers(six)?.into_iter().map(u16::try_from).collect::<Result<_, _>>().ok()?;
    let parts: [u16; 8] = parts.try_into().ok()?;
    Some(format!("[{}]:{}", std::net::Ipv6Addr::from(parts), six.get("port")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(function: &str, arguments: Value, results: Value) -> TapeEntry {
        let list = |value: Value| value.as_array().cloned().unwrap();
        let function = function.to_owned();
        TapeEntry { function, arguments: list(arguments), results: list(results), ..TapeEntry::default() }
    }

    #[test]
    fn what_a_recorded_call_used_is_told_in_the_words_of_explain() {
        let request = "wasi:http/types#[method]outgoing-request.set-";
        let entries = [
            entry("wasi:http/types#[constructor]outgoing-request", json!([{"handle": 3}]), json!([{"handle": 4}])),
            entry(&format!("{request}method"), json!([{"handle": 4}, "post"]), json!([{"ok": null}])),
            entry(&format!("{request}scheme"), json!([{"handle": 4}, {"some": "HTTP"}]), json!([{"ok": null}])),
            entry(
                &format!("{request}authority"),
                json!([{"handle": 4}, {"some": "a.example:81"}]),
                json!([{"ok": null}]),
            ),
            entry(
                &format!("{request}path-with-query"),
                json!([{"handle": 4}, {"some": "/v1?q=1"}]),
                json!([{"ok": null}]),
            ),
            entry("wasi:http/outgoing-handler#handle", json!([{"handle": 4}, null]), json!([{"ok": {"handle": 5}}])),
            entry("wasi:filesystem/preopens#get-directories", json!([]), json!([[[{"handle": 7}, "/data"]]])),
            entry(
                "wasi:filesystem/types#[method]descriptor.open-at",
                json!([{"handle": 7}, ["symlink-follow"], "sub/../b", [], ["read"]]),
                json!([{"ok": {"handle": 8}}]),
            ),
            entry(
                "wasi:filesystem/types#[method]descriptor.open-at",
                json!([{"handle": 7}, [], "c", ["create"], ["write"]]),
                json!([{"err": "access"}]),
            ),
            entry(
                "wasi:filesystem/types#[method]descriptor.rename-at",
                json!([{"handle": 7}, "x", {"handle": 8}, "y"]),
                json!([{"ok": null}]),
            ),
            entry("wasi:filesystem/types#[method]descriptor.read-directory", json!([{"handle": 7}]), json!([])),
            entry(
                "wasi:sockets/tcp#[method]tcp-socket.start-connect",
                json!([{"handle": 1}, {"handle": 2}, {"ipv4": {"port": 80, "address": [127, 0, 0, 1]}}]),
                json!([{"ok": null}]),
            ),
            entry(
                "wasi:sockets/udp#[method]udp-socket.stream",
                json!([{"handle": 1}, {"some": {"ipv6": {"port": 53, "flow-info": 0, "scope-id": 0, "address": [0, 0, 0, 0, 0, 0, 0, 1]}}}]),
                json!([]),
            ),
            entry("wasi:keyvalue/store#open", json!(["b"]), json!([])),
            entry("wasi:config/runtime#get", json!(["theme"]), json!([])),
            entry("wasi:cli/environment#get-environment", json!([]), json!([[]])),
            entry("toolcell:mcp/calling#call", json!(["echo", "{}"]), json!([])),
            entry("toolcell:mcp/calling#call-all", json!([[{"tool": "add", "arguments-json": "{}"}]]), json!([])),
        ];
        let mut reading = UseReading::default();
        entries.iter().for_each(|entry| reading.entry(entry));
        let texts: Vec<&str> = reading.uses.texts.iter().map(String::as_str).collect();
        let expected = [
            "POST http://a.example:81/v1",
            "call add",
            "call echo",
            "config theme",
            "env *",
            "keyvalue",
            "read /data",
            "read /data/b",
            "tcp 127.0.0.1:80",
            "udp [::1]:53",
            "write /data/b/y",
            "write /data/c",
            "write /data/x",
        ];
        assert_eq!((texts.as_slice(), reading.uses.unknown), (&expected[..], 0));
        for text in expected.iter().filter(|text| **text != "env *") {
            assert!(toolcell_policy::Ask::parse(text).is_ok(), "{text}");
        }
        // A handle of nowhere is a use that cannot be told.
        let nowhere =
            entry("wasi:filesystem/types#[method]descriptor.stat-at", json!([{"handle": 99}, [], "a"]), json!([]));
        reading.entry(&nowhere);
        assert_eq!(reading.uses.unknown, 1);
    }
}
