//! Callers with tokens of an issuer: which keys they are checked with, and what their names are. Must not hold: what a
//! token must say (that is the protocol's).
mod fetch;
mod keys;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use toolcell_mcp::Caller;
use toolcell_mcp::http::oauth::{Issuer, Resource, TokenFault, UnverifiedToken, Verified};
use toolcell_mcp::http::{Admitted, AuthFailure, CredentialValidity};
use toolcell_policy::{IssuerPolicy, OauthPolicy};
use toolcell_sandbox::Digest;

use fetch::Fetcher;
use keys::{Fetched, Keys, Newer};

/// Tokens whose check is remembered, about 300 bytes each. Past these, all are checked anew.
const REMEMBERED_MAX: usize = 10_000;

/// The latest moment that a token is taken to hold until, from now: clocks do not reach as far as some tokens say.
const HOLDS_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The issuers, and what is known of their tokens.
pub struct Oauth {
    resource: Resource,
    needed: Vec<String>,
    issuers: Vec<Known>,
    remembered: Mutex<HashMap<Digest, Remembered>>,
}

/// One issuer.
struct Known {
    name: String,
    rules: Issuer,
    keys: Arc<Keys>,
}

/// A token that was checked. It holds as long as nothing else is known of its issuer's keys.
#[derive(Clone)]
struct Remembered {
    keys: Arc<Fetched>,
    caller: Caller,
    until: SystemTime,
}

impl Oauth {
    /// Sets it up; nothing is fetched before a token comes. `scopes` are those that allow anything. `Err` is one sentence.
    pub fn new(policy: &OauthPolicy, scopes: &[&str]) -> Result<Self, String> {
        let addresses = policy.issuers().iter().flat_map(|issuer| [Some(issuer.issuer()), issuer.jwks()]);
        let fetcher = Fetcher::new(addresses.flatten())?;
        let issuers: Vec<&str> = policy.issuers().iter().map(IssuerPolicy::issuer).collect();
        let needed: Vec<&str> = policy.scopes().iter().map(String::as_str).collect();
        let resource = Resource::new(policy.resource(), &issuers, &needed, scopes)
            .ok_or_else(|| format!("{} is no address of a resource", policy.resource()))?;
        let known = policy.issuers().iter().map(|issuer| Known {
            name: issuer.name().to_owned(),
            rules: Issuer {
                issuer: issuer.issuer().to_owned(),
                audiences: issuer.audiences().to_vec(),
                algorithms: issuer.algorithms().to_vec(),
                leeway: issuer.limits().leeway(),
            },
            keys: Keys::new(issuer, fetcher.clone()),
        });
        Ok(Self { resource, needed: policy.scopes().to_vec(), issuers: known.collect(), remembered: Mutex::default() })
    }

    /// The server, as clients are told of it.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The caller who shows this token.
    pub async fn recognise(&self, token: &str) -> Result<Admitted, AuthFailure> {
        let refused = |fault| self.resource.unknown(Some(fault));
        let seen = UnverifiedToken::parse(token).map_err(refused)?;
        let issuer = self.issuers.iter().find(|known| known.rules.issuer == seen.issuer);
        let issuer = issuer.ok_or_else(|| refused(TokenFault::Issuer))?;
        let keys = issuer.keys.current().await.ok_or(AuthFailure::NotNow)?;
        let digest = Digest::of(token.as_bytes());
        if let Some(admitted) = self.remembered(&digest, &keys) {
            return Ok(admitted);
        }
        let (verified, keys) = issuer.verify(token, &seen, keys).await?.map_err(refused)?;
        if !self.needed.iter().all(|scope| verified.scopes.contains(scope)) {
            return Err(self.resource.insufficient());
        }
        let name = format!("{}:{}", issuer.name, verified.subject);
        let caller = Caller::new(&name, verified.scopes.iter().map(String::as_str));
        let ends = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(verified.expires))
            .and_then(|ends| ends.checked_add(issuer.rules.leeway));
        let latest = SystemTime::now() + HOLDS_MAX;
        let remembered = Remembered { keys, caller, until: ends.map_or(latest, |ends| ends.min(latest)) };
        let admitted = remembered.admitted();
        self.remember(digest, remembered);
        admitted.ok_or_else(|| refused(TokenFault::Expired))
    }

    fn remembered(&self, digest: &Digest, keys: &Arc<Fetched>) -> Option<Admitted> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered.get(digest).filter(|known| Arc::ptr_eq(&known.keys, keys))?;
        known.admitted()
    }

    fn remember(&self, digest: Digest, checked: Remembered) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(digest, checked);
    }
}

impl Remembered {
    /// Nothing where its time is over.
    fn admitted(&self) -> Option<Admitted> {
        let left = self.until.duration_since(SystemTime::now()).ok()?;
        let validity = CredentialValidity { until: Instant::now().checked_add(left), revoked: None };
        Some(Admitted { caller: self.caller.clone(), validity })
    }
}

impl Known {
    /// Checks a token; with newer keys, where it names one that is not known. The outer error is that there are none.
    async fn verify(
        &self,
        token: &str,
        seen: &UnverifiedToken,
        keys: Arc<Fetched>,
    ) -> Result<Result<(Verified, Arc<Fetched>), TokenFault>, AuthFailure> {
        match self.rules.verify(token, seen, keys.set()) {
            Ok(verified) => return Ok(Ok((verified, keys))),
            Err(TokenFault::Key) => {}
            Err(fault) => return Ok(Err(fault)),
        }
        match self.keys.newer_than(&keys).await {
            Newer::Keys(keys) => Ok(self.rules.verify(token, seen, keys.set()).map(|verified| (verified, keys))),
            Newer::None => Ok(Err(TokenFault::Key)),
            Newer::Unreachable => Err(AuthFailure::NotNow),
        }
    }
}
