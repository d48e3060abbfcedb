//! Requests to registries by the settings of each, and their redirects. Must not hold: credentials,
//! or what a registry's answers mean.
mod answer;
mod tls;

use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, AUTHORIZATION};
use ::http::{HeaderMap, HeaderValue, Method, Request};
use bytes::Bytes;
use tokio::time::Instant;
use toolcell_outbound::{
    NotFollowed, REDIRECTS_MAX, Reach, Way, followed, is_loopback, is_redirect, is_same_server, shown,
};
use url::Url;

pub(crate) use answer::{Answer, Rate};

use crate::error::PullError;
use crate::settings::{RegistryOptions, RegistrySettings};

/// A request. Its headers contain neither a host nor a credential.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Time limit until the head of the final answer, redirects included.
    pub(crate) within: Duration,
    /// Sent to the server of `url`, and to no other.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Ask {
    /// A request without a body.
    pub(crate) fn new(method: Method, url: Url, within: Duration) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new(), within, authorization: None }
    }

    /// The request with one more header.
    pub(crate) fn header(mut self, name: ::http::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// Sends requests to the hosts of some options.
pub(crate) struct HttpClient {
    options: RegistryOptions,
    default: RegistrySettings,
    connectors: tls::Connectors,
}

impl HttpClient {
    pub(crate) fn new(options: RegistryOptions) -> Self {
        Self { options, default: RegistrySettings::default(), connectors: tls::Connectors::default() }
    }

    pub(crate) fn options(&self) -> &RegistryOptions {
        &self.options
    }

    /// The settings of a registry, by its name in a reference.
    pub(crate) fn of_registry(&self, registry: &str) -> &RegistrySettings {
        self.options.by_host.get(registry).unwrap_or(&self.default)
    }

    /// The settings of the host of an address.
    fn of_url(&self, url: &Url) -> &RegistrySettings {
        let host = url.host_str().unwrap_or_default();
        let host = if host == crate::repository::HUB_HOST { crate::repository::HUB } else { host };
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let found = self.options.by_host.get(&with_port);
        let found = found.or_else(|| self.options.by_host.get(host).filter(|_| url.port().is_none()));
        found.unwrap_or(&self.default)
    }

    /// Sends a request, and follows redirects if it only reads.
    ///
    /// # Errors
    /// [`PullError::Redirect`], and those of each exchange.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer, PullError> {
        let deadline = Instant::now() + ask.within;
        let follows = matches!(ask.method, Method::GET | Method::HEAD);
        let mut url = ask.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.exchange(ask, &url, deadline).await?;
            if !(is_redirect(answer.status) && follows) {
                return Ok(answer);
            }
            url = next(&url, &answer.headers)?;
        }
        Err(PullError::not_followed(&ask.url, NotFollowed::too_many(&url)))
    }

    async fn exchange(&self, ask: &Ask, url: &Url, deadline: Instant) -> Result<Answer, PullError> {
        let settings = self.of_url(url);
        let connector = match url.scheme() {
            "http" => None,
            _ => Some(self.connectors.get(&shown(url), settings.authorities.as_deref())?),
        };
        let way = Way { reach: reach(url, settings)?, tls: connector.as_ref(), connect: self.options.bounds.connect };
        let late = |_| PullError::Late { host: shown(url), step: "answer", within: ask.within };
        let sending = toolcell_outbound::send(url, request(ask, url), &way);
        let sent = tokio::time::timeout_at(deadline, sending).await.map_err(late)?;
        let response = sent.map_err(|error| PullError::outbound(url, error))?;
        Ok(Answer::new(response, url.clone(), deadline, ask.within))
    }
}

/// The addresses that a request to a registry of these settings may go to.
fn reach(url: &Url, settings: &RegistrySettings) -> Result<Reach, PullError> {
    let may_be_plain = url.scheme() != "http" || settings.plain_http;
    Ok(match (settings.private, may_be_plain) {
        (true, true) => Reach::Private,
        (false, true) => Reach::Public,
        (true, false) if is_loopback(url) => Reach::Loopback,
        (false, false) if is_loopback(url) => Reach::Public,
        _ => return Err(PullError::PlainHttp(shown(url))),
    })
}

/// The address that a redirect leads to.
pub(crate) fn next(url: &Url, headers: &HeaderMap) -> Result<Url, PullError> {
    followed(url, headers).map_err(|refused| PullError::not_followed(url, refused))
}

fn request(ask: &Ask, url: &Url) -> Request<Bytes> {
    let mut request = Request::new(ask.body.clone());
    *request.method_mut() = ask.method.clone();
    let headers = request.headers_mut();
    headers.clone_from(&ask.headers);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(authorization) = ask.authorization.as_ref().filter(|_| is_same_server(&ask.url, url)) {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_host_and_port() {
        let of = |private| RegistrySettings { private, ..RegistrySettings::default() };
        let by_host = [("a.example", true), ("b.example:5000", true), ("docker.io", true)];
        let by_host = by_host.into_iter().map(|(host, private)| (host.to_owned(), of(private))).collect();
        let client = HttpClient::new(RegistryOptions { by_host, ..RegistryOptions::default() });
        for (url, expected) in [
            ("https://a.example/x", true),
            ("https://a.example:443/x", true),
            ("https://a.example:8443/x", false),
            ("https://b.example/", false),
            ("https://b.example:5000/", true),
            ("https://registry-1.docker.io/", true),
            ("https://x.a.example/", false),
        ] {
            assert_eq!(client.of_url(&Url::parse(url).unwrap()).private, expected, "{url}");
        }
    }
}
