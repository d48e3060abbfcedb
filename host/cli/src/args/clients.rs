//! The command lines about clients: `token` and `client-config`.
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use toolcell_server::identity::lifetime;

use super::ManifestArg;

/// `toolcell token`.
#[derive(Debug, ClapArgs)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token for a caller, and print it: it is kept nowhere. A caller may have two, to
    /// change from one to the other
    New {
        /// The caller's name
        name: String,
        /// What the caller has rights to; several with commas between them, or given several times
        #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
        scopes: Vec<String>,
        /// Let it end after this time: 30d, 12h, 90m [default: it never ends]
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<Duration>,
        #[command(flatten)]
        file: TokenFileArg,
    },
    /// Show who has a token, with which scopes, and until when
    List {
        #[command(flatten)]
        file: TokenFileArg,
    },
    /// Take a caller's tokens away; servers notice within a second
    Revoke {
        /// The caller's name
        name: String,
        /// Leave the newest one, which takes the place of the others
        #[arg(long)]
        older: bool,
        #[command(flatten)]
        file: TokenFileArg,
    },
}

/// Which file of tokens.
#[derive(Debug, ClapArgs)]
pub struct TokenFileArg {
    /// The file [default: the one that the manifest names]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// `toolcell client-config`.
#[derive(Debug, ClapArgs)]
pub struct ClientConfigArgs {
    /// Which client
    #[arg(value_name = "CLIENT", default_value = "claude")]
    pub client: ClientName,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// For a server at this address, instead of one that the client starts
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The server's name in the client's list
    #[arg(long, value_name = "NAME", default_value = "toolcell", value_parser = server_name)]
    pub name: String,
    /// Leave a place for the token that the server wants
    #[arg(long, requires = "url")]
    pub token: bool,
}

/// A client that reads such a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClientName {
    /// Claude Code
    #[value(alias = "claude-code")]
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// Longest name of a server. Clients put it before the names of tools, which many model APIs cut at
/// 64.
const SERVER_NAME_CHARS_MAX: usize = 32;

/// A name that every client takes as a key and as a word of a command line.
fn server_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > SERVER_NAME_CHARS_MAX || text.starts_with('-') || !text.chars().all(plain) {
        return Err(format!("1 to {SERVER_NAME_CHARS_MAX} of A-Z, a-z, 0-9, - and _"));
    }
    Ok(text.to_owned())
}
