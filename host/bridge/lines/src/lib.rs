//! What both ends of a bridge have in common: the lines that `toolcell add` embeds and the guest
//! reads, and what both say to other MCP servers.
//!
//! Deliberately absent: files, network, and documents that lines are made of. It is compiled for
//! the host and for guests.

mod answers;
mod exchange;
mod head;
mod media;
mod message;
mod request;

pub use answers::{AnswerBounds, Answers, NotAnswered};
pub use exchange::{
    CallRequest, CallRound, Elicitation, Era, MODERN, SESSION_REVISIONS, SessionState, call, discover, fields,
    initialize, initialized, list, refusal, reply,
};
pub use head::{BridgeServer, FORMAT, Head, Hints, PASSED, PASSES_ELICITATION, REQUEST, RemoteServer, Selection};
pub use media::{charset, essence, is_json, is_text};
pub use message::{MESSAGES_MAX, Message, RpcFailure};
pub use request::{
    Body, BodyForm, FieldStyle, MirroredParameter, OutputForm, Parameter, Place, RemoteCall, Request, Style,
    bytes_of_base64,
};
