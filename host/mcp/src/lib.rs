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
mod completion;
mod connection;
mod content;
mod declared;
mod events;
mod extensions;
mod frame;
mod host;
pub mod http;
mod meta;
mod method;
mod mirrored;
mod news;
mod observer;
mod resources;
mod revision;
mod sealing;
mod server;
mod skills;
pub mod stdio;
pub mod store;
mod task;
pub mod tasks {
    //! The table of tasks, for programs that keep it.
    pub use crate::task::{
        CANCELLED_MESSAGE, Changed, Creation, LOST_TASK, NewTask, StoredTask, TaskChange, TaskStatus, TaskStore,
    };
}
mod tool;
mod turns;

pub use asking::{ASKS_AT_ONCE_MAX, Answer, Ask, AskError, AskTerms, Asked, Asking, Question, QuestionKind, Root};
pub use caller::Caller;
pub use cancellation::Cancellation;
pub use completion::{COMPLETIONS_MAX, Completing, Completions};
pub use connection::{Connection, Gate};
pub use content::{
    CallResult, Content, ContentAnnotations, ContentKind, Icon, IconTheme, Map, PromptParts, ResourceBody,
    ResourceLink, Role,
};
pub use declared::{DeclaredResource, HostContents, HostReading, NotRead, ResourceEntry, ResourceMore, ResourceReader};
pub use events::CallEvents;
pub use frame::{ErrorCode, OverlongFrame, RequestId, RpcError};
pub use host::{
    Audience, Call, CallContext, Catalog, Executor, Host, Outbox, SharedFrame, Work, leave_thread, leaves_thread,
};
pub use meta::{ClientInfo, LogLevel, TraceContext};
pub use method::Method;
pub use mirrored::Mirrored;
pub use news::{NewsCarrier, ResourceNews, normal_uri};
pub use observer::{ObservedRequest, Observer, RequestDetails};
pub use revision::Revision;
pub use sealing::{STATE_KEY_BYTES_MIN, StateKey, WeakKey};
pub use server::{Server, ServerInfo, ServerOptions};
pub use skills::{FolderChild, Skill};
pub use task::{TaskOptions, TaskPlan};
pub use tool::{
    CALL_TOOL, CheckedResult, DefinitionBounds, FIND_TOOLS, NameCollisions, PROMPT_ARGUMENTS_MAX, PROMPT_VALUES_MAX,
    Prompt, PromptArgument, SearchBounds, SearchError, Tool, ToolDefinition, ToolHints, ToolList,
};
pub use toolcell_schema::{
    ArgumentProblem, ArgumentProblems, DefinitionProblem, GivenUp, Patience, SchemaBounds, sanitize,
};
pub use turns::{FairTurns, Turn, TurnBounds};
