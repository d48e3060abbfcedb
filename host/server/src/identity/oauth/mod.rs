//! Callers with tokens of an issuer: the keys to verify with, and the names of callers. Must not
//! hold: the claims of a token (see `toolcell_mcp`).
mod fetch;
mod keys;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use toolcell_mcp::Caller;
use toolcell_mcp::http::oauth::{Issuer, ProtectedResource, TokenFault, UnverifiedToken, VerifiedClaims};
use toolcell_mcp::http::{Admitted, AuthFailure, CredentialChecks, CredentialValidity};
use toolcell_policy::{IssuerPolicy, OauthPolicy};
use toolcell_sandbox::ComponentDigest;
use zeroize::Zeroizing;

use super::PresentedTokens;
use fetch::Fetcher;
use keys::{FetchedKeys, IssuerKeys, NewerKeys};

/// Verified tokens that are remembered, about 300 bytes each. When there are more, all are
/// forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// Longest time from now that a token counts as valid: some tokens name times that clocks cannot
/// represent.
const HOLDS_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The issuers with their keys and verified tokens.
pub struct Oauth {
    /// The protected resource as described to clients.
    pub resource: ProtectedResource,
    needed: Vec<String>,
    issuers: Vec<Arc<KnownIssuer>>,
    remembered: Mutex<HashMap<ComponentDigest, VerifiedToken>>,
    /// Tokens for their exchange.
    pub presented: Arc<PresentedTokens>,
}

/// One issuer.
struct KnownIssuer {
    name: String,
    rules: Issuer,
    keys: Arc<IssuerKeys>,
}

/// A token that is to be verified.
struct ShownToken {
    issuer: Arc<KnownIssuer>,
    text: Zeroizing<String>,
    seen: UnverifiedToken,
}

/// A verified token. Valid as long as the issuer's keys are those that it was verified with.
#[derive(Clone)]
struct VerifiedToken {
    keys: Arc<FetchedKeys>,
    caller: Caller,
    until: SystemTime,
}

impl Oauth {
    /// Prepares the issuers; nothing is fetched before the first token. `scopes` are those that
    /// rules name. `Err` is one sentence.
    pub fn new(policy: &OauthPolicy, scopes: &[&str]) -> Result<Self, String> {
        let addresses = policy.issuers().iter().flat_map(|issuer| [Some(issuer.issuer()), issuer.jwks()]);
        let fetcher = Fetcher::new(addresses.flatten())?;
        let issuers: Vec<&str> = policy.issuers().iter().map(IssuerPolicy::issuer).collect();
        let needed: Vec<&str> = policy.scopes().iter().map(String::as_str).collect();
        let resource = ProtectedResource::new(policy.resource(), &issuers, &needed, scopes)
            .ok_or_else(|| format!("{} is not the address of a resource", policy.resource()))?;
        let known = policy.issuers().iter().map(|issuer| {
            Arc::new(KnownIssuer {
                name: issuer.name().to_owned(),
                rules: Issuer {
                    issuer: issuer.issuer().to_owned(),
                    audiences: issuer.audiences().to_vec(),
                    algorithms: issuer.algorithms().to_vec(),
                    leeway: issuer.limits().leeway(),
                },
                keys: IssuerKeys::new(issuer, fetcher.clone()),
            })
        });
        Ok(Self {
            resource,
            needed: policy.scopes().to_vec(),
            issuers: known.collect(),
            remembered: Mutex::default(),
            presented: Arc::default(),
        })
    }

    /// The caller with this token. `checks` check its signature, or else this thread does. A token
    /// that was verified before is remembered.
    pub async fn authenticate(&self, token: &str, checks: Option<&CredentialChecks>) -> Result<Admitted, AuthFailure> {
        let refused = |fault| self.resource.unknown(Some(fault));
        let seen = UnverifiedToken::parse(token).map_err(refused)?;
        let issuer = self.issuers.iter().find(|known| known.rules.issuer == seen.issuer);
        let issuer = issuer.ok_or_else(|| refused(TokenFault::Issuer))?;
        let keys = issuer.keys.current().await.ok_or(AuthFailure::NotNow)?;
        let digest = ComponentDigest::of(token.as_bytes());
        if let Some((admitted, until)) = self.remembered(&digest, &keys) {
            self.presented.keep(&admitted.caller, &issuer.rules.issuer, token, until);
            return Ok(admitted);
        }
        let shown = Arc::new(ShownToken { issuer: Arc::clone(issuer), text: Zeroizing::new(token.to_owned()), seen });
        let (verified, keys) = shown.verify(keys, checks).await?.map_err(refused)?;
        if !self.needed.iter().all(|scope| verified.scopes.contains(scope)) {
            return Err(self.resource.insufficient());
        }
        let name = format!("{}:{}", issuer.name, verified.subject);
        let caller = Caller::new(&name, verified.scopes.iter().map(String::as_str));
        let ends = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(verified.expires))
            .and_then(|ends| ends.checked_add(issuer.rules.leeway));
        let latest = SystemTime::now() + HOLDS_MAX;
        let remembered = VerifiedToken { keys, caller, until: ends.map_or(latest, |ends| ends.min(latest)) };
        let admitted = remembered.admitted();
        let until = remembered.until;
        self.remember(digest, remembered);
        let admitted = admitted.ok_or_else(|| refused(TokenFault::Expired))?;
        self.presented.keep(&admitted.caller, &issuer.rules.issuer, token, until);
        Ok(admitted)
    }

    /// The caller of a verified token, and the token's end.
    fn remembered(&self, digest: &ComponentDigest, keys: &Arc<FetchedKeys>) -> Option<(Admitted, SystemTime)> {
        let remembered = self.remembered.lock();
        let known = remembered.get(digest).filter(|known| Arc::ptr_eq(&known.keys, keys))?;
        Some((known.admitted()?, known.until))
    }

    fn remember(&self, digest: ComponentDigest, checked: VerifiedToken) {
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(digest, checked);
    }
}

impl VerifiedToken {
    /// `None` if it has expired.
    fn admitted(&self) -> Option<Admitted> {
        let left = self.until.duration_since(SystemTime::now()).ok()?;
        let validity = CredentialValidity { until: Instant::now().checked_add(left), revoked: None };
        Some(Admitted { caller: self.caller.clone(), validity })
    }
}

impl ShownToken {
    /// Verifies it, with newer keys if it names an unknown key. The outer error means that it
    /// cannot be checked now.
    async fn verify(
        self: &Arc<Self>,
        keys: Arc<FetchedKeys>,
        checks: Option<&CredentialChecks>,
    ) -> Result<Result<(VerifiedClaims, Arc<FetchedKeys>), TokenFault>, AuthFailure> {
        match self.check(&keys, checks).await? {
            Ok(verified) => return Ok(Ok((verified, keys))),
            Err(TokenFault::Key) => {}
            Err(fault) => return Ok(Err(fault)),
        }
        match self.issuer.keys.newer_than(&keys).await {
            NewerKeys::Keys(keys) => Ok(self.check(&keys, checks).await?.map(|verified| (verified, keys))),
            NewerKeys::None => Ok(Err(TokenFault::Key)),
            NewerKeys::Unreachable => Err(AuthFailure::NotNow),
        }
    }

    /// Verifies it with these keys. The outer error means that the server ends.
    async fn check(
        self: &Arc<Self>,
        keys: &Arc<FetchedKeys>,
        checks: Option<&CredentialChecks>,
    ) -> Result<Result<VerifiedClaims, TokenFault>, AuthFailure> {
        let Some(checks) = checks else { return Ok(self.check_here(keys)) };
        let shown = Arc::clone(self);
        let keys = Arc::clone(keys);
        checks.run(move || shown.check_here(&keys)).await.ok_or(AuthFailure::NotNow)
    }

    fn check_here(&self, keys: &FetchedKeys) -> Result<VerifiedClaims, TokenFault> {
        self.issuer.rules.verify(&self.text, &self.seen, &keys.set)
    }
}
