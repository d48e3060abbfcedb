//! The command lines of `secret login` and `secret logout`.
use clap::Args as ClapArgs;

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
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// `toolcell secret logout`.
#[derive(Debug, ClapArgs)]
pub struct SecretLogoutArgs {
    /// The login, as [oauth.NAME] in the manifest
    pub name: String,
    #[command(flatten)]
    pub manifest: ManifestArg,
}
