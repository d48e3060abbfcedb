//! The server over HTTP as the manifest and the command line configure it: sockets, names, TLS.
//! Must not hold: the protocol, or who is let in.

mod certificate;
mod certificate_facts;
mod open;

pub(crate) use certificate::open as open_certificate;
pub use certificate_facts::{check_certificates, ending_certificates, shown_certificates};
pub use open::{BoundTransport, HttpAddress, HttpSettings, open};
pub(crate) use open::{authenticator, open_access_fault};
