//! The authorization code flow with PKCE (RFC 7636), over a redirect to the loopback (RFC 8252).
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolcell_policy::LoginPolicy;
use toolcell_sandbox::ComponentDigest;
use url::Url;
use zeroize::Zeroizing;

use super::account::OPENID;
use super::client::SendRequest;
use super::endpoints::Endpoints;
use super::error::LoginError;
use super::redirect::{Expected, Listener};
use super::token::purpose;
use super::{Made, NewLogin};

/// Random bytes of a verifier and of a state: RFC 7636 asks for as many, and nobody guesses them.
const RANDOM_BYTES: usize = 32;

/// A login whose browser is awaited.
pub struct BrowserLogin<'a, S> {
    login: NewLogin<'a, S>,
    listener: Listener,
    verifier: Zeroizing<String>,
    redirect: String,
    address: String,
}

impl<'a, S: SendRequest> NewLogin<'a, S> {
    /// Listens for the browser.
    ///
    /// # Errors
    /// The authorization endpoint is missing, or the address of the redirect is taken.
    pub async fn by_browser(self) -> Result<BrowserLogin<'a, S>, LoginError> {
        let verifier = random_text()?;
        let state = random_text()?;
        let issuer = self.endpoints.issuer.clone();
        let expected = Expected { state: state.clone(), issuer, must_name: self.endpoints.names_itself };
        let listener = Listener::bind(self.policy.redirect(), expected).await?;
        let redirect = listener.address();
        let request = AuthorizeRequest { redirect: &redirect, state: &state, verifier: &verifier };
        let address = request.address(self.policy, &self.endpoints)?;
        Ok(BrowserLogin { login: self, listener, verifier, redirect, address })
    }
}

impl<S: SendRequest> BrowserLogin<'_, S> {
    /// The address that a person opens in a browser.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the browser, and gets and keeps the tokens.
    ///
    /// # Errors
    /// Each step has its [`LoginError`].
    pub async fn finish(self) -> Result<Made, LoginError> {
        let code = self.listener.code().await?;
        let code =
            CodeGrant { code: &code, redirect: &self.redirect, verifier: &self.verifier, subject: None, mark: None };
        self.login.finish(&code).await
    }
}

/// A code that a browser brought.
pub(super) struct CodeGrant<'a> {
    pub(super) code: &'a str,
    /// The address that the browser came back to.
    pub(super) redirect: &'a str,
    pub(super) verifier: &'a str,
    /// The account that it must be for, where that is known.
    pub(super) subject: Option<&'a str>,
    /// With which the browser may end the login.
    pub(super) mark: Option<&'a str>,
}

impl<S: SendRequest> NewLogin<'_, S> {
    /// Gets and keeps the tokens for a code.
    pub(super) async fn finish(&self, code: &CodeGrant<'_>) -> Result<Made, LoginError> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.code),
            ("redirect_uri", code.redirect),
            ("code_verifier", code.verifier),
        ];
        form.extend(purpose(self.policy));
        let tokens = self.endpoints.at_token(&self.client).tokens(form, SystemTime::now(), &self.send).await?;
        let nonce = self.asks_account().then(|| nonce(code.verifier));
        self.check_account(&tokens, nonce.as_deref(), code.subject)?;
        self.keep(tokens, code.mark).await
    }
}

/// The request that the browser carries to the server.
pub(super) struct AuthorizeRequest<'a> {
    pub(super) redirect: &'a str,
    pub(super) state: &'a str,
    pub(super) verifier: &'a str,
}

impl AuthorizeRequest<'_> {
    pub(super) fn address(&self, policy: &LoginPolicy, endpoints: &Endpoints) -> Result<String, LoginError> {
        let endpoint = endpoints.authorize.as_deref().ok_or(LoginError::NoEndpoint("authorization"))?;
        let mut url = Url::parse(endpoint).map_err(|_| LoginError::Address(endpoint.to_owned()))?;
        let scopes = policy.scopes().join(" ");
        let challenge = challenge(self.verifier);
        let nonce = policy.scopes().iter().any(|scope| scope == OPENID).then(|| nonce(self.verifier));
        let mut own = vec![
            ("response_type", "code"),
            ("client_id", policy.client_id()),
            ("redirect_uri", self.redirect),
            ("state", self.state),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        own.extend((!scopes.is_empty()).then_some(("scope", scopes.as_str())));
        own.extend(nonce.as_deref().map(|nonce| ("nonce", nonce)));
        own.extend(purpose(policy));
        // The endpoint's own query stays, but for what would be there twice.
        let kept: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let kept = kept.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        let pairs: Vec<(String, String)> = kept.cloned().collect();
        url.query_pairs_mut().clear().extend_pairs(pairs).extend_pairs(own);
        Ok(url.into())
    }
}

pub(super) fn random_text() -> Result<Zeroizing<String>, LoginError> {
    let mut bytes = Zeroizing::new([0_u8; RANDOM_BYTES]);
    getrandom::fill(bytes.as_mut()).map_err(|error| LoginError::Random(error.to_string()))?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_ref())))
}

/// The challenge of a verifier, by S256.
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(ComponentDigest::of(verifier.as_bytes()).as_bytes())
}

/// The nonce of the login with this verifier. An identity token that has it was made for this
/// login.
fn nonce(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(ComponentDigest::of(format!("nonce {verifier}").as_bytes()).as_bytes())
}

#[cfg(test)]
mod tests {
    use toolcell_policy::ClientAuth;

    use super::super::token::tests::policy_of;
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636_appendix_b() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_differ_and_have_the_form_of_rfc_7636() {
        let one = random_text().unwrap();
        let other = random_text().unwrap();
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')));
    }

    #[test]
    fn the_request_has_each_field_once_and_keeps_what_the_endpoint_says_else() {
        let policy = policy_of(
            "issuer = \"https://a.example\"\nscopes = [\"read\", \"offline_access\"]\nresource = \"https://api.example/\"",
        );
        let endpoints = Endpoints {
            issuer: None,
            authorize: Some("https://a.example/o?prompt=consent&state=mine&code_challenge_method=plain".to_owned()),
            token: "https://a.example/t".to_owned(),
            device: None,
            revoke: None,
            auth: ClientAuth::Basic,
            names_itself: false,
        };
        let request = AuthorizeRequest { redirect: "http://127.0.0.1:9/callback", state: "s", verifier: "v" };
        assert_eq!(
            request.address(&policy, &endpoints).unwrap(),
            "https://a.example/o?prompt=consent&response_type=code&client_id=desk\
             &redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&state=s&code_challenge=TJRIXgwhrmxBzh3-e2v6zupato5AokdvUCCOUm9QYIA&code_challenge_method=S256\
             &scope=read+offline_access&resource=https%3A%2F%2Fapi.example%2F"
        );
    }
}
