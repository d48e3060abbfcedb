//! The command lines of `secret`: values that the host adds to requests, and guests never hold.
use clap::{Args as ClapArgs, Subcommand};

use super::{SecretLoginArgs, SecretLogoutArgs};

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
}
