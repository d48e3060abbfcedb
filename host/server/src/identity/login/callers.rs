//! Logins of which each caller has one. A call gets the secrets of its own caller, made here before
//! its guest runs; nothing in a sandbox can name another's.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcell_audit::timestamp;
use toolcell_mcp::{Caller, StateKey};
use toolcell_policy::{HttpPolicy, LoginPolicy, Manifest, OauthPolicy, SecretSource};
use toolcell_sandbox::{ComponentDigest, LiveSecret, NoValue, SecretValue};
use zeroize::Zeroizing;

use super::client::client;
use super::error::LoginError;
use super::exchange::{Exchange, ExchangedSecret, PassedSecret};
use super::live::{Lacks, Login, SharedLogin};
use super::record::{CallerRecord, Record};
use super::refresh::Plan;
use super::store::{self, RecordPlace, SealedFor};
use super::ticket::{LoginTicket, TicketSubject};
use super::vault::{SharedRecord, SharedVault, Vault};
use super::{NewLogin, log_out_of};
use crate::files::file::absolute;
use crate::identity::{Presented, PresentedTokens, TokenFile, secrets};

/// Callers' logins that a process holds in memory: a thousand callers that are active at once. The
/// one that was used longest ago makes room.
const HELD_MAX: usize = 1_024;

/// The logins of callers.
pub struct CallerLogins {
    /// The manifest's folder.
    folder: PathBuf,
    /// The folder of states.
    state: PathBuf,
    /// The source of the key that replicas share, if the manifest names one.
    key_source: Option<SecretSource>,
    key: OnceLock<StateKey>,
    shared: OnceLock<SharedVault>,
    /// The address of the pages, as browsers reach them.
    address: OnceLock<String>,
    held: Mutex<HeldLogins>,
    /// The issuers of callers' tokens: the name before their callers' names, and the claim `iss`.
    issuers: Vec<(String, String)>,
    /// The file of callers' tokens, if `[http]` names one; `None` without `[http]`.
    tokens: Option<Option<TokenFile>>,
    /// Tokens that callers showed, for their exchange.
    presented: OnceLock<Arc<PresentedTokens>>,
    /// By login and token: one caller may show several in turn, as from two clients.
    exchanges: Mutex<HashMap<(String, ComponentDigest), HeldExchange>>,
}

/// The exchange of a caller's token.
struct HeldExchange {
    policy: Arc<LoginPolicy>,
    /// The token's end.
    until: SystemTime,
    exchange: Arc<Exchange>,
}

/// The logins in memory, by login and caller.
#[derive(Default)]
struct HeldLogins {
    logins: HashMap<(String, String), HeldLogin>,
    /// Counts uses.
    uses: u64,
}

struct HeldLogin {
    policy: Arc<LoginPolicy>,
    login: Arc<Login>,
    used: u64,
}

/// What a caller's login needs before a call can use it.
pub enum LoginNeed {
    /// Nothing: this is its secret.
    Nothing(Arc<dyn LiveSecret>),
    /// The caller must log in.
    Person,
    /// The caller must show a token of the login's issuer.
    Token,
    /// Its server gives no token now. The log says why.
    Server,
}

/// A caller's login, as operators see it.
#[derive(Clone, Debug)]
pub struct ListedLogin {
    /// The login's name in the manifest.
    pub login: String,
    /// Whose it is.
    pub caller: String,
    record: Record,
}

impl ListedLogin {
    /// True if its tokens are of this login.
    pub(super) fn is_of(&self, policy: &LoginPolicy) -> bool {
        self.record.is_of(policy)
    }

    /// Its state in one sentence without a full stop. `policy` is the manifest's login of its name.
    #[must_use]
    pub fn state(&self, policy: Option<&LoginPolicy>) -> String {
        let Some(policy) = policy else { return "the manifest has no such login".to_owned() };
        match Plan::of(Some(&self.record), policy, SystemTime::now()) {
            Plan::Refresh => "logged in; the next call refreshes the token".to_owned(),
            Plan::Use => match (self.record.until().map(timestamp), self.record.refreshes()) {
                (None, _) => "logged in".to_owned(),
                (Some(until), true) => format!("logged in; token until {until}, then refreshed"),
                (Some(until), false) => format!("logged in until {until}"),
            },
            Plan::Other => "it is for another server, client or scope than the manifest's".to_owned(),
            Plan::Ended(reason) => format!("it has ended: {reason}"),
            Plan::Missing => "nobody is logged in".to_owned(),
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self, policy: Option<&LoginPolicy>) -> Value {
        json!({ "login": self.login, "caller": self.caller, "state": self.state(policy) })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Record(…)")
    }
}

impl CallerLogins {
    /// Logins in this folder of states. Relative paths start from `folder`. `key` is the source of
    /// the key that replicas share; without one, a key of its own lies in the folder of states.
    #[must_use]
    pub fn new(folder: &Path, state: &Path, key: Option<&SecretSource>) -> Self {
        Self {
            folder: absolute(folder),
            state: absolute(state),
            key_source: key.cloned(),
            key: OnceLock::new(),
            shared: OnceLock::new(),
            address: OnceLock::new(),
            held: Mutex::default(),
            issuers: Vec::new(),
            tokens: None,
            presented: OnceLock::new(),
            exchanges: Mutex::default(),
        }
    }

    /// From now on these tokens can be exchanged.
    pub(crate) fn exchange_of(&self, presented: &Arc<PresentedTokens>) {
        let _ = self.presented.set(Arc::clone(presented));
    }

    /// Those of a manifest's callers. Relative paths start from `folder`.
    #[must_use]
    pub fn of_manifest(manifest: &Manifest, folder: &Path) -> Self {
        let server = manifest.server();
        let issuers = manifest.http().and_then(HttpPolicy::oauth).map(OauthPolicy::issuers).unwrap_or_default();
        let named = issuers.iter().map(|issuer| (issuer.name().to_owned(), issuer.issuer().to_owned()));
        let issuers = named.collect();
        let file = |http: &HttpPolicy| http.tokens().map(|file| TokenFile::at(folder.join(file)));
        let tokens = manifest.http().map(file);
        Self { issuers, tokens, ..Self::new(folder, &folder.join(server.state()), server.state_key()) }
    }

    /// From now on tokens that callers show are kept for their exchange.
    pub(super) fn keep_presented(&self) {
        self.presented.get().into_iter().for_each(|presented| presented.need());
    }

    /// True if this is the name of a caller of one of the issuers.
    pub(super) fn is_of_an_issuer(&self, caller: &str) -> bool {
        caller.split_once(':').is_some_and(|(name, _)| self.issuers.iter().any(|(known, _)| known == name))
    }

    /// The callers with tokens of the manifest's file. `None` if it cannot be read, or without
    /// `[http]`: then nobody knows who may come.
    pub(super) fn named_callers(&self) -> Option<HashSet<String>> {
        let entries = self.tokens.as_ref()?.as_ref().map(TokenFile::read).transpose().ok()?;
        Some(entries.into_iter().flatten().map(|entry| entry.name).collect())
    }

    /// The account that a caller's login must be for: the caller's own, where the same issuer says
    /// who the caller is.
    pub(super) fn subject<'c>(&self, policy: &LoginPolicy, caller: &'c str) -> Option<&'c str> {
        let (name, subject) = caller.split_once(':')?;
        let is_same = |(known, issuer): &(String, String)| known == name && Some(issuer.as_str()) == policy.issuer();
        self.issuers.iter().any(is_same).then_some(subject)
    }

    /// From now on they are on the server that replicas share.
    pub(crate) fn share(
        &self,
        kept: Arc<toolcell_shared::Kept>,
        state: Arc<dyn toolcell_shared::SharedState>,
        runtime: tokio::runtime::Handle,
    ) {
        let _ = self.shared.set(SharedVault { kept, state, runtime });
    }

    /// From now on callers log in at this address.
    pub(crate) fn serve_at(&self, address: &str) {
        let _ = self.address.set(address.to_owned());
    }

    /// The key that seals them, and what browsers carry.
    pub(super) fn key(&self) -> Result<&StateKey, LoginError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = match &self.key_source {
            None => store::own_key(&self.state)?,
            Some(source) => {
                let (text, shown) = secrets::text(source, &self.folder).map_err(LoginError::Secret)?;
                StateKey::of(text.as_bytes()).map_err(|weak| LoginError::Store(format!("{shown}: {weak}")))?
            }
        };
        Ok(self.key.get_or_init(|| key))
    }

    fn vault(&self, login: &str, caller: &str) -> Result<Vault, LoginError> {
        let key = self.key()?.clone();
        let sealed = SealedFor { key, login: login.to_owned(), caller: caller.to_owned() };
        Ok(match self.shared.get() {
            None => Vault::File(RecordPlace::of_caller(&self.state, sealed)),
            Some(vault) => Vault::Shared(SharedRecord { vault: vault.clone(), sealed }),
        })
    }

    /// The caller's login.
    fn of(&self, policy: &Arc<LoginPolicy>, caller: &str) -> Result<Arc<Login>, LoginError> {
        let name = (policy.name().to_owned(), caller.to_owned());
        let mut held = self.held.lock();
        held.uses += 1;
        let used = held.uses;
        if let Some(found) = held.logins.get_mut(&name).filter(|found| found.policy == *policy) {
            found.used = used;
            return Ok(Arc::clone(&found.login));
        }
        let login = Login::of_caller(policy, &self.folder, caller, self.vault(policy.name(), caller)?);
        let found = HeldLogin { policy: Arc::clone(policy), login: Arc::clone(&login), used };
        held.logins.insert(name, found);
        if held.logins.len() > HELD_MAX {
            let oldest = held.logins.iter().min_by_key(|(_, held)| held.used).map(|(name, _)| name.clone());
            oldest.iter().for_each(|name| drop(held.logins.remove(name)));
        }
        Ok(login)
    }

    /// What the caller's login needs. Refreshes its token where that is due.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn need(&self, policy: &Arc<LoginPolicy>, caller: &Caller) -> Result<LoginNeed, LoginError> {
        if policy.uses_callers_token() {
            let Some(shown) = self.shown(policy, caller) else { return Ok(LoginNeed::Token) };
            return Ok(match policy.passthrough() {
                Some(_) => LoginNeed::Nothing(Arc::new(PassedSecret(shown))),
                None => self.exchanged(policy, caller, &shown).await,
            });
        }
        let caller = caller.name();
        let login = self.of(policy, caller)?;
        Ok(match login.lacks().await {
            Lacks::Nothing => LoginNeed::Nothing(Arc::new(SharedLogin(login))),
            Lacks::Person => LoginNeed::Person,
            Lacks::Server => LoginNeed::Server,
        })
    }

    /// The token that this caller shows, if the login's issuer gave it.
    fn shown(&self, policy: &LoginPolicy, caller: &Caller) -> Option<Presented> {
        let presented = self.presented.get()?;
        presented.need();
        presented.of(caller).filter(|shown| policy.issuer() == Some(shown.issuer.as_str()))
    }

    /// The exchange of a caller's token. It goes to the issuer that gave it, and nowhere else.
    async fn exchanged(&self, policy: &Arc<LoginPolicy>, caller: &Caller, shown: &Presented) -> LoginNeed {
        let exchange = self.exchange(policy, caller, shown);
        let secret = ExchangedSecret(exchange);
        match secret.value().await {
            Ok(_) => LoginNeed::Nothing(Arc::new(secret)),
            Err(NoValue) => LoginNeed::Server,
        }
    }

    fn exchange(&self, policy: &Arc<LoginPolicy>, caller: &Caller, shown: &Presented) -> Arc<Exchange> {
        let name = (policy.name().to_owned(), ComponentDigest::of(shown.token.as_bytes()));
        let mut exchanges = self.exchanges.lock();
        if let Some(held) = exchanges.get(&name).filter(|held| held.policy == *policy) {
            return Arc::clone(&held.exchange);
        }
        let now = SystemTime::now();
        exchanges.retain(|_, held| now < held.until);
        if exchanges.len() >= HELD_MAX {
            // Each is made again by the next call that needs it.
            exchanges.clear();
        }
        let exchange = Arc::new(Exchange::new(policy, self.folder.clone(), caller.name(), &shown.token));
        let held = HeldExchange { policy: Arc::clone(policy), until: shown.until, exchange: Arc::clone(&exchange) };
        exchanges.insert(name, held);
        exchange
    }

    /// The address at which a caller logs in; `None` if this process serves no pages.
    ///
    /// # Errors
    /// There is no key, or the caller's name is too long.
    pub(crate) fn address(&self, subject: &TicketSubject<'_>) -> Result<Option<String>, LoginError> {
        let Some(address) = self.address.get() else { return Ok(None) };
        let ticket = LoginTicket::new(subject).sealed(self.key()?);
        let ticket = ticket.ok_or_else(|| LoginError::Random("the address cannot be sealed".to_owned()))?;
        Ok(Some(format!("{address}/begin?ticket={ticket}")))
    }

    /// Begins a login whose tokens are kept for this caller.
    ///
    /// # Errors
    /// Each step has its [`LoginError`].
    pub async fn begin<'a, S: super::SendRequest>(
        &self,
        policy: &'a Arc<LoginPolicy>,
        caller: &str,
        send: S,
    ) -> Result<NewLogin<'a, S>, LoginError> {
        if policy.uses_callers_token() {
            return Err(LoginError::CallersToken);
        }
        NewLogin::begin_in(policy, &self.folder, &self.vault(policy.name(), caller)?, send).await
    }

    /// Keeps a key that this caller pasted. The browser with this mark may end it.
    ///
    /// # Errors
    /// The key cannot be a secret's value, or the store cannot be used.
    pub async fn paste(
        &self,
        policy: &Arc<LoginPolicy>,
        caller: &str,
        key: Zeroizing<String>,
        mark: Option<&str>,
    ) -> Result<(), LoginError> {
        SecretValue::new(key.clone()).map_err(|problem| LoginError::Redirect(format!("the key {problem}")))?;
        let record = Record::of_pasted(policy, &key, std::time::SystemTime::now()).marked(mark);
        let vault = self.vault(policy.name(), caller)?.open()?;
        let lock = vault.lock().await?;
        let written = lock.write(None, &record).await;
        lock.release().await;
        self.forget(policy.name(), caller);
        written
    }

    /// The caller's login was made here: its calls look again.
    pub(super) fn was_made(&self, policy: &LoginPolicy, caller: &str) {
        self.forget(policy.name(), caller);
    }

    fn forget(&self, login: &str, caller: &str) {
        let held = self.held.lock();
        let found = held.logins.get(&(login.to_owned(), caller.to_owned()));
        found.iter().for_each(|held| held.login.has_changed());
    }

    /// All logins of callers that there are of these.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn list(&self, logins: &[Arc<LoginPolicy>]) -> Result<Vec<ListedLogin>, LoginError> {
        let mut found = match self.shared.get() {
            // No key is made where there is nothing to open with it.
            None if !store::has_callers(&self.state) => Vec::new(),
            None => store::of_callers(&self.state, self.key()?)?,
            Some(shared) => {
                let names: BTreeSet<&str> = logins.iter().map(|login| login.name()).collect();
                shared.all(self.key()?, &names).await?
            }
        };
        found.sort_by(|one, other| (&one.login, &one.caller).cmp(&(&other.login, &other.caller)));
        let listed = |found: CallerRecord| {
            let CallerRecord { login, caller, record } = found;
            ListedLogin { login, caller, record }
        };
        Ok(found.into_iter().map(listed).collect())
    }

    /// Removes the caller's login, and takes its tokens back where the server offers that. False if
    /// there was none; the second value says why the server did not take them back.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn revoke(
        &self,
        policy: &Arc<LoginPolicy>,
        caller: &str,
    ) -> Result<(bool, Option<LoginError>), LoginError> {
        self.revoke_marked(policy, caller, None).await
    }

    /// As [`revoke`](Self::revoke). With a mark, only the login that has it is revoked.
    pub(super) async fn revoke_marked(
        &self,
        policy: &Arc<LoginPolicy>,
        caller: &str,
        mark: Option<&str>,
    ) -> Result<(bool, Option<LoginError>), LoginError> {
        let vault = self.vault(policy.name(), caller)?;
        let revoked = log_out_of(policy, &self.folder, &vault, mark, &client(policy)?).await;
        self.forget(policy.name(), caller);
        revoked
    }

    /// Removes a login that the manifest no longer has. False if there was none. Its server is not
    /// told: the manifest does not say how.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn remove(&self, login: &str, caller: &str) -> Result<bool, LoginError> {
        let vault = self.vault(login, caller)?.open()?;
        let lock = vault.lock().await?;
        // One that cannot be read is removed as well.
        let there = !matches!(lock.read().await, Ok(None));
        let removed = lock.remove().await;
        lock.release().await;
        self.forget(login, caller);
        removed.map(|()| there)
    }
}
