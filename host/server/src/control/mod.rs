//! The control socket, over which commands of the user ask a serving process for its status, and
//! tell it to reload.
//!
//! Its protocol is line-delimited JSON over a Unix socket in a folder that only this user can
//! enter; one request per connection. Must not hold: reloading (see `reload`), or the form of
//! answers for people (see the commands).
mod client;
mod message;
mod serve;
mod socket_paths;
mod status;

pub use client::{Unreachable, ask_all};
pub use message::Request;
pub use serve::Control;
pub use socket_paths::{ControlSocket, folders, remove_if_dead};
pub use status::StatusSources;
