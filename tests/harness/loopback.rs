//! Servers on loopback addresses that guests are sent to: HTTP in every temper, TLS, HTTP/2, names,
//! TCP and UDP, and an issuer of tokens. Each takes a port of its own and remembers what came.
//! Nothing here knows the host under test.

mod collector;
mod echo;
mod http;
mod http2;
mod issuer;
mod names;
mod tls;

pub use collector::{Collector, Manner, Span};
pub use echo::{TcpEcho, UdpEcho};
pub use http::{HttpServer, Seen};
pub use http2::Http2Server;
pub use issuer::{Algorithm, Issuer, SigningKey, seconds_from_now};
pub use names::{NameServer, Named};
pub use tls::{Authority, Identity, TlsWire};
