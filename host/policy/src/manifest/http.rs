//! What `[http]` comes to: where the server is reached over HTTP, who may ask it, and what clients may take. Must not
//! hold: sockets, or how a bound is enforced.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::oauth::OauthPolicy;
use crate::limits::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The endpoint's path, where the manifest names none.
pub(crate) const PATH_DEFAULT: &str = "/mcp";

/// What stands before the path of a Unix socket.
const UNIX: &str = "unix:";

/// The settings of the server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPolicy {
    pub(crate) listen: Vec<ListenAddress>,
    pub(crate) path: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) tokens: Option<String>,
    pub(crate) oauth: Option<OauthPolicy>,
    pub(crate) values: [u64; HttpLimit::ALL.len()],
}

/// Where connections come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port; port 0 is any that is free.
    Tcp(SocketAddr),
    /// The path of a Unix socket, relative to the manifest.
    Unix(String),
}

/// The files of TLS, relative to the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// One bound of the server over HTTP. The order is that of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpLimit {
    /// One request's body.
    Body,
    /// Bodies that are being read.
    Bodies,
    /// One request's head.
    Head,
    /// Connections.
    Connections,
    /// Requests that are being answered.
    Requests,
    /// Streams that stay open.
    Streams,
    /// Legacy sessions.
    Sessions,
    /// Connections with a request of one caller.
    ConnectionsPerCaller,
    /// Requests of one caller that are being answered.
    RequestsPerCaller,
    /// Streams of one caller.
    StreamsPerCaller,
    /// Legacy sessions of one caller.
    SessionsPerCaller,
    /// Bodies of one caller that are being read.
    BodiesPerCaller,
    /// A head, or a TLS handshake, arriving.
    HeadTime,
    /// A body arriving.
    BodyTime,
    /// A client reading nothing.
    WriteTime,
    /// A connection without a request.
    Idle,
    /// A stream without an event.
    KeepAlive,
    /// A stream's age.
    StreamTime,
    /// A session without a request or stream.
    SessionIdle,
    /// A session's age.
    SessionTime,
    /// Calls that run on at the end.
    Drain,
}

impl ListenAddress {
    /// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:run/toolcell.sock`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let plain = !path.is_empty() && !path.chars().any(char::is_control);
            return plain.then(|| Self::Unix(path.to_owned()));
        }
        if let Some(port) = text.strip_prefix("localhost:") {
            return Some(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)));
        }
        text.parse().ok().map(Self::Tcp)
    }

    /// Whether others than this machine can reach it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        match self {
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => false,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{path}"),
        }
    }
}

impl TlsFiles {
    /// The certificate with its chain, in PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key, in PEM.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl HttpPolicy {
    /// The bounds, in the order of reports.
    pub const LIMITS: [&'static Spec; HttpLimit::ALL.len()] = {
        let mut specs = [&BODY; HttpLimit::ALL.len()];
        let mut place = 0;
        while place < specs.len() {
            #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
            {
                specs[place] = HttpLimit::ALL[place].spec();
            }
            place += 1;
        }
        specs
    };

    /// Where connections come in, where the command line says nothing else.
    #[must_use]
    pub fn listen(&self) -> &[ListenAddress] {
        &self.listen
    }

    /// The endpoint's path; `/mcp` by default.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Names that the server goes by, beside its own address.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Origins of web pages that may ask it.
    #[must_use]
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// What it shows in TLS handshakes; `None`: it is reached without TLS.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// The file of the tokens that callers show, relative to the manifest; `None`: nobody has to show one.
    #[must_use]
    pub fn tokens(&self) -> Option<&str> {
        self.tokens.as_deref()
    }

    /// Whose tokens callers may show beside those; `None`: nobody's.
    #[must_use]
    pub const fn oauth(&self) -> Option<&OauthPolicy> {
        self.oauth.as_ref()
    }

    /// One bound's value: a count, bytes or milliseconds, as its [`Spec::unit`] says.
    #[must_use]
    pub fn get(&self, limit: HttpLimit) -> u64 {
        let place = HttpLimit::ALL.iter().position(|known| *known == limit);
        place.and_then(|place| self.values.get(place)).copied().unwrap_or(limit.spec().default)
    }

    /// The same as a number of things or bytes.
    #[must_use]
    pub fn count(&self, limit: HttpLimit) -> usize {
        usize::try_from(self.get(limit)).unwrap_or(usize::MAX)
    }

    /// The same as a time.
    #[must_use]
    pub fn time(&self, limit: HttpLimit) -> Duration {
        Duration::from_millis(self.get(limit))
    }
}

impl Default for HttpPolicy {
    /// What holds where `[http]` says nothing.
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            path: PATH_DEFAULT.to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            tokens: None,
            oauth: None,
            values: HttpLimit::ALL.map(|limit| limit.spec().default),
        }
    }
}

impl HttpLimit {
    /// Every bound, in the order of reports.
    pub const ALL: [Self; 21] = [
        Self::Body,
        Self::Bodies,
        Self::Head,
        Self::Connections,
        Self::Requests,
        Self::Streams,
        Self::Sessions,
        Self::ConnectionsPerCaller,
        Self::RequestsPerCaller,
        Self::StreamsPerCaller,
        Self::SessionsPerCaller,
        Self::BodiesPerCaller,
        Self::HeadTime,
        Self::BodyTime,
        Self::WriteTime,
        Self::Idle,
        Self::KeepAlive,
        Self::StreamTime,
        Self::SessionIdle,
        Self::SessionTime,
        Self::Drain,
    ];

    /// The shares of one caller, and what each is a share of.
    pub(crate) const SHARES: [(Self, Self); 5] = [
        (Self::ConnectionsPerCaller, Self::Connections),
        (Self::RequestsPerCaller, Self::Requests),
        (Self::StreamsPerCaller, Self::Streams),
        (Self::SessionsPerCaller, Self::Sessions),
        (Self::BodiesPerCaller, Self::Bodies),
    ];

    /// Key, unit, default, bounds and reason.
    #[must_use]
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::Body => &BODY,
            Self::Bodies => &BODIES,
            Self::Head => &HEAD,
            Self::Connections => &CONNECTIONS,
            Self::Requests => &REQUESTS,
            Self::Streams => &STREAMS,
            Self::Sessions => &SESSIONS,
            Self::ConnectionsPerCaller => &CONNECTIONS_PER_CALLER,
            Self::RequestsPerCaller => &REQUESTS_PER_CALLER,
            Self::StreamsPerCaller => &STREAMS_PER_CALLER,
            Self::SessionsPerCaller => &SESSIONS_PER_CALLER,
            Self::BodiesPerCaller => &BODIES_PER_CALLER,
            Self::HeadTime => &HEAD_TIME,
            Self::BodyTime => &BODY_TIME,
            Self::WriteTime => &WRITE_TIME,
            Self::Idle => &IDLE,
            Self::KeepAlive => &KEEP_ALIVE,
            Self::StreamTime => &STREAM_TIME,
            Self::SessionIdle => &SESSION_IDLE,
            Self::SessionTime => &SESSION_TIME,
            Self::Drain => &DRAIN,
        }
    }
}

const fn spec(key: &'static str, unit: Unit, values: (u64, u64, u64), reason: &'static str) -> Spec {
    let (min, default, max) = values;
    Spec { key, unit, default, min, max, reason }
}

static BODY: Spec = spec(
    "body",
    Unit::Bytes,
    (4 * KIB, 16 * MIB, 256 * MIB),
    "One request's body, which the process keeps in memory whole: as much as a line over stdio may have.",
);
static BODIES: Spec = spec(
    "bodies",
    Unit::Bytes,
    (4 * KIB, 256 * MIB, 64 * GIB),
    "Bodies that are being read, all together: sixteen of the longest. Past it a client is told to come again.",
);
static HEAD: Spec = spec(
    "head",
    Unit::Bytes,
    (8 * KIB, 32 * KIB, MIB),
    "One request's line and headers: room for the largest tokens in use and the headers of some proxies.",
);
static CONNECTIONS: Spec = spec(
    "connections",
    Unit::Count,
    (1, 1_024, 100_000),
    "Connections at once; each takes a descriptor and some 20 KiB. One without a request makes room for a new one.",
);
static REQUESTS: Spec = spec(
    "requests",
    Unit::Count,
    (1, 4_096, 100_000),
    "Requests that are being answered. Past it a client is told to come again.",
);
static STREAMS: Spec = spec(
    "streams",
    Unit::Count,
    (0, 4_096, 100_000),
    "Streams that stay open to tell clients of changes. Past it a client is told to come again.",
);
static SESSIONS: Spec = spec(
    "sessions",
    Unit::Count,
    (1, 10_000, 1_000_000),
    "Sessions of clients before 2026-07-28; each takes a kilobyte or two. The one idle the longest makes room for a new one.",
);
static CONNECTIONS_PER_CALLER: Spec = spec(
    "connections_per_caller",
    Unit::Count,
    (1, 512, 100_000),
    "Connections on which one caller has a request or a stream: half of them, so that no caller alone can have them all. Less \
     where `connections` is set lower, in the same proportion.",
);
static REQUESTS_PER_CALLER: Spec = spec(
    "requests_per_caller",
    Unit::Count,
    (1, 1_024, 100_000),
    "Requests of one caller that are being answered: a quarter of all, far more than the tools of one caller run at once. Less \
     where `requests` is set lower, in the same proportion.",
);
static STREAMS_PER_CALLER: Spec = spec(
    "streams_per_caller",
    Unit::Count,
    (0, 1_024, 100_000),
    "Streams of one caller: a quarter of all. Less where `streams` is set lower, in the same proportion.",
);
static SESSIONS_PER_CALLER: Spec = spec(
    "sessions_per_caller",
    Unit::Count,
    (1, 2_500, 1_000_000),
    "Sessions of one caller: a quarter of all. Its own one that is idle the longest makes room for a new one. Less where \
     `sessions` is set lower, in the same proportion.",
);
static BODIES_PER_CALLER: Spec = spec(
    "bodies_per_caller",
    Unit::Bytes,
    (4 * KIB, 64 * MIB, 64 * GIB),
    "Bodies of one caller that are being read, all together: four of the longest. Less where `bodies` is set lower, in the same \
     proportion, and never less than `body`.",
);
static HEAD_TIME: Spec = spec(
    "head_time",
    Unit::Millis,
    (SECOND / 10, 10 * SECOND, 10 * MINUTE),
    "From the first byte of a request to the end of its headers, and for a TLS handshake: what a bad line needs.",
);
static BODY_TIME: Spec = spec(
    "body_time",
    Unit::Millis,
    (SECOND / 10, MINUTE, HOUR),
    "For a request's body to arrive: the longest one at 2 Mbit/s.",
);
static WRITE_TIME: Spec = spec(
    "write_time",
    Unit::Millis,
    (SECOND / 10, 30 * SECOND, HOUR),
    "For which a client may read nothing of what is written to it; then its connection is closed.",
);
static IDLE: Spec = spec(
    "idle",
    Unit::Millis,
    (SECOND / 10, 2 * MINUTE, DAY),
    "For which a connection may have no request: longer than proxies keep theirs for reuse.",
);
static KEEP_ALIVE: Spec = spec(
    "keep_alive",
    Unit::Millis,
    (SECOND / 10, 15 * SECOND, HOUR),
    "After which a stream without an event carries a comment, so that nobody between takes it for dead.",
);
static STREAM_TIME: Spec = spec(
    "stream_time",
    Unit::Millis,
    (SECOND / 10, DAY, 30 * DAY),
    "For which one stream may stay open. It ends as at the server's end, and clients open the next.",
);
static SESSION_IDLE: Spec = spec(
    "session_idle",
    Unit::Millis,
    (SECOND / 10, 30 * MINUTE, 30 * DAY),
    "For which a session may have no request and no stream. A client begins a new one.",
);
static SESSION_TIME: Spec = spec(
    "session_time",
    Unit::Millis,
    (SECOND / 10, DAY, 30 * DAY),
    "For which one session may last. A client begins a new one.",
);
static DRAIN: Spec = spec(
    "drain",
    Unit::Millis,
    (0, 10 * SECOND, HOUR),
    "For which calls may run on once the server is to end: less than service managers wait before they kill.",
);
