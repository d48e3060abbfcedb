//! A login as a secret that changes: its access token at the moment of a request.
//!
//! A token that holds is given at once. Otherwise one thread for each login looks at the store and
//! asks the server, and all requests wait for it. It belongs to no call: a call that ends would
//! lose the new refresh token.
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use toolcell_policy::LoginPolicy;
use toolcell_sandbox::{LiveSecret, NoValue, SecretValue, ValueInTime};

use super::client::client;
use super::error::LoginError;
use super::refresh::{NotRenewed, Plan, Renewed, renew};
use super::state::state;
use super::store::RecordPlace;
use super::vault::Vault;
use crate::files::file::absolute;
use crate::identity::flight::{Flight, FlightThread};
use crate::machine::shell;

/// Access tokens that are looked for in what servers send back: the newest, and those before it
/// that a slow answer may still hold.
const KNOWN_MAX: usize = 4;

/// Time between two polls of the file of a login whose token holds: a person who logs in anew, or
/// out, is noticed within it.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Time after a refresh that failed before the next one: a server that is down is not pressed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Time at the end of a process for a refresh to end: as much as its request may take, and its
/// file.
pub const FINISHED_WITHIN: Duration = Duration::from_secs(20);

/// The thread that refreshes: its stack has TLS, and no guest.
const THREAD: FlightThread = FlightThread { name: "toolcell-login", stack_bytes: 1 << 20 };

/// Logins of this process. Those of one file share one, so that they share its refresh.
static LOGINS: Mutex<Vec<Weak<Login>>> = Mutex::new(Vec::new());

/// Refreshes that run.
static REFRESHES: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// One login, as the requests of this process use it.
pub(super) struct Login {
    policy: Arc<LoginPolicy>,
    /// The manifest's folder.
    folder: PathBuf,
    /// The folder of states.
    state: PathBuf,
    vault: Vault,
    /// Its file, if it has one.
    path: Option<PathBuf>,
    /// Whose it is; none if all callers share it.
    caller: Option<Arc<str>>,
    known: Mutex<LoginToken>,
    version: AtomicU64,
    flight: Flight,
}

#[derive(Default)]
struct LoginToken {
    /// The last look at the file, and what was found.
    last: Option<TokenRead>,
    looked: Option<Instant>,
    /// No refresh before this time.
    retry_at: Option<Instant>,
    /// The newest first.
    values: VecDeque<SecretValue>,
    /// The problem that was reported to the operator.
    said: Option<String>,
}

/// The use of a file, as it looked then.
struct TokenRead {
    stamp: Option<TokenStamp>,
    token: Option<Token>,
}

struct Token {
    value: SecretValue,
    renew_at: Option<SystemTime>,
    until: Option<SystemTime>,
}

/// The look of a file: device, inode, length, and the times of its content and of its attributes.
type TokenStamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// The login as a secret. Relative paths start from `folder`.
#[must_use]
pub fn live(policy: &Arc<LoginPolicy>, folder: &Path, state: &Path) -> Arc<dyn LiveSecret> {
    let folder = absolute(folder);
    let state = absolute(state);
    let place = RecordPlace::shared(&state, policy.name());
    let path = Some(place.path());
    let mut logins = LOGINS.lock();
    logins.retain(|login| login.strong_count() > 0);
    let is_it = |login: &Arc<Login>| login.path == path && login.folder == folder && login.policy == *policy;
    if let Some(login) = logins.iter().filter_map(Weak::upgrade).find(is_it) {
        return Arc::new(SharedLogin(login));
    }
    let login = Arc::new(Login {
        policy: Arc::clone(policy),
        folder,
        state,
        path,
        vault: Vault::File(place),
        caller: None,
        known: Mutex::default(),
        version: AtomicU64::new(0),
        flight: Flight::default(),
    });
    logins.push(Arc::downgrade(&login));
    Arc::new(SharedLogin(login))
}

/// What a caller's login lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// Nothing: requests get a token.
    Nothing,
    /// A person: the caller never logged in, or the login has ended.
    Person,
    /// Its server, which gives no token now.
    Server,
}

/// The logins that this process uses, with their states, as JSON.
#[must_use]
pub fn in_use() -> Vec<serde_json::Value> {
    let logins: Vec<Arc<Login>> = LOGINS.lock().iter().filter_map(Weak::upgrade).collect();
    logins.iter().map(|login| state(&login.policy, &login.state).to_json(&login.policy)).collect()
}

/// The problems that logins of this process have now, each in one sentence without a full stop: for
/// commands that keep no log.
#[must_use]
pub fn problems() -> Vec<String> {
    let logins = LOGINS.lock();
    let said =
        |login: Arc<Login>| Some(format!("the login {:?}: {}", login.policy.name(), login.known.lock().said.clone()?));
    logins.iter().filter_map(Weak::upgrade).filter_map(said).collect()
}

/// Waits until no refresh runs, or this long: a process that ended meanwhile would lose the tokens
/// that are under way.
pub fn finish(within: Duration) {
    let (running, ended) = &REFRESHES;
    ended.wait_while_for(&mut running.lock(), |running| *running > 0, within);
}

/// Counts a refresh while it runs.
struct RunningRefresh;

impl RunningRefresh {
    fn begin() -> Self {
        *REFRESHES.0.lock() += 1;
        Self
    }
}

impl Drop for RunningRefresh {
    fn drop(&mut self) {
        let (running, ended) = &REFRESHES;
        *running.lock() -= 1;
        ended.notify_all();
    }
}

/// A login that other tools have too.
pub(super) struct SharedLogin(pub(super) Arc<Login>);

impl LiveSecret for SharedLogin {
    fn value(&self) -> ValueInTime<'_> {
        Box::pin(async move {
            if let Some(value) = self.0.at_once() {
                return value;
            }
            let login = Arc::clone(&self.0);
            let running = RunningRefresh::begin();
            let renew = move || {
                let _running = running;
                login.renew()
            };
            self.0.flight.value(THREAD, renew).await
        })
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    fn known(&self) -> Vec<SecretValue> {
        self.0.known.lock().values.iter().cloned().collect()
    }

    fn lack(&self) -> Option<String> {
        let state = state(&self.0.policy, &self.0.state);
        let lack = || format!("{state}; run: toolcell secret login {}", self.0.policy.name());
        (!state.is_logged_in()).then(|| shell::named(&lack()).into_owned())
    }
}

impl Login {
    /// That of one caller, whose record is in this vault.
    pub(super) fn of_caller(policy: &Arc<LoginPolicy>, folder: &Path, caller: &str, vault: Vault) -> Arc<Self> {
        let path = match &vault {
            Vault::File(place) => Some(place.path()),
            Vault::Shared(_) => None,
        };
        Arc::new(Self {
            policy: Arc::clone(policy),
            folder: folder.to_owned(),
            state: PathBuf::new(),
            vault,
            path,
            caller: Some(caller.into()),
            known: Mutex::default(),
            version: AtomicU64::new(0),
            flight: Flight::default(),
        })
    }

    /// What it lacks now. Asks its server for a new token where that is due.
    pub(super) async fn lacks(self: &Arc<Self>) -> Lacks {
        if SharedLogin(Arc::clone(self)).value().await.is_ok() {
            return Lacks::Nothing;
        }
        let known = self.known.lock();
        // Without a time to try again, only a person helps.
        if known.retry_at.is_some() { Lacks::Server } else { Lacks::Person }
    }

    /// Its record was changed here: the next request looks again.
    pub(super) fn has_changed(&self) {
        let mut known = self.known.lock();
        (known.last, known.retry_at, known.looked) = (None, None, None);
    }

    /// Time between two polls of its record while its token holds. A stamp of a file is taken in a
    /// microsecond, so a caller's revoked login ends with the next request.
    fn poll_every(&self) -> Duration {
        if self.caller.is_some() && self.path.is_some() { Duration::ZERO } else { POLL_EVERY }
    }

    /// The stamp of its file now; `None` if it does not exist, or has none.
    fn stamp(&self) -> Option<TokenStamp> {
        stamp(self.path.as_ref()?)
    }

    /// The token, or that it is missing, if that is known without waiting.
    fn at_once(&self) -> Option<Result<SecretValue, NoValue>> {
        let mut known = self.known.lock();
        let is_due = known.looked.is_none_or(|looked| looked.elapsed() >= self.poll_every());
        let has_token = known.last.as_ref().is_some_and(|last| last.token.is_some());
        if is_due || !has_token {
            known.looked = Some(Instant::now());
            let may_differ = match (&known.last, &self.path) {
                (None, _) => false,
                (Some(last), Some(path)) => last.stamp != stamp(path),
                // A record on a server is read again, unless that failed just now.
                (Some(_), None) => known.retry_at.is_none(),
            };
            if may_differ {
                (known.last, known.retry_at) = (None, None);
            }
        }
        let waits = known.retry_at.is_some_and(|at| Instant::now() < at);
        let Some(token) = &known.last.as_ref()?.token else {
            // Without a time to try again, only a change of the file helps.
            return (waits || known.retry_at.is_none()).then_some(Err(NoValue));
        };
        let now = SystemTime::now();
        let before = |time: Option<SystemTime>| time.is_none_or(|time| now < time);
        if before(token.renew_at) || (waits && before(token.until)) {
            return Some(Ok(token.value.clone()));
        }
        waits.then_some(Err(NoValue))
    }

    /// Looks at the store, and refreshes the token where that is due.
    fn renew(&self) -> Result<SecretValue, NoValue> {
        // Before it is read: a file that changes meanwhile looks otherwise the next time.
        let before = self.stamp();
        let renewing = renew(&self.policy, &self.folder, &self.vault, || client(&self.policy));
        let renewed = match &self.vault {
            Vault::Shared(shared) => shared.vault.runtime.block_on(renewing),
            Vault::File(_) => match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(renewing),
                Err(error) => Err(NotRenewed::Failed(LoginError::Store(error.to_string()))),
            },
        };
        let mut known = self.known.lock();
        match renewed {
            Ok(Renewed { record, is_new, failed }) => {
                if is_new {
                    tracing::info!("the login {} was refreshed", self.shown());
                }
                let Some(value) = record.value() else { return Err(NoValue) };
                // After a refresh the file is this process's own, or a newer one.
                let stamp = self.stamp();
                let token = Token {
                    value: value.clone(),
                    renew_at: if record.refreshes() {
                        record.renew_at(self.policy.limits().early())
                    } else {
                        record.until()
                    },
                    until: record.until(),
                };
                known.last = Some(TokenRead { stamp, token: Some(token) });
                known.retry_at = failed.is_some().then(|| Instant::now() + RETRY_AFTER);
                match (failed, record.ended()) {
                    (Some(error), _) => self.report(&mut known, &format!("the token is not refreshed: {error}")),
                    (None, Some(reason)) => {
                        let problem = format!("the present token is the last: {reason}; {}", self.advice());
                        self.report(&mut known, &problem);
                    }
                    (None, None) if known.said.take().is_some() => {
                        tracing::info!("the login {} works again", self.shown());
                    }
                    (None, None) => {}
                }
                self.learn(&mut known, &value);
                Ok(value)
            }
            Err(NotRenewed::Nothing(plan)) => {
                // What was written here, such as that the login has ended, does not count as a
                // change.
                let found = if matches!(plan, Plan::Ended(_)) { self.stamp() } else { before };
                known.last = Some(TokenRead { stamp: found, token: None });
                known.retry_at = None;
                if self.caller.is_some() && !matches!(plan, Plan::Ended(_)) {
                    // The caller is asked to log in: nothing is wrong.
                    return Err(NoValue);
                }
                let problem = match plan {
                    Plan::Other => "it was made for another server, client or scope than the manifest's".to_owned(),
                    Plan::Ended(reason) => format!("it has ended: {reason}"),
                    _ => "nobody is logged in".to_owned(),
                };
                self.report(&mut known, &format!("{problem}; {}", self.advice()));
                Err(NoValue)
            }
            Err(NotRenewed::Failed(error)) => {
                known.retry_at = Some(Instant::now() + RETRY_AFTER);
                known.last = Some(TokenRead { stamp: before, token: None });
                self.report(&mut known, &format!("there is no token: {error}"));
                Err(NoValue)
            }
        }
    }

    fn advice(&self) -> String {
        match &self.caller {
            None => format!("run: toolcell secret login {}", self.policy.name()),
            Some(_) => "the next call asks for a new one".to_owned(),
        }
    }

    /// Its name for the log, and whose it is.
    fn shown(&self) -> String {
        match &self.caller {
            None => format!("{:?}", self.policy.name()),
            Some(caller) => format!("{:?} of {caller:?}", self.policy.name()),
        }
    }

    /// From now on the value is looked for.
    fn learn(&self, known: &mut LoginToken, value: &SecretValue) {
        if known.values.front() == Some(value) {
            return;
        }
        known.values.retain(|known| known != value);
        known.values.push_front(value.clone());
        known.values.truncate(KNOWN_MAX);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Tells the operator, once for each problem.
    fn report(&self, known: &mut LoginToken, problem: &str) {
        if known.said.as_deref() != Some(problem) {
            tracing::warn!("the login {}: {}", self.shown(), shell::named(problem));
            known.said = Some(problem.to_owned());
        }
    }
}

/// The stamp of a file now; `None` if it does not exist.
fn stamp(path: &Path) -> Option<TokenStamp> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.len(),
        (found.mtime(), found.mtime_nsec()),
        (found.ctime(), found.ctime_nsec()),
    ))
}
