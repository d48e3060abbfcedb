//! Who is let in over HTTP: whoever shows a token of the file, or one that an issuer gave. A token is never written down,
//! and is never given to a guest.
use http::HeaderMap;
use http::header::AUTHORIZATION;
use toolcell_mcp::http::oauth::TokenFault;
use toolcell_mcp::http::{Admitted, Admitting, AuthFailure, Gatekeeper};

use super::oauth::Oauth;
use super::tokens::{TOKEN_PREFIX, Tokens};

/// What a caller is told who shows no token, where no issuer has any to give.
const CHALLENGE: &str = "Bearer realm=\"toolcell\"";

/// What a caller is told who shows one that is not known.
const CHALLENGE_UNKNOWN: &str = "Bearer realm=\"toolcell\", error=\"invalid_token\"";

/// Recognises callers by the token they show.
pub struct Doorkeeper {
    tokens: Option<Tokens>,
    oauth: Option<Oauth>,
}

impl Doorkeeper {
    pub fn new(tokens: Option<Tokens>, oauth: Option<Oauth>) -> Self {
        Self { tokens, oauth }
    }

    async fn recognise(&self, headers: &HeaderMap) -> Result<Admitted, AuthFailure> {
        let token = bearer(headers).ok_or_else(|| self.unknown(None))?;
        if let Some(admitted) = self.tokens.as_ref().and_then(|tokens| tokens.find(token)) {
            return Ok(admitted);
        }
        match &self.oauth {
            Some(oauth) if !token.starts_with(TOKEN_PREFIX) => oauth.recognise(token).await,
            _ => Err(self.unknown(Some(TokenFault::Unknown))),
        }
    }

    fn unknown(&self, fault: Option<TokenFault>) -> AuthFailure {
        match (&self.oauth, fault) {
            (Some(oauth), fault) => oauth.resource().unknown(fault),
            (None, None) => AuthFailure::Unknown { challenge: CHALLENGE.to_owned() },
            (None, Some(_)) => AuthFailure::Unknown { challenge: CHALLENGE_UNKNOWN.to_owned() },
        }
    }
}

impl Gatekeeper for Doorkeeper {
    fn admit<'h>(&'h self, headers: &'h HeaderMap) -> Admitting<'h> {
        Box::pin(self.recognise(headers))
    }

    fn metadata(&self, path: &str) -> Option<String> {
        self.oauth.as_ref()?.resource().metadata_at(path)
    }
}

/// The token that a request shows, where it shows one and only one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = shown.next()?.to_str().ok()?.split_once(' ')?;
    let is_one = scheme.eq_ignore_ascii_case("bearer") && shown.next().is_none();
    is_one.then(|| token.trim()).filter(|token| !token.is_empty())
}
