//! The command lines of `secret login` and `secret logout`.
use clap::{Args as ClapArgs, Subcommand};

use super::ManifestArg;

/// `toolcell secret login`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell secret login notes              opens with a browser of this machine
  toolcell secret login notes --device     with a browser of any machine

The manifest names the authorization server in [oauth.NAME]. The tokens are kept in the folder of states, in a file that
only this user reads; the host refreshes them, and servers that run notice a login within a second.")]
pub struct SecretLoginArgs {
    /// The login, as [oauth.NAME] in the manifest
    pub name: String,
    /// Agree in a browser of another machine: the device flow
    #[arg(long)]
    pub device: bool,
    /// Whose login it becomes, where each caller has one: the caller over stdio by default
    #[arg(long, value_name = "CALLER")]
    pub caller: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// `toolcell logins`.
#[derive(Debug, ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  toolcell logins list                         whose logins there are
  toolcell logins revoke notes --caller ann    ends that of one caller

A running server no longer adds a revoked login's tokens from the next request on; replicas notice within a second."
)]
pub struct LoginsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LoginsCommand,
}

/// What to do with logins of callers.
#[derive(Debug, Subcommand)]
pub enum LoginsCommand {
    /// Show whose logins there are, and their states
    List(LoginsListArgs),
    /// Keep a key of a caller, read from stdin, for a secret with `from = "caller:NAME"`
    Set(LoginsSetArgs),
    /// Remove logins, and take their tokens back where the server offers that
    Revoke(LoginsRevokeArgs),
}

/// `toolcell logins list`.
#[derive(Debug, ClapArgs)]
pub struct LoginsListArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell logins set`.
#[derive(Debug, ClapArgs)]
pub struct LoginsSetArgs {
    /// The key's name, as in from = "caller:NAME"
    pub name: String,
    /// Whose key it is
    #[arg(long, value_name = "CALLER")]
    pub caller: String,
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// `toolcell logins revoke`.
#[derive(Debug, ClapArgs)]
pub struct LoginsRevokeArgs {
    /// The login, as [oauth.NAME] in the manifest [default: all of the caller]
    pub name: Option<String>,
    /// Whose logins to revoke
    #[arg(long, value_name = "CALLER")]
    pub caller: String,
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// `toolcell secret logout`.
#[derive(Debug, ClapArgs)]
pub struct SecretLogoutArgs {
    /// The login, as [oauth.NAME] in the manifest
    pub name: String,
    /// Whose login to forget, where each caller has one: that over stdio by default
    #[arg(long, value_name = "CALLER")]
    pub caller: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
}
