//! The keys of one issuer while it serves: fetched when they are needed, kept for a while, fetched again when they are old
//! or a token names another one, and kept for longer where the issuer gives none. Must not hold: how they are fetched.
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use toolcell_mcp::http::oauth::KeySet;
use toolcell_policy::IssuerPolicy;

use super::fetch::Fetcher;

/// Keys as they were fetched once.
pub struct Fetched {
    set: KeySet,
    at: Instant,
}

impl Fetched {
    /// The keys.
    pub fn set(&self) -> &KeySet {
        &self.set
    }
}

/// What there is beyond the keys that are known.
pub enum Newer {
    /// These.
    Keys(Arc<Fetched>),
    /// Nothing: the issuer was asked a moment ago.
    None,
    /// Nobody knows: the issuer gives none.
    Unreachable,
}

/// The keys of one issuer.
pub struct Keys {
    issuer: String,
    jwks: Option<String>,
    fetcher: Fetcher,
    fresh: Duration,
    refresh: Duration,
    outage: Duration,
    known: ArcSwapOption<Fetched>,
    tried: Mutex<Option<Tried>>,
}

/// The last fetch.
struct Tried {
    at: Instant,
    failed: bool,
}

impl Keys {
    pub fn new(issuer: &IssuerPolicy, fetcher: Fetcher) -> Arc<Self> {
        Arc::new(Self {
            issuer: issuer.issuer().to_owned(),
            jwks: issuer.jwks().map(str::to_owned),
            fetcher,
            fresh: issuer.limits().fresh(),
            // Keys that are old are fetched again, however seldom others may be.
            refresh: issuer.limits().refresh().min(issuer.limits().fresh()),
            outage: issuer.limits().outage(),
            known: ArcSwapOption::empty(),
            tried: Mutex::default(),
        })
    }

    /// The keys to check with; nothing where there are none, or what is known is too old.
    pub async fn current(self: &Arc<Self>) -> Option<Arc<Fetched>> {
        let known = self.known.load_full();
        let age = known.as_ref().map(|known| known.at.elapsed());
        match (known, age) {
            (Some(known), Some(age)) if age <= self.fresh => Some(known),
            (Some(known), Some(age)) if age <= self.fresh.saturating_add(self.outage) => {
                // Callers go on with what is known meanwhile. One fetch at a time is enough.
                let may_ask =
                    |tried: &Option<Tried>| tried.as_ref().is_none_or(|last| last.at.elapsed() >= self.refresh);
                if self.tried.try_lock().is_ok_and(|tried| may_ask(&tried)) {
                    drop(self.ask(Some(Arc::clone(&known))));
                }
                Some(known)
            }
            (known, _) => match self.ask(known).await {
                Ok(Newer::Keys(keys)) => Some(keys),
                _ => None,
            },
        }
    }

    /// Keys that are newer than these, if the issuer has any.
    pub async fn newer_than(self: &Arc<Self>, keys: &Arc<Fetched>) -> Newer {
        self.ask(Some(Arc::clone(keys))).await.unwrap_or(Newer::Unreachable)
    }

    /// Asks on a task of its own: a client that goes away does not end what others wait for.
    fn ask(self: &Arc<Self>, known: Option<Arc<Fetched>>) -> tokio::task::JoinHandle<Newer> {
        let this = Arc::clone(self);
        tokio::spawn(async move { this.ask_in_turn(known).await })
    }

    async fn ask_in_turn(&self, known: Option<Arc<Fetched>>) -> Newer {
        let mut tried = self.tried.lock().await;
        if let Some(newer) = self.known.load_full().filter(|newer| !is_same(Some(newer), known.as_ref())) {
            return Newer::Keys(newer);
        }
        if let Some(last) = tried.as_ref().filter(|last| last.at.elapsed() < self.refresh) {
            return if last.failed { Newer::Unreachable } else { Newer::None };
        }
        let failed_before = tried.as_ref().is_some_and(|last| last.failed);
        let fetched = self.fetch().await;
        *tried = Some(Tried { at: Instant::now(), failed: fetched.is_err() });
        match fetched {
            Ok(set) => {
                if failed_before {
                    tracing::info!("the keys of {} can be had again", self.issuer);
                }
                let keys = Arc::new(Fetched { set, at: Instant::now() });
                self.known.store(Some(Arc::clone(&keys)));
                Newer::Keys(keys)
            }
            Err(problem) => {
                tracing::warn!("the keys of {} cannot be had: {problem}", self.issuer);
                Newer::Unreachable
            }
        }
    }

    /// `Err` is one sentence.
    async fn fetch(&self) -> Result<KeySet, String> {
        let address = match &self.jwks {
            Some(address) => address.clone(),
            None => self.fetcher.keys_of(&self.issuer).await?,
        };
        let text = self.fetcher.text(&address).await?;
        KeySet::parse(&text).map_err(|error| format!("{address}: {error}"))
    }
}

fn is_same(one: Option<&Arc<Fetched>>, other: Option<&Arc<Fetched>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}
