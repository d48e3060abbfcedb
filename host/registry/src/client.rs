//! A client of registries: authenticated requests to a repository, digests of tags, and manifests.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ::http::header::ACCEPT;
use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use toolcell_outbound::{is_loopback, is_same_server, shown};
use toolcell_policy::{Digest, Reference};
use url::Url;

use crate::auth::{self, challenge};
use crate::document::{MANIFEST_ACCEPT, MANIFEST_BYTES_MAX};
use crate::error::PullError;
use crate::http::{Answer, Ask, HttpClient};
use crate::repository::{HUB, HUB_HOST, RegistryRight, Repository};
use crate::settings::{Bounds, RegistryOptions};

/// Most tags that are listed; repositories with a build for each commit have some thousand.
pub const TAGS_MAX: usize = 10_000;

/// Most tokens that are kept, which is several times the repositories of a large manifest.
const TOKENS_MAX: usize = 1_024;

/// Header with the digest of a manifest (distribution specification, "Pulling manifests").
pub(crate) const DIGEST_HEADER: HeaderName = HeaderName::from_static("docker-content-digest");

/// Pulls components from registries, and pushes them.
///
/// Its futures read and write files of the store on the thread that polls them, in pieces of some
/// kilobytes, and hash and synchronise whole files on tokio's blocking threads.
pub struct RegistryClient {
    pub(crate) http: HttpClient,
    tokens: Mutex<BTreeMap<TokenKey, HeaderValue>>,
}

/// What a token is for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TokenKey {
    registry: String,
    /// The repository and the actions.
    scope: String,
}

impl RegistryClient {
    /// A client with these options. It connects to nothing yet.
    #[must_use]
    pub fn new(options: RegistryOptions) -> Self {
        Self { http: HttpClient::new(options), tokens: Mutex::default() }
    }

    /// The digest that a reference names: its own, else that of its tag, else that of `latest`.
    ///
    /// # Errors
    /// [`PullError`] if the registry does not answer.
    pub async fn resolve(&self, reference: &Reference) -> Result<Digest, PullError> {
        if let Some(digest) = reference.digest() {
            return Ok(digest.clone());
        }
        let repository = self.repository(reference, RegistryRight::Pull)?;
        self.digest_of_tag(&repository, reference.tag().unwrap_or("latest")).await
    }

    /// The digest of a tag: from the header of a HEAD request, else computed from the manifest. A
    /// false header is noticed when the digest is pulled.
    pub(crate) async fn digest_of_tag(&self, repository: &Repository, tag: &str) -> Result<Digest, PullError> {
        let ask = self.manifest_ask(Method::HEAD, repository, tag);
        let answer = self.ask(repository, ask).await?;
        let said = answer.headers.get(&DIGEST_HEADER).and_then(|digest| digest.to_str().ok());
        if let Some(digest) = said.and_then(|digest| Digest::parse(digest).ok())
            && answer.status == StatusCode::OK
        {
            return Ok(digest);
        }
        Ok(crate::digest_of(&self.manifest(repository, tag).await?))
    }

    /// The bytes of a manifest or an index, by tag or digest. A digest is verified.
    pub(crate) async fn manifest(&self, repository: &Repository, name: &str) -> Result<Vec<u8>, PullError> {
        self.manifest_within(repository, name, MANIFEST_BYTES_MAX).await
    }

    /// [`manifest`](Self::manifest), of at most this size.
    pub(crate) async fn manifest_within(
        &self,
        repository: &Repository,
        name: &str,
        bytes_max: usize,
    ) -> Result<Vec<u8>, PullError> {
        let answer = self.ask(repository, self.manifest_ask(Method::GET, repository, name)).await?;
        let separator = if name.starts_with("sha256:") { "@" } else { ":" };
        let answer = self.checked(repository, answer, &format!("{separator}{name}")).await?;
        let bytes = answer.document("a manifest", bytes_max).await?;
        if let Ok(expected) = Digest::parse(name) {
            repository.check_digest(&expected, &bytes)?;
        }
        Ok(bytes)
    }

    /// Turns an answer with an error status into an error.
    pub(crate) async fn checked(
        &self,
        repository: &Repository,
        answer: Answer,
        what: &str,
    ) -> Result<Answer, PullError> {
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(match answer.status.as_u16() {
            404 => repository.not_found(what),
            403 => PullError::Forbidden {
                host: repository.registry.clone(),
                step: repository.right.verb(),
                repository: repository.name.clone(),
            },
            429 => PullError::RateLimited(shown(&answer.url)),
            _ => answer.into_status_error().await,
        })
    }

    /// Sends a request to a repository, and answers one challenge.
    pub(crate) async fn ask(&self, repository: &Repository, mut ask: Ask) -> Result<Answer, PullError> {
        let scope = format!("{}:{}", repository.name, repository.right.actions());
        let key = TokenKey { registry: repository.registry.clone(), scope };
        ask.authorization = self.known(&key);
        let answer = self.http.send(&ask).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let challenge = challenge::of(&answer.headers).filter(|_| is_same_server(&answer.url, &ask.url));
        let challenge = challenge.ok_or_else(|| repository.unauthorized(false))?;
        let authorization = auth::answer(&self.http, repository, &answer.url, challenge).await?;
        drop(answer);
        ask.authorization = Some(authorization.clone());
        let answer = self.http.send(&ask).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(repository.unauthorized(true));
        }
        self.keep(key, authorization);
        Ok(answer)
    }

    fn known(&self, key: &TokenKey) -> Option<HeaderValue> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn keep(&self, key: TokenKey, authorization: HeaderValue) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(key, authorization);
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.http.options().bounds
    }

    pub(crate) fn manifest_ask(&self, method: Method, repository: &Repository, name: &str) -> Ask {
        Ask::new(method, repository.url(&format!("manifests/{name}")), self.bounds().answer)
            .header(ACCEPT, HeaderValue::from_static(MANIFEST_ACCEPT))
    }

    /// The repository of a reference, at its registry or at the mirror.
    pub(crate) fn repository(&self, reference: &Reference, right: RegistryRight) -> Result<Repository, PullError> {
        let registry = reference.registry();
        let mirror = self.http.of_registry(registry).mirror.as_deref().filter(|_| right == RegistryRight::Pull);
        let Some(mirror) = mirror else {
            return self.at(registry, registry, reference.repository().to_owned(), right);
        };
        let (host, prefix) = mirror.split_once('/').unwrap_or((mirror, ""));
        let name = [prefix.trim_end_matches('/'), reference.repository()];
        let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        // A mirror is written as the name in a reference.
        let checked = Reference::parse(&format!("oci://{host}/{name}")).map_err(|error| PullError::Settings {
            host: registry.to_owned(),
            problem: format!("the mirror {mirror:?}: {error}"),
        })?;
        self.at(registry, checked.registry(), name, right)
    }

    fn at(&self, asked: &str, registry: &str, name: String, right: RegistryRight) -> Result<Repository, PullError> {
        let base = self.address(asked, registry)?;
        Ok(Repository { registry: registry.to_owned(), name, right, base })
    }

    /// The address of a registry: https, unless its settings or a loopback address allow http.
    /// Errors name the registry that was asked for.
    pub(crate) fn address(&self, asked: &str, registry: &str) -> Result<Url, PullError> {
        let settings = self.http.of_registry(registry);
        let host = if registry == HUB { HUB_HOST } else { registry };
        let address = |scheme: &str| {
            Url::parse(&format!("{scheme}://{host}/")).map_err(|error| PullError::Settings {
                host: asked.to_owned(),
                problem: format!("{host:?} is not a host: {error}"),
            })
        };
        let base = address("https")?;
        if settings.plain_http || (is_loopback(&base) && settings.authorities.is_none()) {
            return address("http");
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RegistrySettings;

    #[test]
    fn a_reference_is_asked_for_at_its_registry_or_its_mirror() {
        let of = |mirror: &str| RegistrySettings { mirror: Some(mirror.to_owned()), ..RegistrySettings::default() };
        let plain = RegistrySettings { plain_http: true, ..RegistrySettings::default() };
        let tls = RegistrySettings { authorities: Some("ca.pem".into()), ..RegistrySettings::default() };
        let by_host = [
            ("ghcr.io", of("mirror.example:8443/cache/ghcr")),
            ("bad.example", of("https://mirror.example")),
            ("plain.example", plain),
            ("127.0.0.1:1", tls),
        ];
        let by_host = by_host.into_iter().map(|(host, settings)| (host.to_owned(), settings)).collect();
        let client = RegistryClient::new(RegistryOptions { by_host, ..RegistryOptions::default() });
        for (reference, right, expected) in [
            ("oci://quay.io/a/b", RegistryRight::Pull, "https://quay.io/v2/a/b/x"),
            ("oci://docker.io/library/a", RegistryRight::Pull, "https://registry-1.docker.io/v2/library/a/x"),
            ("oci://docker.io/a/b", RegistryRight::Pull, "https://registry-1.docker.io/v2/a/b/x"),
            ("oci://ghcr.io/a/b", RegistryRight::Pull, "https://mirror.example:8443/v2/cache/ghcr/a/b/x"),
            ("oci://ghcr.io/a/b", RegistryRight::Push, "https://ghcr.io/v2/a/b/x"),
            ("oci://plain.example/a", RegistryRight::Pull, "http://plain.example/v2/a/x"),
            ("oci://localhost:5000/a", RegistryRight::Pull, "http://localhost:5000/v2/a/x"),
            ("oci://127.0.0.1:1/a", RegistryRight::Pull, "https://127.0.0.1:1/v2/a/x"),
            ("oci://[::1]:5000/a", RegistryRight::Pull, "http://[::1]:5000/v2/a/x"),
        ] {
            let repository = client.repository(&Reference::parse(reference).unwrap(), right).unwrap();
            assert_eq!(repository.url("x").as_str(), expected);
        }
        let error =
            client.repository(&Reference::parse("oci://bad.example/a").unwrap(), RegistryRight::Pull).unwrap_err();
        assert!(matches!(error, PullError::Settings { .. }), "{error}");
    }
}
