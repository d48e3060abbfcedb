//! Authentication over HTTP, by a token of the file or of an issuer. Tokens are never logged and
//! never given to a guest.
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use toolcell_mcp::http::oauth::TokenFault;
use toolcell_mcp::http::{Admitted, Admitting, AuthFailure, CredentialChecks, Gatekeeper};

use super::PresentedTokens;
use super::oauth::Oauth;
use super::token_file::TOKEN_PREFIX;
use super::tokens::Tokens;
use crate::replicas::replicated_sets::ReplicatedSets;

/// Challenge for a caller without a token, if no issuer is configured.
const CHALLENGE: &str = "Bearer realm=\"toolcell\"";

/// Challenge for a caller with an unknown token.
const CHALLENGE_UNKNOWN: &str = "Bearer realm=\"toolcell\", error=\"invalid_token\"";

/// Authenticates callers by their token.
pub struct Authenticator {
    /// The tokens of the file, if there is one.
    pub tokens: Option<Arc<Tokens>>,
    oauth: Option<Oauth>,
}

impl Authenticator {
    pub fn new(tokens: Option<Arc<Tokens>>, oauth: Option<Oauth>) -> Self {
        Self { tokens, oauth }
    }

    /// From now on replicas notify each other of tokens that are revoked. What they know is kept in
    /// the folder `state`.
    pub fn share(&self, sets: &Arc<ReplicatedSets>, state: &Path) {
        self.tokens.iter().for_each(|tokens| tokens.share(sets, state));
    }

    /// Tokens of issuers that callers showed, for their exchange; `None` without issuers.
    pub fn presented(&self) -> Option<&Arc<PresentedTokens>> {
        self.oauth.as_ref().map(|oauth| &oauth.presented)
    }

    async fn authenticate(&self, headers: &HeaderMap, checks: &CredentialChecks) -> Result<Admitted, AuthFailure> {
        let token = bearer(headers).ok_or_else(|| self.unknown(None))?;
        self.find(token, Some(checks)).await
    }

    /// The caller with this token. Without `checks` a signature is checked on this thread, for
    /// those who bound attempts themselves.
    ///
    /// # Errors
    /// The token is not known, lacks a right, or cannot be checked now.
    pub async fn find(&self, token: &str, checks: Option<&CredentialChecks>) -> Result<Admitted, AuthFailure> {
        if let Some(tokens) = &self.tokens
            && let Some(admitted) = tokens.find(token).await?
        {
            return Ok(admitted);
        }
        match &self.oauth {
            Some(oauth) if !token.starts_with(TOKEN_PREFIX) => oauth.authenticate(token, checks).await,
            _ => Err(self.unknown(Some(TokenFault::Unknown))),
        }
    }

    fn unknown(&self, fault: Option<TokenFault>) -> AuthFailure {
        match (&self.oauth, fault) {
            (Some(oauth), fault) => oauth.resource.unknown(fault),
            (None, None) => AuthFailure::Unknown { challenge: CHALLENGE.to_owned() },
            (None, Some(_)) => AuthFailure::Unknown { challenge: CHALLENGE_UNKNOWN.to_owned() },
        }
    }
}

impl Gatekeeper for Authenticator {
    fn admit<'h>(&'h self, headers: &'h HeaderMap, checks: &'h CredentialChecks) -> Admitting<'h> {
        Box::pin(self.authenticate(headers, checks))
    }

    fn metadata(&self, path: &str) -> Option<String> {
        self.oauth.as_ref()?.resource.metadata_at(path)
    }
}

/// The bearer token of a request; `None` unless there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = shown.next()?.to_str().ok()?.split_once(' ')?;
    let is_one = scheme.eq_ignore_ascii_case("bearer") && shown.next().is_none();
    is_one.then(|| token.trim()).filter(|token| !token.is_empty())
}
