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
//! | `live.rs`, `refresh.rs` | a login as a secret that changes; its refresh |
mod client;
mod code;
mod device;
mod endpoints;
mod error;
mod live;
mod record;
mod redirect;
mod refresh;
mod state;
mod store;
mod token;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_policy::LoginPolicy;

pub use client::{SendRequest, client};
pub use code::BrowserLogin;
pub use device::{DeviceLogin, Prompt};
pub use error::LoginError;
pub use live::{FINISHED_WITHIN, finish, in_use, live, problems};
pub use state::{LoginState, state};
pub use store::folder;

use endpoints::{Client, Endpoints};
use record::Record;
use store::Store;
use token::Tokens;

/// A login that somebody begins.
pub struct NewLogin<'a, S> {
    policy: &'a Arc<LoginPolicy>,
    client: Client,
    endpoints: Endpoints,
    send: S,
    store: Store,
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
        let store = Store::open(state, policy.name())?;
        let client = Client::read(policy, folder)?;
        let endpoints = Endpoints::find(policy, &send).await?;
        Ok(Self { policy, client, endpoints, send, store })
    }

    fn keep(&self, tokens: Tokens) -> Result<Made, LoginError> {
        let record = Record::new(self.policy, &self.endpoints, tokens, SystemTime::now());
        let made = Made {
            until: record.until(),
            refreshes: record.refreshes(),
            scopes_missing: record.scopes_missing(self.policy.scopes()),
        };
        self.store.lock()?.write(&record)?;
        Ok(made)
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
    let store = Store::open(state, policy.name())?;
    let lock = store.lock()?;
    let record = match store.read() {
        Ok(Some(record)) => record,
        Ok(None) => return Ok((false, None)),
        // What cannot be read cannot be taken back, and goes all the same.
        Err(error) => return lock.remove().map(|()| (true, Some(error))),
    };
    // Tokens go to no server but the one they are from.
    let taken_back = match Client::read(policy, folder) {
        Ok(client) if record.is_of(policy) => token::take_back(&record, &client, send).await,
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    lock.remove()?;
    Ok((true, taken_back.err()))
}
