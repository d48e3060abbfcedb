//! `toolcell secret`: values that the host adds to requests. Must not hold: the single commands.
use crate::args::{SecretArgs, SecretCommand};
use crate::commands::secret_login;
use crate::exit::Exit;

/// Runs the command.
pub fn run(args: &SecretArgs) -> anyhow::Result<Exit> {
    match &args.command {
        SecretCommand::Login(args) => secret_login::run(args),
        SecretCommand::Logout(args) => secret_login::log_out(args),
    }
}
