//! Fetches metadata and keys of issuers: over https, or from loopback, without redirects and within
//! bounds.
use std::time::Duration;

use ::http::{Request, StatusCode};
use hyper::body::Bytes;
use serde::Deserialize;
use toolcell_outbound::{OutboundBounds, OutboundClient, is_protected};
use url::Url;

use crate::identity::metadata::metadata_of;

/// Bounds of one answer, while callers wait. Key sets with certificates have about twenty
/// kilobytes.
const BOUNDS: OutboundBounds =
    OutboundBounds { connect: Duration::from_secs(3), whole: Duration::from_secs(5), body_bytes: 256 * 1024 };

/// Fetches documents of issuers. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher(OutboundClient);

impl Fetcher {
    /// A fetcher for these addresses, and for the hosts that their metadata name. `Err` is one
    /// sentence.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let http_client = OutboundClient::new(addresses, BOUNDS);
        http_client.map(Self).map_err(|error| format!("issuers cannot be asked for their keys: {error}"))
    }

    /// Fetches this address. `Err` is one sentence.
    pub async fn text(&self, address: &str) -> Result<Bytes, String> {
        let url = Url::parse(address).ok().filter(is_protected);
        let url = url.ok_or_else(|| format!("{address} is not reached over https"))?;
        let request = Request::get(url.as_str()).header("accept", "application/json").body(Bytes::new());
        let request = request.map_err(|error| format!("{address}: {error}"))?;
        let response = self.0.send(request).await.map_err(|error| format!("{address}: {error}"))?;
        if response.status() == StatusCode::OK {
            Ok(response.into_body())
        } else {
            Err(format!("{address} answers with status {}", response.status().as_u16()))
        }
    }

    /// Address of an issuer's keys, from its metadata. `Err` is one sentence.
    pub async fn keys_of(&self, issuer: &str) -> Result<String, String> {
        #[derive(Deserialize)]
        struct IssuerMetadata {
            issuer: String,
            jwks_uri: String,
        }
        let mut last = String::new();
        for address in metadata_of(issuer) {
            let text = match self.text(&address).await {
                Ok(text) => text,
                Err(problem) => {
                    last = problem;
                    continue;
                }
            };
            let metadata: IssuerMetadata =
                serde_json::from_slice(&text).map_err(|_| format!("{address}: no metadata of an issuer"))?;
            if metadata.issuer != issuer {
                return Err(format!("{address} is of another issuer"));
            }
            return Ok(metadata.jwks_uri);
        }
        Err(last)
    }
}
