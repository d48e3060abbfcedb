//! The Model Context Protocol: every revision from 2024-11-05 to 2026-07-28, both eras at once. The
//! core is sans-IO; the stdio and HTTP transports lie on top of it.
//!
//! The program around it implements [`Host`] and [`Catalog`] and compiles its tools with
//! [`Tool::compile`]. It makes one [`Server`] and hands it to a transport such as [`stdio::serve`]:
//!
//! ```text
//! transport ── frame ──▶ Connection::receive ── Work ──▶ Executor ──▶ Catalog::call
//!     ▲                        │ (errors, lists, pings)                    │
//!     └─────── Outbox ◀────────┴───────────────────────────────────────────┘
//! ```
//!
//! Deliberately absent: WebAssembly, manifests, grants, and any knowledge of the program behind a
//! [`Host`].
#![forbid(unsafe_code)]

mod asking;
mod caller;
mod cancellation;
mod connection;
mod content;
mod events;
mod frame;
mod host;
pub mod http;
mod meta;
mod method;
mod mirrored;
mod observer;
mod resources;
mod revision;
pub mod sanitize;
mod schema;
mod server;
pub mod stdio;
mod tool;

pub use asking::{
    ASKS_AT_ONCE_MAX, Answer, Ask, AskError, AskTerms, Asked, Asking, Question, QuestionKind, Root,
    STATE_KEY_BYTES_MIN, StateKey, WeakKey,
};
pub use caller::Caller;
pub use cancellation::Cancellation;
pub use connection::{Connection, Gate};
pub use content::{
    CallResult, Content, ContentAnnotations, ContentKind, Icon, IconTheme, Map, ResourceBody, ResourceLink, Role,
};
pub use events::CallEvents;
pub use frame::{ErrorCode, RequestId, RpcError};
pub use host::{Audience, Call, CallContext, Catalog, Executor, Host, Outbox, Work, leave_thread};
pub use meta::{ClientInfo, LogLevel, TraceContext};
pub use method::Method;
pub use mirrored::Mirrored;
pub use observer::{ObservedRequest, Observer, RequestDetails};
pub use resources::DeclaredResource;
pub use revision::Revision;
pub use schema::{ArgumentProblem, ArgumentProblems, Patience};
pub use server::{Server, ServerInfo, ServerOptions};
pub use tool::{
    CheckedResult, DefinitionBounds, DefinitionProblem, NameCollisions, Tool, ToolDefinition, ToolHints, ToolList,
};
