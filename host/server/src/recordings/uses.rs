//! The grants that a recorded call used, in the words of `toolcell policy explain`.
use std::collections::BTreeSet;

use toolcell_sandbox::uses::{Use, UseReader};

use super::recording::Recording;

/// What a recorded call used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// Each use once: `GET https://api.example.com/v1/now`, `read /data/a.txt`, `keyvalue`.
    pub texts: BTreeSet<String>,
    /// Uses that cannot be told from the recording.
    pub unknown: u64,
}

impl Recording {
    /// The grants that the call used.
    #[must_use]
    pub fn uses(&self) -> RecordedUses {
        let mut reader = UseReader::default();
        let mut texts = BTreeSet::new();
        let mut has_lookups = false;
        let mut has_sockets = false;
        for reached in self.entries.iter().flat_map(|entry| reader.read(entry)) {
            has_lookups |= matches!(reached, Use::Lookup(_));
            has_sockets |= matches!(reached, Use::Socket { .. });
            texts.extend(reached.grant());
        }
        // A rule names the host, and the recording an address.
        let unnamed = u64::from(has_lookups && has_sockets);
        let unknown = reader.unknown() + unnamed + u64::from(self.is_cut());
        RecordedUses { texts, unknown }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolcell_sandbox::tapes::TapeEntry;

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
        let mut reader = UseReader::default();
        let texts: BTreeSet<String> =
            entries.iter().flat_map(|entry| reader.read(entry)).filter_map(|reached| reached.grant()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
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
        assert_eq!((texts.as_slice(), reader.unknown()), (&expected[..], 0));
        for text in expected.iter().filter(|text| **text != "env *") {
            assert!(toolcell_policy::Ask::parse(text).is_ok(), "{text}");
        }
        // A handle of nowhere is a use that cannot be told.
        let nowhere =
            entry("wasi:filesystem/types#[method]descriptor.stat-at", json!([{"handle": 99}, [], "a"]), json!([]));
        drop(reader.read(&nowhere));
        assert_eq!(reader.unknown(), 1);
    }
}
