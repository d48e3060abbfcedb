//! Tokens that callers showed, exchanged for tokens of an API (RFC 8693), or passed on. They are
//! kept in memory alone: with the caller's next token the exchange is made again.
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use toolcell_policy::LoginPolicy;
use toolcell_sandbox::{LiveSecret, NoValue, SecretValue, ValueInTime};
use zeroize::Zeroizing;

use super::client::client;
use super::endpoints::{Client, Endpoints};
use super::error::LoginError;
use super::token::{Tokens, purpose};
use crate::identity::Presented;

/// The grant of an exchange, and the kind of both tokens.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Tokens that are looked for in what servers send back: the newest, and the one before.
const KNOWN_MAX: usize = 2;

/// Time after which a token without an end is exchanged again.
const LIFE_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// Time after an exchange that failed before the next one.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The exchange of one token of a caller.
pub(super) struct Exchange {
    policy: Arc<LoginPolicy>,
    /// The manifest's folder.
    folder: PathBuf,
    /// The caller, for the log.
    caller: String,
    /// The caller's token.
    subject: Zeroizing<String>,
    /// Held while the issuer is asked.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<ExchangeState>,
    version: AtomicU64,
}

#[derive(Default)]
struct ExchangeState {
    /// The newest first.
    values: VecDeque<SecretValue>,
    /// When the newest is exchanged again.
    renew_at: Option<SystemTime>,
    /// No attempt before this time.
    retry_at: Option<SystemTime>,
}

impl Exchange {
    pub(super) fn new(policy: &Arc<LoginPolicy>, folder: PathBuf, caller: &str, subject: &str) -> Self {
        Self {
            policy: Arc::clone(policy),
            folder,
            caller: caller.to_owned(),
            subject: Zeroizing::new(subject.to_owned()),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            version: AtomicU64::new(0),
        }
    }

    /// The token, or that there is none, if that is known without asking.
    fn at_once(&self) -> Option<Result<SecretValue, NoValue>> {
        let state = self.state.lock();
        let now = SystemTime::now();
        if state.renew_at.is_some_and(|at| now < at) {
            return state.values.front().cloned().map(Ok);
        }
        state.retry_at.is_some_and(|at| now < at).then_some(Err(NoValue))
    }

    async fn exchange(&self) -> Result<SecretValue, NoValue> {
        // All calls wait for one exchange.
        let _turn = self.turn.lock().await;
        if let Some(value) = self.at_once() {
            return value;
        }
        let now = SystemTime::now();
        match self.ask(now).await {
            Ok((value, tokens)) => {
                let life = tokens.until.and_then(|until| until.duration_since(now).ok()).unwrap_or(LIFE_DEFAULT);
                let early = self.policy.limits().early().min(life / 2);
                let mut state = self.state.lock();
                (state.renew_at, state.retry_at) = (now.checked_add(life - early), None);
                if state.values.front() != Some(&value) {
                    state.values.push_front(value.clone());
                    state.values.truncate(KNOWN_MAX);
                    self.version.fetch_add(1, Ordering::Release);
                }
                Ok(value)
            }
            Err(error) => {
                let name = self.policy.name();
                tracing::warn!("the token of {:?} is not exchanged for {name:?}: {error}", self.caller);
                let mut state = self.state.lock();
                (state.renew_at, state.retry_at) = (None, now.checked_add(RETRY_AFTER));
                Err(NoValue)
            }
        }
    }

    async fn ask(&self, now: SystemTime) -> Result<(SecretValue, Tokens), LoginError> {
        let policy = &self.policy;
        let send = client(policy)?;
        let client = Client::read(policy, &self.folder)?;
        let endpoints = Endpoints::find(policy, &send).await?;
        let scopes = policy.scopes().join(" ");
        let mut form = vec![
            ("grant_type", GRANT),
            ("subject_token", self.subject.as_str()),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ];
        form.extend((!scopes.is_empty()).then_some(("scope", scopes.as_str())));
        form.extend(purpose(policy));
        let tokens = endpoints.at_token(&client).tokens(form, now, &send).await?;
        if tokens.access.as_str() == self.subject.as_str() {
            let problem = "it gave the caller's own token back, which goes nowhere";
            return Err(LoginError::answer(&endpoints.token, problem));
        }
        let wrong = |problem| LoginError::answer(&endpoints.token, format!("its token {problem}"));
        let value = SecretValue::new(tokens.access.clone()).map_err(wrong)?;
        Ok((value, tokens))
    }
}

/// An exchange as a secret.
pub(super) struct ExchangedSecret(pub(super) Arc<Exchange>);

impl LiveSecret for ExchangedSecret {
    fn value(&self) -> ValueInTime<'_> {
        Box::pin(async move {
            match self.0.at_once() {
                Some(value) => value,
                None => self.0.exchange().await,
            }
        })
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    fn known(&self) -> Vec<SecretValue> {
        self.0.state.lock().values.iter().cloned().collect()
    }

    fn lack(&self) -> Option<String> {
        None
    }
}

/// A caller's own token as a secret, where a login passes it on.
pub(super) struct PassedSecret(pub(super) Presented);

impl PassedSecret {
    fn token(&self) -> Result<SecretValue, NoValue> {
        SecretValue::new(self.0.token.clone()).map_err(|_| NoValue)
    }
}

impl LiveSecret for PassedSecret {
    fn value(&self) -> ValueInTime<'_> {
        Box::pin(async move { if SystemTime::now() < self.0.until { self.token() } else { Err(NoValue) } })
    }

    fn version(&self) -> u64 {
        0
    }

    fn known(&self) -> Vec<SecretValue> {
        self.token().into_iter().collect()
    }

    fn lack(&self) -> Option<String> {
        None
    }
}
