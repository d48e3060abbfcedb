//! An authorization server's endpoints: from the manifest, and from the server's metadata (RFC
//! 8414, or OpenID Connect Discovery).
use std::path::Path;

use ::http::{Request, StatusCode};
use hyper::body::Bytes;
use serde::Deserialize;
use toolcell_outbound::{is_loopback, is_protected};
use toolcell_policy::{ClientAuth, LoginPolicy};
use url::Url;
use zeroize::Zeroizing;

use super::client::SendRequest;
use super::error::LoginError;
use crate::identity::metadata::metadata_of;
use crate::identity::secrets;

/// The registered client.
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Zeroizing<String>>,
}

/// A server's endpoints.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    /// Its name, where it has one.
    pub(super) issuer: Option<String>,
    pub(super) authorize: Option<String>,
    pub(super) token: String,
    pub(super) device: Option<String>,
    pub(super) revoke: Option<String>,
    pub(super) auth: ClientAuth,
    /// True if its redirects name it (RFC 9207).
    pub(super) names_itself: bool,
}

/// Metadata of a server, as far as a login needs them.
#[derive(Deserialize)]
struct LoginMetadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Client {
    pub(super) fn read(policy: &LoginPolicy, folder: &Path) -> Result<Self, LoginError> {
        let read = |source| secrets::text(source, folder).map_err(LoginError::Secret);
        let secret = policy.client_secret().map(read).transpose()?.map(|(value, _)| value);
        Ok(Self { id: policy.client_id().to_owned(), secret })
    }
}

impl Endpoints {
    /// The endpoints of a login's server. Metadata are fetched only where the manifest leaves an
    /// endpoint to them.
    pub(super) async fn find(policy: &LoginPolicy, send: &impl SendRequest) -> Result<Self, LoginError> {
        let by_hand = policy.token().is_some() && (policy.authorize().is_some() || policy.device().is_some());
        match policy.issuer().filter(|_| !by_hand) {
            Some(issuer) => {
                let (address, metadata) = fetch(issuer, send).await?;
                Self::of_metadata(policy, &address, &metadata)
            }
            None => Ok(Self {
                issuer: policy.issuer().map(str::to_owned),
                authorize: policy.authorize().map(str::to_owned),
                token: policy.token().ok_or(LoginError::NoEndpoint("token"))?.to_owned(),
                device: policy.device().map(str::to_owned),
                revoke: None,
                auth: policy.client_auth().unwrap_or(ClientAuth::Basic),
                names_itself: false,
            }),
        }
    }

    fn of_metadata(policy: &LoginPolicy, address: &str, metadata: &LoginMetadata) -> Result<Self, LoginError> {
        let problem = |problem: String| LoginError::Metadata { address: address.to_owned(), problem };
        // A public server does not send browsers and tokens to this machine.
        let loopback = Url::parse(&metadata.issuer).is_ok_and(|url| is_loopback(&url));
        let safe = |named: &Option<String>| match named {
            None => Ok(None),
            Some(text) if Url::parse(text).is_ok_and(|url| is_protected(&url) && (loopback || !is_loopback(&url))) => {
                Ok(Some(text.clone()))
            }
            Some(_) => Err(problem("an endpoint is not reached over https".to_owned())),
        };
        let named = |by_hand: Option<&str>, named: &Option<String>| match by_hand {
            Some(text) => Ok(Some(text.to_owned())),
            None => safe(named),
        };
        let has_s256 = metadata.code_challenge_methods_supported.iter().any(|method| method == "S256");
        if policy.authorize().is_none() && metadata.authorization_endpoint.is_some() && !has_s256 {
            return Err(problem("the server does not say that it knows PKCE with S256".to_owned()));
        }
        let post_only = metadata.token_endpoint_auth_methods_supported.as_ref().is_some_and(|methods| {
            let has = |name: &str| methods.iter().any(|method| method == name);
            has("client_secret_post") && !has("client_secret_basic")
        });
        let auth = if post_only { ClientAuth::Post } else { ClientAuth::Basic };
        Ok(Self {
            issuer: Some(metadata.issuer.clone()),
            authorize: named(policy.authorize(), &metadata.authorization_endpoint)?,
            token: named(policy.token(), &metadata.token_endpoint)?.ok_or(LoginError::NoEndpoint("token"))?,
            device: named(policy.device(), &metadata.device_authorization_endpoint)?,
            revoke: safe(&metadata.revocation_endpoint)?,
            auth: policy.client_auth().unwrap_or(auth),
            names_itself: metadata.authorization_response_iss_parameter_supported,
        })
    }
}

/// The metadata of an issuer, and where they are.
async fn fetch(issuer: &str, send: &impl SendRequest) -> Result<(String, LoginMetadata), LoginError> {
    let mut last = LoginError::Address(issuer.to_owned());
    for address in metadata_of(issuer) {
        let request = Request::get(&address).header("accept", "application/json").body(Bytes::new());
        let request = request.map_err(|_| LoginError::Address(address.clone()))?;
        let response = match send.send(request).await {
            Ok(response) => response,
            Err(source) => {
                last = LoginError::Unreachable { address, source };
                continue;
            }
        };
        let problem = |problem: String| LoginError::Metadata { address: address.clone(), problem };
        if response.status() != StatusCode::OK {
            last = problem(format!("it answers with status {}", response.status().as_u16()));
            continue;
        }
        let metadata: LoginMetadata = serde_json::from_slice(response.body())
            .map_err(|_| problem("this is not the metadata of an authorization server".to_owned()))?;
        if metadata.issuer != issuer {
            return Err(problem("this is the metadata of another issuer".to_owned()));
        }
        return Ok((address, metadata));
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::token::tests::{Answers, policy_of};
    use super::*;

    const ISSUER: &str = "https://login.example.com";

    async fn found(change: Value, more: &str) -> Result<Endpoints, String> {
        let mut metadata = json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://login.example.com/authorize",
            "token_endpoint": "https://login.example.com/token",
            "device_authorization_endpoint": "https://login.example.com/device",
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        for (key, value) in change.as_object().unwrap() {
            metadata[key] = value.clone();
        }
        let answers = Answers::new(&[(404, ""), (200, &metadata.to_string())]);
        let policy = policy_of(&format!("issuer = \"{ISSUER}\"\n{more}"));
        Endpoints::find(&policy, &answers).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn endpoints_are_of_the_metadata_but_for_those_written_by_hand() {
        let endpoints = found(json!({}), "token = \"https://other.example.com/token\"").await.unwrap();
        assert_eq!(endpoints.authorize.as_deref(), Some("https://login.example.com/authorize"));
        assert_eq!(endpoints.token, "https://other.example.com/token");
        assert_eq!((endpoints.auth, endpoints.names_itself), (ClientAuth::Basic, false));
        let post = json!({"token_endpoint_auth_methods_supported": ["client_secret_post", "none"]});
        assert_eq!(found(post, "").await.unwrap().auth, ClientAuth::Post);
    }

    #[tokio::test]
    async fn metadata_that_another_could_have_made_are_refused() {
        let place = "https://login.example.com/.well-known/openid-configuration";
        for (change, problem) in [
            (json!({"issuer": "https://login.example.com/"}), "this is the metadata of another issuer"),
            (
                json!({"code_challenge_methods_supported": ["plain"]}),
                "the server does not say that it knows PKCE with S256",
            ),
            (json!({"code_challenge_methods_supported": []}), "the server does not say that it knows PKCE with S256"),
            (json!({"token_endpoint": "http://login.example.com/token"}), "an endpoint is not reached over https"),
            (json!({"token_endpoint": "http://127.0.0.1/token"}), "an endpoint is not reached over https"),
            (json!({"authorization_endpoint": "javascript:alert(1)"}), "an endpoint is not reached over https"),
            (json!({"issuer": 5}), "this is not the metadata of an authorization server"),
        ] {
            assert_eq!(found(change.clone(), "").await.unwrap_err(), format!("{place}: {problem}"), "{change}");
        }
    }
}
