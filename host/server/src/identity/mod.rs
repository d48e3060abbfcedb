//! Who a caller is, and who the host is to others: tokens, issuers, logins and secrets. Must not
//! hold: what a caller may do.

mod announced;
mod authenticator;
mod flight;
pub mod login;
pub(crate) mod metadata;
mod oauth;
mod presented;
pub mod secret_program;
pub mod secret_store;
pub mod secrets;
pub(crate) mod sources;
mod token_file;
mod tokens;

pub(crate) use authenticator::Authenticator;
pub(crate) use oauth::Oauth;
pub(crate) use presented::{Presented, PresentedTokens};
pub use token_file::{NewToken, TokenEntry, TokenFile, lifetime};
pub(crate) use tokens::Tokens;
