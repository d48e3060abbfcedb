//! Pushing a component, and attaching artifacts to one.
//!
//! Blobs go in one request each ("Pushing a blob monolithically", distribution specification 1.1).
use std::collections::BTreeMap;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use toolcell_outbound::{is_same_server, shown};
use toolcell_policy::{Digest, Reference};

use crate::client::{DIGEST_HEADER, RegistryClient};
use crate::document::{
    COMPONENT_LAYER, CONFIG_BYTES_MAX, Descriptor, Document, EMPTY_CONFIG, Index, Manifest, OCI_INDEX, OCI_MANIFEST,
    WASM_CONFIG, written,
};
use crate::error::PullError;
use crate::http::{Ask, next};
use crate::length;
use crate::referrers::fallback_tag;
use crate::repository::{RegistryRight, Repository};
use crate::store::ATTACHED_LAYER_BYTES_MAX;

/// Header of registries with a list of referrers ("Pushing Manifests with Subject").
const SUBJECT_HEADER: HeaderName = HeaderName::from_static("oci-subject");

/// The config of an artifact without one (image specification 1.1).
const EMPTY_JSON: &[u8] = b"{}";

/// A component to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The component.
    pub component: Bytes,
    /// Its config, JSON of the type [`WASM_CONFIG`].
    pub config: Vec<u8>,
    /// Annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
}

/// An artifact to attach to a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedArtifact {
    /// Its type.
    pub artifact_type: String,
    /// Its layers.
    pub layers: Vec<AttachedLayer>,
    /// Annotations of its manifest, which lists of referrers repeat.
    pub annotations: BTreeMap<String, String>,
}

/// A layer of an artifact to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedLayer {
    /// Its media type.
    pub media_type: String,
    /// Annotations of its descriptor.
    pub annotations: BTreeMap<String, String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Artifact {
    /// A component with the smallest config that other tools accept. The same component gives the
    /// same digest: the config's time is always the same.
    #[must_use]
    pub fn new(component: impl Into<Bytes>) -> Self {
        let component = component.into();
        let config = serde_json::json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [crate::digest_of(&component).as_str()],
        });
        Self { component, config: config.to_string().into_bytes(), annotations: BTreeMap::new() }
    }

    /// The digest that its manifest will have, for a signature before it is pushed.
    #[must_use]
    pub fn digest(&self) -> Digest {
        crate::digest_of(&self.manifest_bytes())
    }

    /// Its manifest, as it will be pushed.
    #[must_use]
    pub fn manifest_bytes(&self) -> Vec<u8> {
        let config = Descriptor::of(WASM_CONFIG, &self.config);
        let mut manifest = Manifest::new(None, config, vec![Descriptor::of(COMPONENT_LAYER, &self.component)]);
        manifest.annotations.clone_from(&self.annotations);
        written(&manifest)
    }
}

impl AttachedArtifact {
    fn manifest(&self, subject: Descriptor) -> Manifest {
        let layers = self.layers.iter().map(|layer| {
            let mut descriptor = Descriptor::of(&layer.media_type, &layer.bytes);
            descriptor.annotations.clone_from(&layer.annotations);
            descriptor
        });
        let config = Descriptor::of(EMPTY_CONFIG, EMPTY_JSON);
        let mut manifest = Manifest::new(Some(self.artifact_type.clone()), config, layers.collect());
        manifest.subject = Some(subject);
        manifest.annotations.clone_from(&self.annotations);
        manifest
    }
}

impl RegistryClient {
    /// Pushes a component under the reference's tag, if it has one, and attaches artifacts to it.
    /// The digest is that of its manifest.
    ///
    /// # Errors
    /// [`PullError`] if the registry does not accept it. The tag is written last, so that it never
    /// names half of a component, or one without its signatures.
    pub async fn push(
        &self,
        reference: &Reference,
        artifact: &Artifact,
        attached: &[AttachedArtifact],
    ) -> Result<Digest, PullError> {
        let repository = self.repository(reference, RegistryRight::Push)?;
        let bytes = length(&artifact.component);
        let max = self.bounds().component_bytes;
        if bytes > max {
            let digest = crate::digest_of(&artifact.component);
            return Err(PullError::ComponentTooLarge { digest, bytes, max });
        }
        repository.check_size("the config", length(&artifact.config), CONFIG_BYTES_MAX)?;
        self.push_blob(&repository, Bytes::copy_from_slice(&artifact.config)).await?;
        self.push_blob(&repository, artifact.component.clone()).await?;
        let manifest = artifact.manifest_bytes();
        let subject = Descriptor::of(OCI_MANIFEST, &manifest);
        let manifest = Bytes::from(manifest);
        self.push_manifest(&repository, subject.digest.as_str(), OCI_MANIFEST, manifest.clone()).await?;
        for artifact in attached {
            self.attach_one(&repository, artifact, subject.clone()).await?;
        }
        if let Some(tag) = reference.tag() {
            self.push_manifest(&repository, tag, OCI_MANIFEST, manifest).await?;
        }
        Ok(subject.digest)
    }

    /// Attaches artifacts to what the reference's digest, or else its tag, names. Returns their
    /// digests in the same order.
    ///
    /// # Errors
    /// [`PullError`] if the registry does not have the subject or refuses an artifact.
    pub async fn attach(&self, reference: &Reference, attached: &[AttachedArtifact]) -> Result<Vec<Digest>, PullError> {
        let repository = self.repository(reference, RegistryRight::Push)?;
        let name = reference.digest().map(Digest::as_str).or(reference.tag());
        let name = name.ok_or_else(|| PullError::NoDigest(reference.to_string()))?;
        let bytes = self.manifest(&repository, name).await?;
        let problem = |problem| PullError::Document { what: reference.to_string(), problem };
        let (media_type, default) = match Document::parse(&bytes).map_err(problem)? {
            Document::Manifest(manifest) => (manifest.media_type, OCI_MANIFEST),
            Document::Index(index) => (index.media_type, OCI_INDEX),
        };
        let subject = Descriptor::of(media_type.as_deref().unwrap_or(default), &bytes);
        let mut digests = Vec::new();
        for artifact in attached {
            digests.push(self.attach_one(&repository, artifact, subject.clone()).await?);
        }
        Ok(digests)
    }

    async fn attach_one(
        &self,
        repository: &Repository,
        artifact: &AttachedArtifact,
        subject: Descriptor,
    ) -> Result<Digest, PullError> {
        for layer in &artifact.layers {
            repository.check_size("an attached layer", length(&layer.bytes), ATTACHED_LAYER_BYTES_MAX)?;
        }
        self.push_blob(repository, Bytes::from_static(EMPTY_JSON)).await?;
        for layer in &artifact.layers {
            self.push_blob(repository, layer.bytes.clone()).await?;
        }
        let of = subject.digest.clone();
        let bytes = written(&artifact.manifest(subject));
        let mut entry = Descriptor::of(OCI_MANIFEST, &bytes);
        let digest = entry.digest.clone();
        let is_listed = self.push_manifest(repository, digest.as_str(), OCI_MANIFEST, bytes.into()).await?;
        if !is_listed {
            entry.artifact_type = Some(artifact.artifact_type.clone());
            entry.annotations.clone_from(&artifact.annotations);
            self.list_by_tag(repository, &of, entry).await?;
        }
        Ok(digest)
    }

    /// Adds an entry to the list under the tag, for registries without a list of their own.
    async fn list_by_tag(&self, repository: &Repository, subject: &Digest, entry: Descriptor) -> Result<(), PullError> {
        let tag = fallback_tag(subject);
        let mut entries = match self.manifest(repository, &tag).await {
            Ok(bytes) => {
                let index = Index::parse(&bytes);
                let problem = |problem| PullError::Document { what: format!("the list {tag}"), problem };
                let index = index.map_err(problem)?;
                if index.manifests.listed > index.manifests.len() {
                    // Writing it again would drop the others.
                    return Err(problem("it has too many entries to add one".to_owned()));
                }
                index.manifests.into_vec()
            }
            Err(PullError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        if entries.iter().any(|known| known.digest == entry.digest) {
            return Ok(());
        }
        entries.push(entry);
        let index = written(&Index::new(entries));
        self.push_manifest(repository, &tag, OCI_INDEX, index.into()).await?;
        Ok(())
    }

    async fn push_blob(&self, repository: &Repository, bytes: Bytes) -> Result<(), PullError> {
        let digest = crate::digest_of(&bytes);
        let answer = self.bounds().answer;
        let head = Ask::new(Method::HEAD, repository.url(&format!("blobs/{digest}")), answer);
        if self.ask(repository, head).await?.status == StatusCode::OK {
            return Ok(());
        }
        let start = Ask::new(Method::POST, repository.url("blobs/uploads/"), answer);
        let url = start.url.clone();
        let started = self.ask(repository, start).await?;
        let started = self.checked(repository, started, "").await?;
        let mut to = next(&url, &started.headers)?;
        drop(started);
        if !is_same_server(&to, &url) {
            let problem = "which is another server, for the upload";
            return Err(PullError::Redirect { host: shown(&url), to: shown(&to), problem });
        }
        to.query_pairs_mut().append_pair("digest", digest.as_str());
        let kind = HeaderValue::from_static("application/octet-stream");
        let mut put = Ask::new(Method::PUT, to, self.bounds().whole).header(CONTENT_TYPE, kind);
        put.body = bytes;
        let answer = self.ask(repository, put).await?;
        self.checked(repository, answer, "").await?;
        Ok(())
    }

    /// Pushes a manifest. True if the registry lists it as a referrer of its subject.
    async fn push_manifest(
        &self,
        repository: &Repository,
        name: &str,
        media_type: &'static str,
        bytes: Bytes,
    ) -> Result<bool, PullError> {
        let expected = crate::digest_of(&bytes);
        let kind = HeaderValue::from_static(media_type);
        let url = repository.url(&format!("manifests/{name}"));
        let mut put = Ask::new(Method::PUT, url, self.bounds().answer).header(CONTENT_TYPE, kind);
        put.body = bytes;
        let answer = self.ask(repository, put).await?;
        let answer = self.checked(repository, answer, "").await?;
        let said = answer.headers.get(&DIGEST_HEADER).and_then(|digest| Digest::parse(digest.to_str().ok()?).ok());
        match said.filter(|found| *found != expected) {
            Some(found) => Err(PullError::WrongDigest { host: repository.registry.clone(), expected, found }),
            None => Ok(answer.headers.contains_key(&SUBJECT_HEADER)),
        }
    }
}
