//! The command lines of `secret`: values that the host adds to requests, and guests never hold.
use clap::{Args as ClapArgs, Subcommand};

use super::{ConsentArg, ManifestArg, SecretLoginArgs, SecretLogoutArgs};

/// `toolcell secret`.
#[derive(Debug, ClapArgs)]
pub struct SecretArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SecretCommand,
}

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Log in at an authorization server, whose tokens the host then adds to requests
    Login(SecretLoginArgs),
    /// Forget a login, and take its tokens back where the server offers that
    Logout(SecretLogoutArgs),
    /// Keep a secret's value, which is typed without being shown, or read from stdin
    Set(SecretSetArgs),
    /// Show which secrets the manifest names, where they are kept, and which are missing
    List(SecretListArgs),
    /// Take a secret out of the manifest, and remove the value that was kept
    Remove(SecretRemoveArgs),
}

/// `toolcell secret set`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell secret set API_KEY                      asks for the value
  toolcell secret set API_KEY < key.txt
  toolcell secret set API_KEY --header X-Key --for https://api.example.com

The value is kept in a file that only this user can read, in the folder secrets/ of the state's folder, or with
--keyring in the system's keyring. Where the manifest names a file or a keyring already, it is kept there. Only the
place of the value is written into the manifest.")]
pub struct SecretSetArgs {
    /// The secret's name
    pub name: String,
    /// The component that it belongs to [default: the only one that names it]
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,
    /// Keep it in the keyring: the kernel's, which lasts until the last logout, or the desktop's
    /// where this build knows it
    #[arg(long)]
    pub keyring: bool,
    /// Add it to requests in this header
    #[arg(long, value_name = "HEADER", requires = "target", conflicts_with_all = ["query", "expose"])]
    pub header: Option<String>,
    /// The header's value, the secret instead of {} [default: {}]
    #[arg(long, value_name = "TEXT", requires = "header")]
    pub value: Option<String>,
    /// Add it to requests in this part of the query
    #[arg(long, value_name = "NAME", requires = "target", conflicts_with = "expose")]
    pub query: Option<String>,
    /// The requests that carry it, such as `https://api.example.com`
    #[arg(long = "for", value_name = "RULE", id = "target")]
    pub target: Option<String>,
    /// Give it to the component itself
    #[arg(long)]
    pub expose: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}

/// `toolcell secret list`.
#[derive(Debug, ClapArgs)]
pub struct SecretListArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell secret remove`.
#[derive(Debug, ClapArgs)]
pub struct SecretRemoveArgs {
    /// The secret's name
    pub name: String,
    /// The component that it belongs to [default: the only one that names it]
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}
