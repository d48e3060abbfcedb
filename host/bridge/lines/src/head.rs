//! The first line of what is embedded, and hints of a definition.
use serde::{Deserialize, Serialize};

use crate::exchange::Era;

/// The version of the lines. The guest refuses others.
pub const FORMAT: u32 = 1;

/// Begins the line of a tool's requests.
pub const REQUEST: &str = "{\"tool\":\"";

/// The variable by which a manifest has a bridge pass on what its server asks the person.
pub const PASSES_ELICITATION: &str = "ELICITATION";

/// The value of that variable.
pub const PASSED: &str = "pass";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`FORMAT`].
    pub format: u32,
    /// The server of all requests.
    #[serde(flatten)]
    pub server: BridgeServer,
}

/// The server of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BridgeServer {
    /// An HTTP API: its scheme, host and port.
    Origin(String),
    /// Another MCP server.
    Mcp(RemoteServer),
}

/// Another MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteServer {
    /// The address of its endpoint.
    pub url: String,
    /// How it is spoken to.
    pub era: Era,
    /// True if it names sessions, which a call ends.
    pub names_sessions: bool,
    /// What a person asked for when the list was read.
    pub selection: Selection,
}

/// Tools that a person wants of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Names of tools there. Empty: all.
    pub only: Vec<String>,
    /// True if more tools than usual may be taken.
    pub all: bool,
    /// What stands before each tool's name. It counts towards the longest name.
    pub prefix: String,
}

/// What a definition says of its tool's behaviour; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// The same call again changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It deals with more than its own store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}
