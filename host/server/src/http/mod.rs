//! The server over HTTP as the manifest and the command line configure it: sockets, names, TLS,
//! tokens. Must not hold: the protocol.

mod authenticator;
mod certificate;
mod certificate_facts;
pub(crate) mod metadata;
mod oauth;
mod open;
mod token_file;
mod tokens;
mod watch;

pub(crate) use authenticator::Authenticator;
pub(crate) use certificate::open as open_certificate;
pub use certificate_facts::{check_certificates, ending_certificates, shown_certificates};
pub(crate) use open::authenticator;
pub use open::{BoundTransport, HttpAddress, HttpSettings, open};
pub use token_file::{NewToken, TokenEntry, TokenFile, lifetime};
pub(crate) use watch::FilePolling;
