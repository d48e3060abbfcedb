//! Authentication at registries: challenges, tokens and credentials. Must not hold: what is asked
//! of a registry with them.
//!
//! A credential is sent over https or to this machine, and only to the registry that it is for or
//! to the server of tokens that this registry named itself. A challenge behind a redirect is never
//! answered: the server of a layer could name a server of tokens of its own.
pub(crate) mod challenge;
mod credential;
pub(crate) mod files;
mod helper;

pub use credential::Credential;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ::http::{HeaderValue, Method};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use toolcell_outbound::{is_loopback, is_protected, shown};
use url::Url;
use url::form_urlencoded::Serializer;
use zeroize::Zeroizing;

use crate::error::PullError;
use crate::http::{Ask, HttpClient};
use crate::repository::Repository;
use challenge::Challenge;

/// Longest answer of a token server, in bytes: tokens have some kilobytes.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// Name of this program at token servers.
const CLIENT_ID: &str = "toolcell";

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default, deserialize_with = "files::secret")]
    token: Option<Zeroizing<String>>,
    #[serde(default, deserialize_with = "files::secret")]
    access_token: Option<Zeroizing<String>>,
}

/// The header `Authorization` that answers a challenge.
///
/// # Errors
/// [`PullError::Unauthorized`] without a credential, [`PullError::Token`],
/// [`PullError::CredentialKept`], and those of finding a credential.
pub(crate) async fn answer(
    http: &HttpClient,
    repository: &Repository,
    challenged: &Url,
    challenge: Challenge,
) -> Result<HeaderValue, PullError> {
    let credential = credential(http, repository).await?;
    let had_credential = credential.is_some();
    let unauthorized = || repository.unauthorized(had_credential);
    match (challenge, credential) {
        (Challenge::Bearer { .. }, Some(Credential::RegistryToken(token))) => {
            check_secret_way(repository, challenged)?;
            bearer(&token, challenged)
        }
        (Challenge::Bearer { realm, service }, credential) => {
            if credential.is_some() {
                check_secret_way(repository, challenged)?;
            }
            let realm = realm_of(&realm, challenged)?;
            token(http, repository, &realm, service.as_deref(), credential).await
        }
        (Challenge::Basic, Some(Credential::Password { user, password })) => {
            check_secret_way(repository, challenged)?;
            basic(&user, &password, challenged)
        }
        (Challenge::Basic, _) => Err(unauthorized()),
    }
}

async fn credential(http: &HttpClient, repository: &Repository) -> Result<Option<Credential>, PullError> {
    if let Some(credential) = &http.of_registry(&repository.registry).credential {
        return Ok(Some(credential.clone()));
    }
    let options = http.options();
    files::find(&options.credential_files, &options.helper_folders, &repository.registry, &repository.name).await
}

/// Checks that nobody can read what is sent on the way to this address.
fn check_secret_way(repository: &Repository, to: &Url) -> Result<(), PullError> {
    if is_protected(to) {
        return Ok(());
    }
    let problem = "others could read them on the way";
    Err(PullError::CredentialKept { host: repository.registry.clone(), to: shown(to), problem })
}

/// The address of the server of tokens.
fn realm_of(realm: &str, challenged: &Url) -> Result<Url, PullError> {
    let wrong = |realm: String, problem: &str| Err(PullError::Token { realm, problem: problem.to_owned() });
    let Ok(url) = Url::parse(realm) else {
        return wrong(shown(challenged), "its realm is not an address");
    };
    if url.host().is_none() || !url.username().is_empty() || url.password().is_some() {
        return wrong(shown(&url), "its address names a user, or no host");
    }
    // A remote registry cannot point to a token server on this machine, and https never falls back
    // to http.
    let is_plain_here = |url: &Url| url.scheme() == "http" && is_loopback(url);
    let is_here = is_plain_here(&url) && is_plain_here(challenged);
    if url.scheme() != "https" && !is_here {
        return wrong(shown(&url), "it is not reached over https");
    }
    Ok(url)
}

/// A token for the repository (token authentication specification of the distribution project). The
/// scope is ours: a registry does not choose what a token allows.
async fn token(
    http: &HttpClient,
    repository: &Repository,
    realm: &Url,
    service: Option<&str>,
    credential: Option<Credential>,
) -> Result<HeaderValue, PullError> {
    let failed = |problem: String| PullError::Token { realm: shown(realm), problem };
    let had_credential = credential.is_some();
    let scope = format!("repository:{}:{}", repository.name, repository.right.actions());
    let within = http.options().bounds.answer;
    let ask = match credential {
        Some(Credential::IdentityToken(token)) => by_identity(realm, service, &scope, &token, within),
        credential => {
            let mut url = realm.clone();
            if let Some(service) = service {
                url.query_pairs_mut().append_pair("service", service);
            }
            url.query_pairs_mut().append_pair("scope", &scope);
            let mut ask = Ask::new(Method::GET, url, within);
            if let Some(Credential::Password { user, password }) = credential {
                ask.authorization = Some(basic(&user, &password, realm)?);
            }
            ask
        }
    };
    let answer = http.send(&ask).await?;
    match answer.status.as_u16() {
        200 => {}
        400 | 401 | 403 => return Err(repository.unauthorized(had_credential)),
        429 => return Err(PullError::RateLimited(shown(realm))),
        status => return Err(failed(format!("it answers with status {status}"))),
    }
    let document = Zeroizing::new(answer.document("a token", TOKEN_BYTES_MAX).await?);
    let answer: TokenAnswer =
        serde_json::from_slice(&document).map_err(|_| failed("its answer is not JSON with a token".to_owned()))?;
    let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
    bearer(&token.ok_or_else(|| failed("its answer has no token".to_owned()))?, realm)
}

/// The request that exchanges an identity token for one for the repository (OAuth 2, RFC 6749,
/// section 6).
fn by_identity(realm: &Url, service: Option<&str>, scope: &str, token: &str, within: std::time::Duration) -> Ask {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token").append_pair("client_id", CLIENT_ID);
    if let Some(service) = service {
        form.append_pair("service", service);
    }
    form.append_pair("scope", scope).append_pair("refresh_token", token);
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    let mut ask = Ask::new(Method::POST, realm.clone(), within).header(CONTENT_TYPE, kind);
    ask.body = form.finish().into();
    ask
}

fn basic(user: &str, password: &str, for_url: &Url) -> Result<HeaderValue, PullError> {
    let pair = Zeroizing::new(format!("{user}:{password}"));
    secret(&Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))), for_url)
}

fn bearer(token: &str, for_url: &Url) -> Result<HeaderValue, PullError> {
    secret(&Zeroizing::new(format!("Bearer {token}")), for_url)
}

fn secret(text: &str, for_url: &Url) -> Result<HeaderValue, PullError> {
    let wrong = |_| {
        let problem = format!("{} has characters that are not allowed in a header", AUTHORIZATION.as_str());
        PullError::Token { realm: shown(for_url), problem }
    };
    let mut value = HeaderValue::from_str(text).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use toolcell_policy::Reference;

    use super::*;
    use crate::client::RegistryClient;
    use crate::repository::RegistryRight;
    use crate::settings::RegistryOptions;

    #[test]
    fn a_realm_is_https_or_this_machine() {
        for (realm, challenged, is_taken) in [
            ("https://auth.example/token", "https://registry.example/", true),
            ("http://auth.example/token", "https://registry.example/", false),
            ("http://127.0.0.1:1/token", "https://registry.example/", false),
            ("http://127.0.0.1:1/token", "http://127.0.0.1:2/", true),
            ("http://127.0.0.1:1/token", "https://127.0.0.1:2/", false),
            ("http://auth.example/token", "http://127.0.0.1:2/", false),
            ("https://a:b@auth.example/token", "https://registry.example/", false),
            ("file:///token", "https://registry.example/", false),
            ("/token", "https://registry.example/", false),
        ] {
            assert_eq!(realm_of(realm, &Url::parse(challenged).unwrap()).is_ok(), is_taken, "{realm}");
        }
    }

    #[test]
    fn a_credential_takes_no_way_on_which_others_read() {
        let client = RegistryClient::new(RegistryOptions::default());
        let reference = Reference::parse("oci://registry.example/a").unwrap();
        let repository = client.repository(&reference, RegistryRight::Pull).unwrap();
        for (to, is_sent) in [
            ("https://registry.example/", true),
            ("http://127.0.0.1:1/", true),
            ("http://registry.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(check_secret_way(&repository, &Url::parse(to).unwrap()).is_ok(), is_sent, "{to}");
        }
    }

    #[test]
    fn an_identity_token_is_sent_in_the_body() {
        let realm = Url::parse("https://auth.example/token").unwrap();
        let ask = by_identity(&realm, Some("s"), "repository:a/b:pull", "x&y", std::time::Duration::from_secs(1));
        let body = std::str::from_utf8(&ask.body).unwrap();
        let scope = "scope=repository%3Aa%2Fb%3Apull";
        assert_eq!(body, format!("grant_type=refresh_token&client_id=toolcell&service=s&{scope}&refresh_token=x%26y"));
        assert_eq!((ask.url, ask.authorization), (realm, None));
    }
}
