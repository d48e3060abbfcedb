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
//! | `account.rs` | what identity tokens say about the account |
//! | `store.rs`, `record.rs` | the file of a login, its lock, and what is in it |
//! | `vault.rs` | a record's place: that file, or the server that replicas share |
//! | `live.rs`, `refresh.rs` | a login as a secret that changes; its refresh |
//! | `callers.rs` | logins of which each caller has one |
//! | `exchange.rs` | callers' tokens, exchanged for those of an API |
//! | `ticket.rs`, `pages.rs`, `html.rs`, `listen.rs` | the pages at which callers log in |
//! | `pasting.rs` | the page at which they paste a key |
//! | `made.rs`, `ending.rs` | what a browser keeps of a login that it made; the page at which it ends it |
//! | `service.rs`, `ended.rs` | the pages of a running server; the end of logins without a right |
mod account;
mod callers;
mod client;
mod code;
mod device;
mod ended;
mod ending;
mod endpoints;
mod error;
mod exchange;
mod html;
mod listen;
mod live;
mod made;
mod pages;
mod pasting;
mod record;
mod redirect;
mod refresh;
mod service;
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
pub(crate) use ended::RightsCheck;
pub use error::LoginError;
pub use live::{FINISHED_WITHIN, finish, in_use, live, problems};
pub(crate) use pages::{LoginFinder, PageParts};
pub(crate) use service::LoginService;
pub use state::{LoginState, state};
pub use store::folder;
pub(crate) use ticket::{LoginTicket, TicketSubject};

use account::{ExpectedAccount, OPENID};
use endpoints::{Client, Endpoints};
use record::Record;
use store::RecordPlace;
use token::Tokens;
use vault::{OpenVault, Vault};

/// A login that somebody begins.
pub struct NewLogin<'a, S> {
    policy: &'a Arc<LoginPolicy>,
    client: Client,
    /// The server's endpoints.
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

    /// True if the server is asked to say whose account it is.
    fn asks_account(&self) -> bool {
        self.policy.scopes().iter().any(|scope| scope == OPENID)
    }

    /// Checks what the server says about the account, if it does.
    fn check_account(&self, tokens: &Tokens, nonce: Option<&str>, subject: Option<&str>) -> Result<(), LoginError> {
        let problem = match &tokens.identity {
            Some(token) => {
                let issuer = self.endpoints.issuer.as_deref();
                ExpectedAccount { issuer, client: &self.client.id, nonce, subject }.problem(token)
            }
            None if self.asks_account() && subject.is_some() => Some("it does not say whose account this is"),
            None => None,
        };
        problem.map_or(Ok(()), |problem| Err(LoginError::answer(&self.endpoints.token, problem)))
    }

    /// Keeps the tokens. The browser with this mark may end the login.
    async fn keep(&self, tokens: Tokens, mark: Option<&str>) -> Result<Made, LoginError> {
        let record = Record::new(self.policy, &self.endpoints, tokens, SystemTime::now()).marked(mark);
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
    log_out_of(policy, folder, &vault, None, send).await
}

/// As [`log_out`], of the record at this place. It is removed first: a server that is slow to take
/// tokens back does not keep them in use. With a mark, only the login that has it is ended.
async fn log_out_of<S: SendRequest>(
    policy: &Arc<LoginPolicy>,
    folder: &Path,
    vault: &Vault,
    mark: Option<&str>,
    send: &S,
) -> Result<(bool, Option<LoginError>), LoginError> {
    let vault = vault.open()?;
    let lock = vault.lock().await?;
    let record = lock.read().await;
    let removed = match &record {
        Ok(None) => Ok(()),
        Ok(Some(record)) if mark.is_some_and(|mark| !record.has_mark(mark)) => {
            lock.release().await;
            return Ok((false, None));
        }
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
