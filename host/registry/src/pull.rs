//! Pulling a component: its manifest, its layers, and what is attached to it.
use std::convert::Infallible;

use toolcell_policy::{Digest, Reference};

use crate::client::RegistryClient;
use crate::document::{
    CONFIG_BYTES_MAX, Descriptor, Document, Manifest, OCI_INDEX, OCI_MANIFEST, component_layer, manifest_of_index,
};
use crate::download::{Download, blocking};
use crate::error::PullError;
use crate::length;
use crate::referrers::{Fetched, Skipped};
use crate::repository::{RegistryRight, Repository};
use crate::store::{ATTACHED_BYTES_MAX, ATTACHED_LAYER_BYTES_MAX, Attached, Store, component_entry, of_repository};

/// Most bytes of all layers besides the component: as many as may be attached to it.
const BESIDE_BYTES_MAX: u64 = ATTACHED_BYTES_MAX;

/// Decides whether to pull a component, by the digest of its manifest and the attached artifacts.
pub type Accept<'a, R> = dyn Fn(&Digest, &[&Attached]) -> Result<(), R> + Send + Sync + 'a;

/// State of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes received, those of an earlier download included.
    pub bytes: u64,
    /// Bytes in total.
    pub total: u64,
}

/// A pulled component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// The digest that was asked for: of a manifest, or of an index.
    pub digest: Digest,
    /// Digest of the manifest.
    pub manifest: Digest,
    /// Digest of the component.
    pub layer: Digest,
    /// Size of the component, in bytes.
    pub bytes: u64,
    /// Bytes of layers that were downloaded; 0 if the store had them.
    pub downloaded: u64,
    /// Number of attached artifacts that were stored.
    pub attached: usize,
    /// Artifacts that were listed but not stored, with the reason.
    pub skipped: Vec<Skipped>,
    /// At least how many listed artifacts were not examined, because there are too many.
    pub not_looked_at: usize,
}

/// A component that was refused because of its attached artifacts. None of it is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unaccepted<R> {
    /// Why.
    pub reason: R,
    /// Artifacts that were listed but are invalid, with the reason.
    pub skipped: Vec<Skipped>,
    /// At least how many listed artifacts were not examined.
    pub not_looked_at: usize,
}

/// The documents of a component.
struct Documents {
    /// The index, if the digest is that of one.
    index: Option<(Vec<u8>, String)>,
    digest: Digest,
    manifest_bytes: Vec<u8>,
    manifest: Manifest,
}

impl RegistryClient {
    /// Downloads a component and everything attached to it into the store. The reference needs a
    /// digest, which [`RegistryClient::resolve`] finds. If the store has the component, only the
    /// attached artifacts are requested again.
    ///
    /// # Errors
    /// [`PullError::NoDigest`], [`PullError::TagMoved`] if the digest is gone and the tag names
    /// another one, [`PullError::Late`] if all of it takes longer than [`Bounds::pull`], and those
    /// of each step. Downloaded bytes are kept unless they were wrong.
    ///
    /// [`Bounds::pull`]: crate::Bounds::pull
    pub async fn pull(
        &self,
        reference: &Reference,
        store: &Store,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Pulled, PullError> {
        let all = |_: &Digest, _: &[&Attached]| Ok::<(), Infallible>(());
        match self.pull_if(reference, store, progress, &all).await? {
            Ok(pulled) => Ok(pulled),
            Err(Unaccepted { reason, .. }) => match reason {},
        }
    }

    /// [`RegistryClient::pull`], if `accept` agrees. It gets the digest of the manifest and the
    /// attached artifacts: those of the registry, and those of the store if it has the component.
    /// No layer of the component is requested before.
    ///
    /// # Errors
    /// Those of [`RegistryClient::pull`].
    pub async fn pull_if<R>(
        &self,
        reference: &Reference,
        store: &Store,
        progress: &(dyn Fn(Progress) + Send + Sync),
        accept: &Accept<'_, R>,
    ) -> Result<Result<Pulled, Unaccepted<R>>, PullError> {
        let digest = reference.digest().ok_or_else(|| PullError::NoDigest(reference.to_string()))?;
        let repository = self.repository(reference, RegistryRight::Pull)?;
        let within = self.bounds().pull;
        let late = |_| PullError::Late { host: repository.registry.clone(), step: "give the component", within };
        let pull = self.pull_from(&repository, reference, digest, store, progress, accept);
        tokio::time::timeout(within, pull).await.map_err(late)?
    }

    async fn pull_from<R>(
        &self,
        repository: &Repository,
        reference: &Reference,
        digest: &Digest,
        store: &Store,
        progress: &(dyn Fn(Progress) + Send + Sync),
        accept: &Accept<'_, R>,
    ) -> Result<Result<Pulled, Unaccepted<R>>, PullError> {
        let own = store.clone();
        let _adding = blocking(move || own.adding()).await?;
        let documents = self.documents(repository, reference, digest, store).await?;
        let layer = component_layer(&documents.digest, &documents.manifest)?;
        let parts = self.checked_parts(repository, &documents.manifest, layer)?;
        // Signatures of the manifest come first, so that a long list for its index cannot crowd
        // them out.
        let mut subjects = vec![documents.digest.clone()];
        if documents.digest != *digest {
            subjects.push(digest.clone());
        }
        let found = self.fetch_referrers(repository, &subjects).await?;
        // Imported artifacts may count as well.
        let mut stored = store.attached(digest, &reference.name()).unwrap_or_default();
        let is_there = |one: &Attached| found.fetched.iter().any(|other| other.attached.digest == one.digest);
        stored.retain(|one| !is_there(one));
        let attached: Vec<&Attached> = found.fetched.iter().map(|one| &one.attached).chain(&stored).collect();
        if let Err(reason) = accept(&documents.digest, &attached) {
            return Ok(Err(Unaccepted { reason, skipped: found.skipped, not_looked_at: found.not_looked_at }));
        }
        let mut downloaded = 0_u64;
        for part in parts {
            let is_component = std::ptr::eq(part, layer);
            let silent = |_| ();
            let progress = if is_component { progress } else { &silent };
            let download = Download { client: self, repository, store, part, is_component, progress };
            downloaded = downloaded.saturating_add(download.run().await?);
        }
        let pulled = Pulled {
            digest: digest.clone(),
            manifest: documents.digest.clone(),
            layer: layer.digest.clone(),
            bytes: layer.size,
            downloaded,
            attached: found.fetched.len(),
            skipped: found.skipped,
            not_looked_at: found.not_looked_at,
        };
        let store = store.clone();
        let name = reference.name();
        let digest = digest.clone();
        blocking(move || keep(&store, &name, &digest, documents, found.fetched)).await?;
        Ok(Ok(pulled))
    }

    /// The documents of a component, from the store where it has them.
    async fn documents(
        &self,
        repository: &Repository,
        reference: &Reference,
        digest: &Digest,
        store: &Store,
    ) -> Result<Documents, PullError> {
        let bytes = match store.document(digest) {
            Some(bytes) => bytes,
            None => self.first_document(repository, reference, digest).await?,
        };
        let index = match document(digest, &bytes)? {
            Document::Manifest(manifest) => {
                return Ok(Documents {
                    index: None,
                    digest: digest.clone(),
                    manifest_bytes: bytes,
                    manifest: *manifest,
                });
            }
            Document::Index(index) => index,
        };
        let entry = manifest_of_index(digest, &index)?;
        let manifest_bytes = match store.document(&entry.digest) {
            Some(bytes) => bytes,
            None => self.manifest(repository, entry.digest.as_str()).await?,
        };
        let said = entry.size;
        let found = length(&manifest_bytes);
        let host = repository.registry.clone();
        if found > said {
            return Err(PullError::Longer { host, digest: entry.digest.clone(), said });
        }
        if found < said {
            return Err(PullError::Shorter { host, digest: entry.digest.clone(), said, found });
        }
        let Document::Manifest(manifest) = document(&entry.digest, &manifest_bytes)? else {
            let problem = "an index within an index is not followed".to_owned();
            return Err(PullError::Document { what: entry.digest.to_string(), problem });
        };
        let media_type = index.media_type.clone().unwrap_or_else(|| OCI_INDEX.to_owned());
        let digest = entry.digest.clone();
        let manifest = *manifest;
        Ok(Documents { index: Some((bytes, media_type)), digest, manifest_bytes, manifest })
    }

    /// The document of the requested digest. If it is gone, its tag may tell why.
    async fn first_document(
        &self,
        repository: &Repository,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Vec<u8>, PullError> {
        let gone = match (self.manifest(repository, digest.as_str()).await, reference.tag()) {
            (Err(gone @ PullError::NotFound { .. }), Some(tag)) => (gone, tag),
            (result, _) => return result,
        };
        match self.digest_of_tag(repository, gone.1).await {
            Ok(now) if now != *digest => Err(PullError::TagMoved { reference: reference.to_string(), now }),
            _ => Err(gone.0),
        }
    }

    /// The parts of a manifest, each with a size that is within its bound.
    fn checked_parts<'m>(
        &self,
        repository: &Repository,
        manifest: &'m Manifest,
        layer: &'m Descriptor,
    ) -> Result<Vec<&'m Descriptor>, PullError> {
        let max = self.bounds().component_bytes;
        if layer.size > max {
            return Err(PullError::ComponentTooLarge { digest: layer.digest.clone(), bytes: layer.size, max });
        }
        repository.check_size("the config", manifest.config.size, CONFIG_BYTES_MAX)?;
        // Only the chosen descriptor is left out: another one with its digest is downloaded too.
        let others = manifest.layers.iter().filter(|other| !std::ptr::eq(*other, layer));
        let mut sum = 0_u64;
        for other in others {
            repository.check_size("a layer next to the component", other.size, ATTACHED_LAYER_BYTES_MAX)?;
            sum = sum.saturating_add(other.size);
        }
        repository.check_size("everything next to the component", sum, BESIDE_BYTES_MAX)?;
        Ok(manifest.parts().collect())
    }
}

fn document(digest: &Digest, bytes: &[u8]) -> Result<Document, PullError> {
    Document::parse(bytes).map_err(|problem| PullError::Document { what: digest.to_string(), problem })
}

/// Stores the documents, and records everything in one step.
fn keep(
    store: &Store,
    name: &str,
    digest: &Digest,
    documents: Documents,
    fetched: Vec<Fetched>,
) -> Result<(), crate::error::StoreError> {
    store.add_blob(&documents.digest, &documents.manifest_bytes)?;
    let (bytes, media_type) = match &documents.index {
        Some((bytes, media_type)) => (bytes, media_type.as_str()),
        None => (&documents.manifest_bytes, documents.manifest.media_type.as_deref().unwrap_or(OCI_MANIFEST)),
    };
    store.add_blob(digest, bytes)?;
    let mut attached = Vec::new();
    for one in fetched {
        let (config, bytes) = &one.config;
        store.add_blob(config, bytes)?;
        for (digest, layer) in one.layers.iter().zip(&one.attached.layers) {
            store.add_blob(digest, &layer.bytes)?;
        }
        store.add_blob(&one.attached.digest, &one.attached.manifest_bytes)?;
        attached.push(of_repository(one.entry, name));
    }
    store.record(vec![component_entry(digest, media_type, length(bytes), Some(name))], attached)
}
