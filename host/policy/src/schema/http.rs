//! The schema of `[http]`. Must not hold: reading, or the schema of anything else.

use schemars::JsonSchema;

use super::oauth::RawOauth;
use super::{RawDuration, RawSize};

/// How the server is reached over HTTP: with `serve --http`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Http")]
pub(super) struct RawHttp {
    /// Where connections come in, where `--http` names no address: addresses with ports, and Unix sockets (`unix:PATH`).
    #[schemars(extend("examples" = ["127.0.0.1:8080", ["[::1]:8080", "unix:run/toolcell.sock"]]))]
    listen: Option<RawListen>,
    /// The endpoint's path.
    #[schemars(length(min = 1), extend("default" = "/mcp", "examples" = ["/tools/mcp"]))]
    path: Option<String>,
    /// Names that the server goes by, beside its own address; with a port where only that one is meant.
    #[schemars(length(max = 64), extend("examples" = [["tools.example.com"]]))]
    hosts: Option<Vec<String>>,
    /// Origins of web pages that may ask it and read what it answers. None by default.
    #[schemars(length(max = 64), extend("examples" = [["https://app.example.com"]]))]
    origins: Option<Vec<String>>,
    /// The certificate of TLS with its chain, in PEM, relative to this file. Read again when it changes.
    #[schemars(length(min = 1), extend("examples" = ["tls/server.pem"]))]
    certificate: Option<String>,
    /// Its private key, in PEM, relative to this file.
    #[schemars(length(min = 1), extend("examples" = ["tls/server.key"]))]
    key: Option<String>,
    /// The file of the tokens that callers have to show (`toolcell token new`), relative to this file.
    #[schemars(length(min = 1), extend("examples" = ["tokens.jsonl"]))]
    tokens: Option<String>,
    /// The server as a resource of OAuth 2.1: whose tokens callers may show, beside those of `tokens`.
    oauth: Option<RawOauth>,
    /// The longest body of a request: `4KiB` to `256MiB`.
    #[schemars(extend("default" = "16MiB", "examples" = ["4MiB"]))]
    body: Option<RawSize>,
    /// Bodies that are being read, all together: `4KiB` to `64GiB`.
    #[schemars(extend("default" = "256MiB", "examples" = ["1GiB"]))]
    bodies: Option<RawSize>,
    /// The longest head of a request, its line and headers: `8KiB` to `1MiB`.
    #[schemars(extend("default" = "32KiB", "examples" = ["64KiB"]))]
    head: Option<RawSize>,
    /// Connections at once. Past it, one without a request makes room for a new one.
    #[schemars(range(min = 1, max = 100_000), extend("default" = 1024, "examples" = [10_000]))]
    connections: Option<u64>,
    /// Requests that are being answered. Past it a client is told to come again.
    #[schemars(range(min = 1, max = 100_000), extend("default" = 4096, "examples" = [256]))]
    requests: Option<u64>,
    /// Streams that stay open to tell clients of changes. Past it a client is told to come again.
    #[schemars(range(max = 100_000), extend("default" = 4096, "examples" = [100]))]
    streams: Option<u64>,
    /// Sessions of clients before 2026-07-28. Past it, the one idle the longest makes room for a new one.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 10_000, "examples" = [1000]))]
    sessions: Option<u64>,
    /// Connections on which one caller has a request or a stream. Past it, the caller is told to come again. Less where
    /// `connections` is set lower, in the same proportion. A caller who is not known is told from others by its address; whoever
    /// comes from the machine itself without being known has no share.
    #[schemars(range(min = 1, max = 100_000), extend("default" = 512, "examples" = [64]))]
    connections_per_caller: Option<u64>,
    /// Requests of one caller that are being answered. Past it, the caller is told to come again. Less where `requests` is set
    /// lower, in the same proportion.
    #[schemars(range(min = 1, max = 100_000), extend("default" = 1024, "examples" = [64]))]
    requests_per_caller: Option<u64>,
    /// Streams of one caller that stay open. Past it, the caller is told to come again. Less where `streams` is set lower, in the
    /// same proportion.
    #[schemars(range(max = 100_000), extend("default" = 1024, "examples" = [16]))]
    streams_per_caller: Option<u64>,
    /// Sessions of one caller. Past it, its own one that is idle the longest makes room. Less where `sessions` is set lower, in the
    /// same proportion.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 2500, "examples" = [100]))]
    sessions_per_caller: Option<u64>,
    /// Bodies of one caller that are being read, all together: `4KiB` to `64GiB`. At least `body`. Less where `bodies` is set lower,
    /// in the same proportion.
    #[schemars(extend("default" = "64MiB", "examples" = ["32MiB"]))]
    bodies_per_caller: Option<RawSize>,
    /// For the head of a request to arrive, and for a TLS handshake: `100ms` to `10m`.
    #[schemars(extend("default" = "10s", "examples" = ["5s"]))]
    head_time: Option<RawDuration>,
    /// For the body of a request to arrive: `100ms` to `1h`.
    #[schemars(extend("default" = "1m", "examples" = ["10s"]))]
    body_time: Option<RawDuration>,
    /// For which a client may read nothing of what is written to it: `100ms` to `1h`.
    #[schemars(extend("default" = "30s", "examples" = ["10s"]))]
    write_time: Option<RawDuration>,
    /// For which a connection may have no request: `100ms` to `24h`.
    #[schemars(extend("default" = "2m", "examples" = ["30s"]))]
    idle: Option<RawDuration>,
    /// After which a stream without an event carries a comment: `100ms` to `1h`.
    #[schemars(extend("default" = "15s", "examples" = ["30s"]))]
    keep_alive: Option<RawDuration>,
    /// For which one stream may stay open: `100ms` to `720h`.
    #[schemars(extend("default" = "24h", "examples" = ["1h"]))]
    stream_time: Option<RawDuration>,
    /// For which a session may have no request and no stream: `100ms` to `720h`.
    #[schemars(extend("default" = "30m", "examples" = ["5m"]))]
    session_idle: Option<RawDuration>,
    /// For which one session may last: `100ms` to `720h`.
    #[schemars(extend("default" = "24h", "examples" = ["8h"]))]
    session_time: Option<RawDuration>,
    /// For which calls may run on once the server is to end: `0ms` to `1h`.
    #[schemars(extend("default" = "10s", "examples" = ["30s"]))]
    drain: Option<RawDuration>,
}

/// One address to listen on, or several.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Listen")]
enum RawListen {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}
