//! The control socket: how another command of the same user asks a serving process how it is, and tells it to reload.
//!
//! Line-delimited JSON over a Unix socket in a folder that only this user can enter; one request a connection. Must not
//! hold: what a reload is (that is `reload`), or how answers are shown to people (the commands).
mod client;
mod message;
mod place;
mod serve;
mod status;

pub use client::{Unreachable, ask_all};
pub use message::Request;
pub use place::{ControlSocket, folders, remove_if_dead};
pub use serve::Control;
pub use status::Subject;
