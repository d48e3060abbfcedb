//! The server over HTTP as the manifest and the command line want it: sockets, names, TLS, tokens. Must not hold: the
//! protocol.

mod certificate;
mod doorkeeper;
mod oauth;
mod open;
mod tokens;
mod watch;

pub use open::{Bound, HttpAddress, open};
pub use tokens::{TokenEntry, TokenFile, hash, new_token};
