//! The Model Context Protocol: every revision from 2024-11-05 to 2026-07-28, both eras at once. The
//! core is sans-IO; the stdio and HTTP transports are built on it.
//!
//! The embedding program implements [`Host`] and [`ServedCatalog`] and compiles its tools with
//! [`McpTool::compile`]. It makes one [`McpServer`] and hands it to a transport such as
//! [`stdio::serve`]:
//!
//! ```text
//! transport ── frame ──▶ ClientConnection::receive ── Work ──▶ Executor ──▶ ServedCatalog::call
//!     ▲                        │ (errors, lists, pings)                          │
//!     └─────── Outbox ◀────────┴─────────────────────────────────────────────────┘
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
mod frame;
mod host;
pub mod http;
mod lock;
mod meta;
mod method;
mod mirrored;
mod news;
mod observer;
mod resources;
mod revision;
mod sealing;
mod server;
pub mod stdio;
mod task;
mod tool;
mod turns;

pub use asking::{
    ASKS_AT_ONCE_MAX, AskOutcome, AskTerms, CallAsking, ClientAnswer, ClientAskError, ClientQuestion, ClientRoot,
    KeyedQuestion, QuestionKind,
};
pub use caller::Caller;
pub use cancellation::Cancellation;
pub use completion::{COMPLETIONS_MAX, Completing, Completions};
pub use connection::{ClientConnection, Gate};
pub use content::{
    CallResult, ContentAnnotations, ContentIcon, ContentKind, IconTheme, Map, PromptParts, ResourceBody, ResourceLink,
    ResultContent, Role,
};
pub use declared::{
    DeclaredResource, FolderChild, HostContents, HostReading, NotRead, ResourceEntry, ResourceMore, ResourceReader,
    Skill,
};
pub use events::CallEvents;
pub use frame::{ArgumentsRefusal, ErrorCode, OverlongFrame, RequestId, RpcError, parse_arguments};
pub use host::{
    Audience, Call, CallContext, CallTerms, Executor, Host, Outbox, ServedCatalog, SharedFrame, Work, leave_thread,
    leaves_thread,
};
pub use meta::{ClientInfo, ClientLogLevel, TraceContext};
pub use method::Method;
pub use mirrored::Mirrored;
pub use news::{NewsCarrier, ResourceNews, normal_uri};
pub use observer::{ObservedRequest, Observer, RequestDetails};
pub use revision::Revision;
pub use sealing::{Purpose, STATE_KEY_BYTES_MIN, StateKey, WeakKey};
pub use server::{McpServer, ServerInfo, ServerOptions};
pub use task::{LOST_TASK, TaskOptions, TaskPlan};
pub use tool::{
    CALL_TOOL, CheckedResult, DESCRIBE_TOOLS, FIND_TOOLS, McpPrompt, McpTool, NameCollisions, PROMPT_ARGUMENTS_MAX,
    PROMPT_VALUES_MAX, PromptArgument, RUN_CODE, SearchBounds, SearchError, ToolDefinition, ToolGroups, ToolHints,
    ToolList,
};
pub use toolcell_schema::{
    ArgumentProblem, ArgumentProblems, DefinitionProblem, GivenUp, NarrowedArgument, Patience, sanitize,
};
pub use turns::{CallerTurn, FairTurns, TurnBounds};
