//! Packages by name: the registry's own metadata says where they are, as for `wkg`.
use ::http::Method;
use serde::Deserialize;
use toolcell_policy::{PackageName, Reference};

use crate::client::RegistryClient;
use crate::document::problem;
use crate::error::PullError;
use crate::http::Ask;

/// Place of a registry's metadata (`docs/registry-metadata.md` of wasm-pkg-tools).
const METADATA_PATH: &str = "/.well-known/wasm-pkg/registry.json";

/// Most bytes of the metadata: those of public registries have about a hundred.
const METADATA_BYTES_MAX: usize = 16 << 10;

/// The only supported protocol.
const PROTOCOL: &str = "oci";

/// A registry's metadata. Members of other protocols are left out.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryMetadata {
    preferred_protocol: Option<String>,
    oci: Option<PackagePlace>,
    // The older name of this field, which takes precedence in `wkg` as well.
    oci_registry: Option<String>,
    oci_namespace_prefix: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackagePlace {
    registry: Option<String>,
    namespace_prefix: Option<String>,
}

impl RegistryClient {
    /// The reference of a package, with its version as the tag: that of the newest release, if the
    /// name has none. `host` is asked for its metadata, and without it is the registry itself.
    ///
    /// # Errors
    /// [`PullError`] where the host does not answer, does not answer as expected, or has no
    /// release.
    pub async fn package(&self, host: &str, package: &PackageName) -> Result<Reference, PullError> {
        let metadata = self.metadata(host).await?;
        let wrong = |problem: String| PullError::Document { what: format!("the package metadata of {host}"), problem };
        if let Some(other) = metadata.preferred_protocol.filter(|protocol| protocol != PROTOCOL) {
            let other: String = other.chars().take(20).collect();
            return Err(wrong(format!("its protocol is {other:?}, and only {PROTOCOL:?} is spoken")));
        }
        let place = metadata.oci.unwrap_or_default();
        let registry = metadata.oci_registry.or(place.registry).unwrap_or_else(|| host.to_owned());
        let prefix = metadata.oci_namespace_prefix.or(place.namespace_prefix).unwrap_or_default();
        let reference = package.reference(&registry, &prefix).map_err(|error| wrong(problem(error)))?;
        if package.version().is_some() {
            return Ok(reference);
        }
        let tags = self.tags(&reference).await?;
        let newest = tags.names.iter().filter_map(|tag| Some((release(tag)?, tag))).max();
        let (_, tag) = newest.ok_or_else(|| PullError::NotFound {
            host: registry.clone(),
            what: format!("a release of {package} under the tags of {}", reference.repository()),
        })?;
        reference.with_tag(tag).map_err(|error| wrong(error.to_string()))
    }

    async fn metadata(&self, host: &str) -> Result<RegistryMetadata, PullError> {
        let mut url = self.address(host, host)?;
        url.set_path(METADATA_PATH);
        let answer = self.http.send(&Ask::new(Method::GET, url, self.bounds().answer)).await?;
        if answer.status.as_u16() == 404 {
            return Ok(RegistryMetadata::default());
        }
        if !answer.status.is_success() {
            return Err(answer.into_status_error().await);
        }
        let document = answer.document("the package metadata", METADATA_BYTES_MAX).await?;
        serde_json::from_slice(&document).map_err(|error| PullError::Document {
            what: format!("the package metadata of {host}"),
            problem: problem(error),
        })
    }
}

/// Reads `1.2.3`. Pre-releases and other tags do not count as releases.
fn release(tag: &str) -> Option<(u64, u64, u64)> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = tag.split('.').map(|part| is_number(part).then(|| part.parse().ok()).flatten());
    let version = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_three_numbers() {
        assert!(release("1.10.0") > release("1.9.9"));
        for tag in ["latest", "v1.2.3", "1.2", "1.2.3-rc.1", "1.2.3.4", "1.2.+3", "sha256-1", ""] {
            assert_eq!(release(tag), None, "{tag}");
        }
    }
}
