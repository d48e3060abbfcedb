//! Keys of one issuer. They are fetched on first use, and again when they are old or a token names
//! an unknown key. Old keys stay in use while the issuer does not respond.
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;
use toolcell_mcp::http::oauth::KeySet;
use toolcell_policy::IssuerPolicy;

use super::fetch::Fetcher;

/// Keys of one fetch.
pub struct FetchedKeys {
    /// The keys.
    pub set: KeySet,
    at: Instant,
}

/// Result of asking for newer keys.
pub enum NewerKeys {
    /// Newer keys.
    Keys(Arc<FetchedKeys>),
    /// None: the issuer was asked only a moment ago.
    None,
    /// Unknown: the issuer does not respond.
    Unreachable,
}

/// Keys of one issuer.
pub struct IssuerKeys {
    issuer: String,
    jwks: Option<String>,
    fetcher: Fetcher,
    fresh: Duration,
    refresh: Duration,
    outage: Duration,
    known: ArcSwapOption<FetchedKeys>,
    tried: Mutex<Option<LastFetch>>,
}

/// The last fetch.
struct LastFetch {
    at: Instant,
    failed: bool,
}

impl IssuerKeys {
    pub fn new(issuer: &IssuerPolicy, fetcher: Fetcher) -> Arc<Self> {
        Arc::new(Self {
            issuer: issuer.issuer().to_owned(),
            jwks: issuer.jwks().map(str::to_owned),
            fetcher,
            fresh: issuer.limits().fresh(),
            // Old keys are refreshed in time, even if other fetches are rarer.
            refresh: issuer.limits().refresh().min(issuer.limits().fresh()),
            outage: issuer.limits().outage(),
            known: ArcSwapOption::empty(),
            tried: Mutex::default(),
        })
    }

    /// Keys to verify with; `None` if they are missing or too old.
    pub async fn current(self: &Arc<Self>) -> Option<Arc<FetchedKeys>> {
        let known = self.known.load_full();
        let age = known.as_ref().map(|known| known.at.elapsed());
        match (known, age) {
            (Some(known), Some(age)) if age <= self.fresh => Some(known),
            (Some(known), Some(age)) if age <= self.fresh.saturating_add(self.outage) => {
                // Callers continue with the known keys meanwhile. One fetch at a time is enough.
                let may_ask =
                    |tried: &Option<LastFetch>| tried.as_ref().is_none_or(|last| last.at.elapsed() >= self.refresh);
                if self.tried.try_lock().is_ok_and(|tried| may_ask(&tried)) {
                    drop(self.ask(Some(Arc::clone(&known))));
                }
                Some(known)
            }
            (known, _) => match self.ask(known).await {
                Ok(NewerKeys::Keys(keys)) => Some(keys),
                _ => None,
            },
        }
    }

    /// Keys newer than these, if the issuer has any.
    pub async fn newer_than(self: &Arc<Self>, keys: &Arc<FetchedKeys>) -> NewerKeys {
        self.ask(Some(Arc::clone(keys))).await.unwrap_or(NewerKeys::Unreachable)
    }

    /// Fetches on a task of its own, so that a client that disconnects does not cancel a fetch that
    /// others wait for.
    fn ask(self: &Arc<Self>, known: Option<Arc<FetchedKeys>>) -> tokio::task::JoinHandle<NewerKeys> {
        let this = Arc::clone(self);
        tokio::spawn(async move { this.ask_in_turn(known).await })
    }

    async fn ask_in_turn(&self, known: Option<Arc<FetchedKeys>>) -> NewerKeys {
        let mut tried = self.tried.lock().await;
        if let Some(newer) =
            self.known.load_full().filter(|newer| known.as_ref().is_none_or(|known| !Arc::ptr_eq(newer, known)))
        {
            return NewerKeys::Keys(newer);
        }
        if let Some(last) = tried.as_ref().filter(|last| last.at.elapsed() < self.refresh) {
            return if last.failed { NewerKeys::Unreachable } else { NewerKeys::None };
        }
        let failed_before = tried.as_ref().is_some_and(|last| last.failed);
        let fetched = self.fetch().await;
        *tried = Some(LastFetch { at: Instant::now(), failed: fetched.is_err() });
        match fetched {
            Ok(set) => {
                if failed_before {
                    tracing::info!("the keys of {} can be fetched again", self.issuer);
                }
                let keys = Arc::new(FetchedKeys { set, at: Instant::now() });
                self.known.store(Some(Arc::clone(&keys)));
                NewerKeys::Keys(keys)
            }
            Err(problem) => {
                tracing::warn!("the keys of {} cannot be fetched: {problem}", self.issuer);
                NewerKeys::Unreachable
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
