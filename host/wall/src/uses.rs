//! What a call reached, by the functions of the host that it called.
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::report::clip;
use crate::tape::TapeEntry;

/// Bytes of a name that is kept: a URL, a path, a key. No real one is as long.
const NAME_BYTES_MAX: usize = 4 << 10;

/// Something outside of a component that it reached, or wanted to reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// An HTTP request.
    Request {
        /// In capitals.
        method: String,
        /// With its query.
        url: String,
    },
    /// A connection, or a datagram.
    Socket {
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// An address and a port.
        address: String,
        /// The name that the address was looked up for.
        name: Option<String>,
    },
    /// A look-up of a name.
    Lookup(String),
    /// What is at a path.
    File {
        /// The path in the guest's tree.
        path: String,
        /// True if it is changed, or opened for that.
        is_write: bool,
    },
    /// What is in a file or folder that is open.
    Opened {
        /// The path in the guest's tree.
        path: String,
        /// True if it is changed.
        is_write: bool,
    },
    /// A store of state, by its name.
    Store(String),
    /// A key of a store.
    Key {
        /// The store's name.
        store: String,
        /// The key.
        key: String,
        /// True if its value is changed.
        is_write: bool,
    },
    /// A call of another tool.
    Tool(String),
    /// A setting, or all of them.
    Setting(Option<String>),
    /// All environment variables.
    Environment,
}

impl Use {
    /// The grant that it uses, in the words of `toolcell policy explain`. `None` of what an earlier
    /// use includes.
    #[must_use]
    pub fn grant(&self) -> Option<String> {
        Some(match self {
            Self::Request { method, url } => {
                format!("{method} {}", url.split_once('?').map_or(url.as_str(), |(path, _)| path))
            }
            Self::Socket { protocol, address, .. } => format!("{protocol} {address}"),
            Self::Lookup(name) => format!("lookup {name}"),
            Self::File { path, is_write: false } => format!("read {path}"),
            Self::File { path, is_write: true } => format!("write {path}"),
            Self::Opened { .. } => return None,
            Self::Store(_) | Self::Key { .. } => "keyvalue".to_owned(),
            Self::Tool(name) => format!("call {name}"),
            Self::Setting(key) => format!("config {}", key.as_deref().unwrap_or("*")),
            Self::Environment => "env *".to_owned(),
        })
    }
}

/// In plain words: `POST https://new.example/`, `tcp db.example:5432`, `file /data/x`.
impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |store: &str| if store.is_empty() { "state".to_owned() } else { format!("state {store}") };
        match self {
            Self::Request { method, url } => write!(f, "{method} {url}"),
            Self::Socket { protocol, address, name } => match (name, address.rsplit_once(':')) {
                (Some(name), Some((_, port))) => write!(f, "{protocol} {name}:{port}"),
                _ => write!(f, "{protocol} {address}"),
            },
            Self::Lookup(name) => write!(f, "lookup {name}"),
            Self::File { path, is_write } | Self::Opened { path, is_write } => {
                write!(f, "file {path}{}", if *is_write { ", to write" } else { "" })
            }
            Self::Store(store) => f.write_str(&state(store)),
            Self::Key { store, key, is_write } => {
                write!(f, "key {key} of {}{}", state(store), if *is_write { ", to write" } else { "" })
            }
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Setting(Some(key)) => write!(f, "setting {key}"),
            Self::Setting(None) => f.write_str("all settings"),
            Self::Environment => f.write_str("environment variables"),
        }
    }
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

/// What functions of an open file or folder begin with, if they change it.
const WRITES: [&str; 4] = ["write", "append", "set-", "sync"];

/// What functions of a store begin with, if they change it.
const STATE_WRITES: [&str; 3] = ["set", "delete", "increment"];

/// A request that a component has begun.
#[derive(Clone, Default)]
struct BegunRequest {
    method: Option<String>,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
}

/// Reads the functions of a call, one after the other.
#[derive(Default)]
pub struct UseReader {
    found: Vec<Use>,
    /// Requests, folders, streams, stores and look-ups, by their handles.
    requests: BTreeMap<u64, BegunRequest>,
    folders: BTreeMap<u64, String>,
    streams: BTreeMap<u64, Use>,
    sockets: BTreeMap<u64, Use>,
    stores: BTreeMap<u64, String>,
    lookups: BTreeMap<u64, String>,
    /// The names that addresses were looked up for.
    names: BTreeMap<String, String>,
    unknown: u64,
}

impl fmt::Debug for UseReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UseReader").field("unknown", &self.unknown).finish_non_exhaustive()
    }
}

impl UseReader {
    /// Uses that cannot be told from the functions.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The request that `outgoing-handler.handle` sends.
    #[must_use]
    pub fn request(&self, handling: &TapeEntry) -> Option<Use> {
        let request = handling.arguments.first().and_then(handle).and_then(|handle| self.requests.get(&handle))?;
        request.whole()
    }

    /// True if both handles are of the same file or folder, or of the same store: what a function
    /// does with one it does with the other.
    #[must_use]
    pub fn are_of_the_same(&self, one: &Value, other: &Value) -> bool {
        let (Some(one), Some(other)) = (handle(one), handle(other)) else { return false };
        let is_same =
            |handles: &BTreeMap<u64, String>| handles.contains_key(&one) && handles.get(&one) == handles.get(&other);
        one == other || is_same(&self.folders) || is_same(&self.stores)
    }

    /// What this function reaches. What it gave is kept for the next ones.
    pub fn read(&mut self, entry: &TapeEntry) -> Vec<Use> {
        let Some((interface, function)) = entry.function.split_once('#') else { return Vec::new() };
        match interface {
            "wasi:http/types" => self.request_part(function, entry),
            "wasi:http/outgoing-handler" => self.send(entry),
            "wasi:filesystem/preopens" => self.mounts(entry),
            "wasi:filesystem/types" => self.file(function, entry),
            "wasi:io/streams" => self.stream(entry),
            "wasi:sockets/tcp" => self.connection(function, entry),
            "wasi:sockets/udp" => self.datagrams(function, entry),
            "wasi:sockets/ip-name-lookup" => self.lookup(function, entry),
            "wasi:cli/environment" if function == "get-environment" => self.found.push(Use::Environment),
            "wasi:config/store" | "wasi:config/runtime" => match function {
                "get" => self.named(entry.arguments.first(), |key| Use::Setting(Some(key))),
                _ => self.found.push(Use::Setting(None)),
            },
            "toolcell:mcp/calling" => self.call(function, entry),
            _ if interface.starts_with("wasi:keyvalue/") => self.state(function, entry),
            _ => {}
        }
        std::mem::take(&mut self.found)
    }

    /// Adds a use of this name, or notes that it has none.
    fn named(&mut self, name: Option<&Value>, of: impl Fn(String) -> Use) {
        match name.and_then(text) {
            Some(name) => self.found.push(of(name)),
            None => self.unknown += 1,
        }
    }

    fn call(&mut self, function: &str, entry: &TapeEntry) {
        let Some(argument) = entry.arguments.first() else { return };
        match function {
            "call" => self.named(Some(argument), Use::Tool),
            "call-all" => {
                argument.as_array().into_iter().flatten().for_each(|wanted| self.named(wanted.get("tool"), Use::Tool));
            }
            _ => {}
        }
    }

    fn state(&mut self, function: &str, entry: &TapeEntry) {
        let first = entry.arguments.first();
        if function == "open" {
            let Some(store) = first.and_then(text) else { return self.unknown += 1 };
            if let Some(handle) = given(entry) {
                self.stores.insert(handle, store.clone());
            }
            return self.found.push(Use::Store(store));
        }
        let store = first.and_then(handle).and_then(|handle| self.stores.get(&handle)).cloned().unwrap_or_default();
        let function = function.rsplit('.').next().unwrap_or(function);
        let is_write = STATE_WRITES.iter().any(|begin| function.starts_with(begin));
        let keys: Vec<String> = match entry.arguments.get(1) {
            Some(Value::Array(keys)) => keys.iter().filter_map(|key| text(key.get(0).unwrap_or(key))).collect(),
            Some(key) => text(key).into_iter().collect(),
            None => Vec::new(),
        };
        if keys.is_empty() {
            self.found.push(Use::Store(store));
        } else {
            self.found.extend(keys.into_iter().map(|key| Use::Key { store: store.clone(), key, is_write }));
        }
    }

    fn request_part(&mut self, function: &str, entry: &TapeEntry) {
        if function == "[constructor]outgoing-request" {
            if let Some(handle) = entry.results.first().and_then(handle) {
                self.requests.insert(handle, BegunRequest::default());
            }
            return;
        }
        let Some(part) = function.strip_prefix("[method]outgoing-request.set-") else { return };
        // A refused part is not set.
        if entry.results.first().is_some_and(|result| result.get("err").is_some()) {
            return;
        }
        let request = entry.arguments.first().and_then(handle).and_then(|handle| self.requests.get_mut(&handle));
        let (Some(request), Some(value)) = (request, entry.arguments.get(1)) else { return };
        let value = value.get("some").unwrap_or(value);
        let text = text(value).or_else(|| value.get("other").and_then(text));
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
        match request.as_ref().and_then(BegunRequest::whole) {
            Some(request) => self.found.push(request),
            None => self.unknown += 1,
        }
    }

    fn mounts(&mut self, entry: &TapeEntry) {
        for mount in entry.results.first().and_then(Value::as_array).into_iter().flatten() {
            if let (Some(handle), Some(path)) = (mount.get(0).and_then(handle), mount.get(1).and_then(text)) {
                self.folders.insert(handle, path);
            }
        }
    }

    fn file(&mut self, function: &str, entry: &TapeEntry) {
        let Some(function) = function.strip_prefix("[method]descriptor.") else { return };
        let folder = entry.arguments.first().and_then(handle).and_then(|handle| self.folders.get(&handle)).cloned();
        let Some(folder) = folder else {
            self.unknown += 1;
            return;
        };
        // The path is the first text among the arguments.
        let path = entry.arguments.iter().find_map(text).map(|path| joined(&folder, &path));
        let file = |path: String, is_write: bool| Use::File { path, is_write };
        match (function, path) {
            ("open-at", Some(path)) => {
                if let Some(opened) = given(entry) {
                    self.folders.insert(opened, path.clone());
                }
                self.found.push(file(path, opens_for_writing(entry)));
            }
            (function, Some(path)) if READ_AT.contains(&function) => self.found.push(file(path, false)),
            (function, Some(path)) if WRITE_AT.contains(&function) => {
                self.found.push(file(path, true));
                self.moved_to(function, &folder, entry);
            }
            ("read-directory", _) => self.found.push(file(folder, false)),
            (function, _) => {
                let is_write = WRITES.iter().any(|begin| function.starts_with(begin));
                let opened = Use::Opened { path: folder, is_write };
                if let Some(stream) = given(entry) {
                    self.streams.insert(stream, opened.clone());
                }
                self.found.push(opened);
            }
        }
    }

    /// The other end of a rename or a link.
    fn moved_to(&mut self, function: &str, folder: &str, entry: &TapeEntry) {
        if !["rename-at", "link-at"].contains(&function) {
            return;
        }
        let other = entry.arguments.iter().skip(1).find_map(handle);
        let other = other.and_then(|handle| self.folders.get(&handle)).map_or(folder, String::as_str);
        match entry.arguments.iter().rev().find_map(text) {
            Some(path) => self.found.push(Use::File { path: joined(other, &path), is_write: true }),
            None => self.unknown += 1,
        }
    }

    fn stream(&mut self, entry: &TapeEntry) {
        let stream = entry.arguments.first().and_then(handle).and_then(|handle| self.streams.get(&handle));
        self.found.extend(stream.cloned());
    }

    fn lookup(&mut self, function: &str, entry: &TapeEntry) {
        if function == "resolve-addresses" {
            if let (Some(stream), Some(name)) = (given(entry), entry.arguments.get(1).and_then(text)) {
                self.lookups.insert(stream, name);
            }
            return self.named(entry.arguments.get(1), Use::Lookup);
        }
        let name = entry.arguments.first().and_then(handle).and_then(|handle| self.lookups.get(&handle));
        let address = entry.results.first().and_then(|result| result.get("ok")?.get("some"));
        if let (Some(name), Some(address)) = (name, address.and_then(shown_ip)) {
            self.names.insert(address, name.clone());
        }
    }

    fn connection(&mut self, function: &str, entry: &TapeEntry) {
        let Some(socket) = entry.arguments.first().and_then(handle) else { return };
        match function {
            "[method]tcp-socket.start-connect" => {
                self.socket("tcp", entry.arguments.get(2));
                if let Some(reached) = self.found.last() {
                    self.sockets.insert(socket, reached.clone());
                }
            }
            "[method]tcp-socket.finish-connect" => {
                let streams = entry.results.first().and_then(|result| result.get("ok")?.as_array());
                if let Some(reached) = self.sockets.get(&socket) {
                    let streams = streams.into_iter().flatten().filter_map(handle);
                    self.streams.extend(streams.map(|stream| (stream, reached.clone())));
                }
            }
            _ => {}
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

    fn socket(&mut self, protocol: &'static str, address: Option<&Value>) {
        let inner = address.and_then(|address| address.get("ipv4").or_else(|| address.get("ipv6")));
        let ip = inner.and_then(|inner| inner.get("address")).and_then(ip_of);
        let port = inner.and_then(|inner| inner.get("port")).and_then(Value::as_u64);
        let (Some(ip), Some(port)) = (ip, port) else {
            self.unknown += 1;
            return;
        };
        let name = self.names.get(&ip.to_string()).cloned();
        let address = if ip.is_ipv4() { format!("{ip}:{port}") } else { format!("[{ip}]:{port}") };
        self.found.push(Use::Socket { protocol, address, name });
    }
}

impl BegunRequest {
    fn whole(&self) -> Option<Use> {
        let authority = self.authority.as_ref()?;
        let method = self.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
        let scheme = self.scheme.as_deref().unwrap_or("https").to_ascii_lowercase();
        let path = self.path.as_deref().unwrap_or("/");
        Some(Use::Request { method, url: format!("{scheme}://{authority}{path}") })
    }
}

fn handle(value: &Value) -> Option<u64> {
    value.get("handle").and_then(Value::as_u64)
}

/// The handle of a function that may fail.
fn given(entry: &TapeEntry) -> Option<u64> {
    entry.results.first().and_then(|result| result.get("ok")).and_then(handle)
}

/// A name.
fn text(value: &Value) -> Option<String> {
    let mut text = value.as_str()?.to_owned();
    clip(&mut text, NAME_BYTES_MAX);
    Some(text)
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
    let mut joined = format!("/{}", parts.join("/"));
    clip(&mut joined, NAME_BYTES_MAX);
    joined
}

fn opens_for_writing(entry: &TapeEntry) -> bool {
    let flags = entry.arguments.iter().skip(1).filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let writing = ["write", "mutate-directory", "create", "exclusive", "truncate"];
    flags.into_iter().any(|flag| writing.contains(&flag))
}

/// An address that a look-up gave: `{"ipv4": […]}`.
fn shown_ip(address: &Value) -> Option<String> {
    let numbers = address.get("ipv4").or_else(|| address.get("ipv6"))?;
    ip_of(numbers).map(|ip| ip.to_string())
}

/// The address of four or eight numbers.
fn ip_of(numbers: &Value) -> Option<std::net::IpAddr> {
    let numbers: Vec<u64> = numbers.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    if numbers.len() == 4 {
        let parts: Vec<u8> = numbers.into_iter().map(u8::try_from).collect::<Result<_, _>>().ok()?;
        return <[u8; 4]>::try_from(parts).ok().map(Into::into);
    }
    let parts: Vec<u16> = numbers.into_iter().map(u16::try_from).collect::<Result<_, _>>().ok()?;
    <[u16; 8]>::try_from(parts).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn entry(function: &str, arguments: Value, results: Value) -> TapeEntry {
        let list = |value: Value| value.as_array().cloned().unwrap();
        let function = function.to_owned();
        TapeEntry { function, arguments: list(arguments), results: list(results), ..TapeEntry::default() }
    }

    fn named(entries: &[TapeEntry]) -> Vec<String> {
        let mut reader = UseReader::default();
        entries.iter().flat_map(|entry| reader.read(entry)).map(|reached| reached.to_string()).collect()
    }

    #[test]
    fn a_connection_has_the_name_that_was_looked_up() {
        let lookup = "wasi:sockets/ip-name-lookup#";
        let next = format!("{lookup}[method]resolve-address-stream.resolve-next-address");
        let connect = |port: u16| {
            let address = json!({"ipv4": {"port": port, "address": [10, 0, 0, 7]}});
            entry(
                "wasi:sockets/tcp#[method]tcp-socket.start-connect",
                json!([{"handle": 3}, {"handle": 1}, address]),
                json!([{"ok": null}]),
            )
        };
        let entries = [
            connect(80),
            entry(
                &format!("{lookup}resolve-addresses"),
                json!([{"handle": 1}, "db.example"]),
                json!([{"ok": {"handle": 2}}]),
            ),
            entry(&next, json!([{"handle": 2}]), json!([{"ok": {"some": {"ipv4": [10, 0, 0, 7]}}}])),
            entry(&next, json!([{"handle": 2}]), json!([{"ok": null}])),
            connect(5432),
            entry(
                "wasi:sockets/tcp#[method]tcp-socket.finish-connect",
                json!([{"handle": 3}]),
                json!([{"ok": [{"handle": 4}, {"handle": 5}]}]),
            ),
            entry(
                "wasi:io/streams#[method]output-stream.write",
                json!([{"handle": 5}, {"text": "x"}]),
                json!([{"ok": null}]),
            ),
        ];
        let expected = ["tcp 10.0.0.7:80", "lookup db.example", "tcp db.example:5432", "tcp db.example:5432"];
        assert_eq!(named(&entries), expected);
    }

    #[test]
    fn state_is_named_by_stores_and_keys() {
        let open = |name: &str, number: u32| {
            entry("wasi:keyvalue/store#open", json!([name]), json!([{"ok": {"handle": number}}]))
        };
        let bucket = "wasi:keyvalue/store#[method]bucket.";
        let entries = [
            open("", 1),
            open("other", 2),
            entry(&format!("{bucket}get"), json!([{"handle": 1}, "a"]), json!([{"ok": null}])),
            entry(&format!("{bucket}set"), json!([{"handle": 2}, "b", {"text": "v"}]), json!([{"ok": null}])),
            entry(&format!("{bucket}list-keys"), json!([{"handle": 2}, null]), json!([])),
            entry("wasi:keyvalue/batch#get-many", json!([{"handle": 1}, ["c", "d"]]), json!([])),
            entry("wasi:keyvalue/batch#set-many", json!([{"handle": 1}, [["e", {"text": "v"}]]]), json!([])),
            entry("wasi:keyvalue/atomics#increment", json!([{"handle": 1}, "f", 1]), json!([])),
        ];
        let expected = [
            "state",
            "state other",
            "key a of state",
            "key b of state other, to write",
            "state other",
            "key c of state",
            "key d of state",
            "key e of state, to write",
            "key f of state, to write",
        ];
        assert_eq!(named(&entries), expected);
    }

    #[test]
    fn a_name_of_any_length_is_cut() {
        let long = "x".repeat(1 << 20);
        let open = entry("wasi:keyvalue/store#open", json!([long]), json!([{"ok": {"handle": 1}}]));
        assert!(named(&[open])[0].len() <= NAME_BYTES_MAX + "state ".len());
        let folder = entry("wasi:filesystem/preopens#get-directories", json!([]), json!([[[{"handle": 7}, "/data"]]]));
        let at = entry("wasi:filesystem/types#[method]descriptor.stat-at", json!([{"handle": 7}, [], long]), json!([]));
        assert!(named(&[folder, at])[0].len() <= NAME_BYTES_MAX + "file ".len());
    }
}
