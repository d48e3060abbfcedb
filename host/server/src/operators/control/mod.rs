//! The control socket, over which commands of the user ask a serving process for its status and
//! activity, order a reload, and decide.
//!
//! Its protocol is line-delimited JSON over a Unix socket in a folder that only this user can
//! enter; one request per connection. Must not hold: reloading (see `reload`), or the form of
//! answers for people (see the commands).
mod activity;
mod client;
mod message;
mod operators;
mod serve;
mod status;

pub use crate::machine::socket_paths::ControlSocket;
pub use activity::{
    ActivitySnapshot, ApprovalShown, CallShown, CallState, Decision, DecisionRequest, DenialShown, MinuteShown,
    RuleShown,
};
pub use client::{Unreachable, ask, ask_all, served, sockets};
pub use message::Request;
pub use serve::Control;
pub use status::StatusSources;
pub(crate) use status::load;
