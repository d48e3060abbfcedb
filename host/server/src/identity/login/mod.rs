//! Logins: a person agrees once at an authorization server, and the host gets tokens from then on
//! (OAuth 2.1). The flows, the store of tokens, and their refresh at the moment of a request. Must
//! not hold: terminals, or which requests carry a token.
//!
//! | file | holds |
//! |---|---|
//! | `endpoints.rs` | the server's endpoints, from the manifest and the server's metadata |
//! | `code.rs`, `redirect.rs` | authorization code with PKCE, and the listener that the browser returns to |
//! | `device.rs` | the device flow |
//! | `token.rs` | requests of the token endpoint and their answers |
//! | `store.rs`, `record.rs` | the file of a login, its lock, and what is in it |
//! | `vault.rs` | a record's place: that file, or the server that replicas share |
//! | `live.rs`, `refresh.rs` | a login as a secret that changes; its refresh |
//! | `callers.rs` | logins of which each caller has one |
//! | `exchange.rs` | callers' tokens, exchanged for those of an API |
//! | `ticket.rs`, `pages.rs`, `listen.rs` | the pages at which callers log in |
mod callers;
mod client;
mod code;
mod device;
mod endpoints;
mod error;
mod exchange;
mod listen;
mod live;
mod pages;
mod record;
mod redirect;
mod refresh;
mod state;
mod store;
mod ticket;
mod token;
mod vault;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_policy::LoginPolicy;

pub use callers::{CallerLogins, ListedLogin, LoginNeed};
pub use client::{SendRequest, client};
pub use code::BrowserLogin;
pub use device::{DeviceLogin, Prompt};
pub use error::LoginError;
pub(crate) use listen::{BoundLogins, ServedLogins};
pub use live::{FINISHED_WITHIN, finish, in_use, live, problems};
pub(crate) use pages::{LoginPages, TicketJudge};
pub use state::{LoginState, state};
pub use store::folder;
pub(crate) use ticket::TicketSubject;

use endpoints::{Client, Endpoints};
use record::Record;
use store::RecordPlace;
use token::Tokens;
use vault::{OpenVault, Vault};

/// A login that somebody begins.
pub struct NewLogin<'a, S> {
    policy: &'a Arc<LoginPolicy>,
    client: Client,
    endpoints: Endpoints,
    send: S,
    vault: OpenVault,
}

/// A login that was made.
#[derive(Debug)]
pub struct Made {
    /// The end of the access token, if the server says it.
    pub until: Option<SystemTime>,
    /// True if the host can refresh it.
    pub refreshes: bool,
    /// Scopes that were asked for and not given.
    pub scopes_missing: Vec<String>,
}

impl<'a, S: SendRequest> NewLogin<'a, S> {
    /// Reads the client's secret, asks the server for its endpoints, and looks at the store.
    ///
    /// # Errors
    /// Each step has its [`LoginError`].
    pub async fn begin(policy: &'a Arc<LoginPolicy>, folder: &Path, state: &Path, send: S) -> Result<Self, LoginError> {
        Self::begin_in(policy, folder, &Vault::File(RecordPlace::shared(state, policy.name())), send).await
    }

    /// As [`begin`](Self::begin), for the record at this place.
    async fn begin_in(policy: &'a Arc<LoginPolicy>, folder: &Path, vault: &Vault, send: S) -> Result<Self, LoginError> {
        let vault = vault.open()?;
        let client = Client::read(policy, folder)?;
        let endpoints = Endpoints::find(policy, &send).await?;
        Ok(Self { policy, client, endpoints, send, vault })
    }

    /// The server's endpoints.
    const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    async fn keep(&self, tokens: Tokens) -> Result<Made, LoginError> {
        let record = Record::new(self.policy, &self.endpoints, tokens, SystemTime::now());
        let made = Made {
            until: record.until(),
            refreshes: record.refreshes(),
            scopes_missing: record.scopes_missing(self.policy.scopes()),
        };
        let lock = self.vault.lock().await?;
        let written = lock.write(None, &record).await;
        lock.release().await;
        written.map(|()| made)
    }
}

/// Forgets a login: takes its tokens back at the server where that is offered, and removes them
/// here. Returns false if there was none.
///
/// # Errors
/// The store's. Tokens that the server does not take back are removed all the same, and the reason
/// is the second value.
pub async fn log_out<S: SendRequest>(
    policy: &Arc<LoginPolicy>,
    folder: &Path,
    state: &Path,
    send: &S,
) -> Result<(bool, Option<LoginError>), LoginError> {
    let vault = Vault::File(RecordPlace::shared(state, policy.name()));
    log_out_of(policy, folder, &vault, send).await
}

/// As [`log_out`], of the record at this place. It is removed first: a server that is slow to take
/// tokens back does not keep them in use.
async fn log_out_of<S: SendRequest>(
    policy: &Arc<LoginPolicy>,
    folder: &Path,
    vault: &Vault,
    send: &S,
) -> Result<(bool, Option<LoginError>), LoginError> {
    let vault = vault.open()?;
    let lock = vault.lock().await?;
    let record = lock.read().await;
    let removed = match record {
        Ok(None) => Ok(()),
        _ => lock.remove().await,
    };
    lock.release().await;
    removed?;
    let record = match record {
        Ok(Some(record)) => record,
        Ok(None) => return Ok((false, None)),
        // What cannot be read cannot be taken back.
        Err(error) => return Ok((true, Some(error))),
    };
    // Tokens go to no server but the one they are from.
    let taken_back = match Client::read(policy, folder) {
        Ok(client) if record.is_of(policy) => token::take_back(&record, &client, send).await,
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    Ok((true, taken_back.err()))
}
