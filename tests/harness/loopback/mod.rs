//! Servers on loopback addresses for the requests of guests. They speak HTTP with every kind of
//! behaviour, TLS, HTTP/2, names, TCP and UDP; one is an issuer of tokens. Each has its own port
//! and remembers its requests. Nothing here knows the host under test.

mod collector;
mod echo;
mod http;
mod http2;
mod issuer;
mod mcp;
mod names;
mod registry;
mod tls;

pub use collector::{Collector, Manner, Span};
pub use echo::{TcpEcho, UdpEcho};
pub use http::{HttpServer, Scripted, Seen};
pub use http2::Http2Server;
pub use issuer::{Algorithm, Issuer, SigningKey, seconds_from_now};
pub use mcp::{McpEra, McpScript, events, result};
pub use names::{NameServer, Named};
pub use registry::{Registry, sha256};
pub use tls::{Authority, Identity, TlsWire};
