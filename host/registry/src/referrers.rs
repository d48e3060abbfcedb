//! Artifacts that are attached to a component: signatures, attestations, lists of parts.
//!
//! They are found in three places: the registry's list of referrers (distribution specification
//! 1.1, "Listing Referrers"), the tag `sha256-<hex>` where it has none ("Referrers Tag Schema"),
//! and the tags `sha256-<hex>.sig` and `.att` of cosign 2. Lists say what artifacts are, and may be
//! wrong: only the artifact's own manifest counts.
use std::collections::BTreeSet;

use ::http::header::ACCEPT;
use ::http::{HeaderValue, Method};
use toolcell_policy::{Digest, Reference};

use crate::client::RegistryClient;
use crate::document::{
    CONFIG_BYTES_MAX, COSIGN_TAGS, Descriptor, Document, Index, MANIFEST_BYTES_MAX, Manifest, OCI_INDEX,
    digests_at_start,
};
use crate::error::PullError;
use crate::http::Ask;
use crate::length;
use crate::listing::{PAGES_MAX, following};
use crate::repository::{RegistryRight, Repository};
use crate::store::{ATTACHED_BYTES_MAX, ATTACHED_LAYER_BYTES_MAX, Attached, StoredLayer, attached_entry};

/// Most referrers of a list that are read: anybody who may push to a repository can add to it.
pub const REFERRERS_LISTED_MAX: usize = 1_000;

/// Most referrers that are examined, each with two requests or more. Components have one for each
/// signer, and a few that describe them.
pub const REFERRERS_LOOKED_AT_MAX: usize = 64;

/// Largest manifest of a referrer, in bytes: it names some layers, and its annotations are short.
/// Those under cosign's tags hold certificates of each signer, and may be as large as any manifest.
pub const ATTACHED_MANIFEST_BYTES_MAX: usize = 1 << 20;

/// An artifact that was listed and not used, or an invalid list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its digest; of a list, that of what it is attached to.
    pub digest: Digest,
    /// One sentence.
    pub reason: String,
}

/// Artifacts that are attached to a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Referrers {
    /// The valid ones.
    pub found: Vec<Attached>,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// At least how many further ones are listed.
    pub not_looked_at: usize,
}

/// An attached artifact with everything that storing it needs.
pub(crate) struct Fetched {
    pub(crate) attached: Attached,
    /// The store's entry for it.
    pub(crate) entry: Descriptor,
    pub(crate) config: (Digest, Vec<u8>),
    /// Digests of its layers, which [`Attached`] holds.
    pub(crate) layers: Vec<Digest>,
}

/// Everything that was found for some subjects.
#[derive(Default)]
pub(crate) struct FoundReferrers {
    pub(crate) fetched: Vec<Fetched>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) not_looked_at: usize,
    seen: BTreeSet<(Digest, Digest)>,
    bytes: u64,
}

impl RegistryClient {
    /// Artifacts that are attached to the digest of a reference. They are not stored;
    /// [`RegistryClient::pull`] does that.
    ///
    /// # Errors
    /// [`PullError::NoDigest`], and [`PullError`] where the registry cannot be asked.
    pub async fn referrers(&self, reference: &Reference) -> Result<Referrers, PullError> {
        let digest = reference.digest().ok_or_else(|| PullError::NoDigest(reference.to_string()))?;
        let repository = self.repository(reference, RegistryRight::Pull)?;
        let FoundReferrers { fetched, skipped, not_looked_at, .. } =
            self.fetch_referrers(&repository, std::slice::from_ref(digest)).await?;
        Ok(Referrers { found: fetched.into_iter().map(|one| one.attached).collect(), skipped, not_looked_at })
    }

    /// Artifacts attached to these subjects, in this order, within one bound and one time limit for
    /// all.
    pub(crate) async fn fetch_referrers(
        &self,
        repository: &Repository,
        subjects: &[Digest],
    ) -> Result<FoundReferrers, PullError> {
        let within = self.bounds().attached;
        let late = |_| PullError::Late { host: repository.registry.clone(), step: "give what is attached", within };
        tokio::time::timeout(within, self.find_attached(repository, subjects)).await.map_err(late)?
    }

    async fn find_attached(&self, repository: &Repository, subjects: &[Digest]) -> Result<FoundReferrers, PullError> {
        let mut found = FoundReferrers::default();
        for subject in subjects {
            // Those of cosign 2 come first: a long list of referrers cannot crowd them out.
            for end in COSIGN_TAGS {
                self.artifact_of_tag(repository, subject, end, &mut found).await?;
            }
            let ReferrerList { entries, unlisted, problem } = self.listed(repository, subject).await?;
            found.not_looked_at = found.not_looked_at.saturating_add(unlisted);
            // An invalid list is skipped and reported like an artifact.
            found.skipped.extend(problem.map(|reason| Skipped { digest: subject.clone(), reason }));
            for digest in entries {
                if !found.seen.insert((digest.clone(), subject.clone())) {
                    continue;
                }
                if found.seen.len() > REFERRERS_LOOKED_AT_MAX {
                    found.not_looked_at = found.not_looked_at.saturating_add(1);
                    continue;
                }
                self.examine(repository, subject, digest, &mut found).await?;
            }
        }
        Ok(found)
    }

    /// The list of referrers, up to its bound.
    async fn listed(&self, repository: &Repository, subject: &Digest) -> Result<ReferrerList, PullError> {
        let mut url = repository.url(&format!("referrers/{subject}"));
        let mut listed = ReferrerList::default();
        for page in 1..=PAGES_MAX {
            let ask = Ask::new(Method::GET, url.clone(), self.bounds().answer)
                .header(ACCEPT, HeaderValue::from_static(OCI_INDEX));
            let answer = self.ask(repository, ask).await?;
            // Registries without this API answer in several ways.
            if page == 1 && matches!(answer.status.as_u16(), 400 | 403..=406 | 415 | 501) {
                return self.listed_by_tag(repository, subject).await;
            }
            let answer = self.checked(repository, answer, "/referrers").await?;
            let following = following(&url, &answer.headers);
            let (bytes, is_whole) = answer.beginning(MANIFEST_BYTES_MAX).await?;
            listed.take(subject, &bytes, is_whole);
            let is_over = listed.unlisted > 0 || listed.problem.is_some();
            let may_go_on = !is_over && listed.entries.len() < REFERRERS_LISTED_MAX && page < PAGES_MAX;
            match following {
                Some(following) if may_go_on => url = following?,
                // At least one more: its page is not requested.
                Some(_) => {
                    listed.unlisted = listed.unlisted.saturating_add(1);
                    break;
                }
                None => break,
            }
        }
        Ok(listed)
    }

    async fn listed_by_tag(&self, repository: &Repository, subject: &Digest) -> Result<ReferrerList, PullError> {
        let tag = fallback_tag(subject);
        let answer = self.ask(repository, self.manifest_ask(Method::GET, repository, &tag)).await?;
        let mut listed = ReferrerList::default();
        match self.checked(repository, answer, &format!(":{tag}")).await {
            Ok(answer) => {
                let (bytes, is_whole) = answer.beginning(MANIFEST_BYTES_MAX).await?;
                listed.take(subject, &bytes, is_whole);
            }
            Err(PullError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(listed)
    }

    /// The artifact under a tag of cosign 2. Its manifest names no subject: the tag alone does.
    async fn artifact_of_tag(
        &self,
        repository: &Repository,
        subject: &Digest,
        end: &str,
        found: &mut FoundReferrers,
    ) -> Result<(), PullError> {
        let tag = format!("{}{end}", fallback_tag(subject));
        let bytes = match self.manifest(repository, &tag).await {
            Ok(bytes) => bytes,
            Err(PullError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let digest = crate::digest_of(&bytes);
        if !found.seen.insert((digest.clone(), subject.clone())) {
            return Ok(());
        }
        let fetched = match manifest(&bytes) {
            Ok(manifest) => self.fetch_parts(repository, subject, digest.clone(), bytes, manifest, found).await,
            Err(problem) => Err(PullError::Document { what: tag, problem }),
        };
        keep(fetched, digest, found)
    }

    async fn examine(
        &self,
        repository: &Repository,
        subject: &Digest,
        digest: Digest,
        found: &mut FoundReferrers,
    ) -> Result<(), PullError> {
        let fetched = match self.manifest_within(repository, digest.as_str(), ATTACHED_MANIFEST_BYTES_MAX).await {
            Ok(bytes) => match manifest_with_subject(&bytes, subject) {
                Ok(manifest) => self.fetch_parts(repository, subject, digest.clone(), bytes, manifest, found).await,
                Err(problem) => Err(PullError::Document { what: digest.to_string(), problem }),
            },
            Err(error) => Err(error),
        };
        keep(fetched, digest, found)
    }

    /// Downloads the config and the layers of an attached artifact into memory.
    async fn fetch_parts(
        &self,
        repository: &Repository,
        subject: &Digest,
        digest: Digest,
        manifest_bytes: Vec<u8>,
        manifest: Manifest,
        found: &mut FoundReferrers,
    ) -> Result<Fetched, PullError> {
        repository.check_size("the config of an attached artifact", manifest.config.size, CONFIG_BYTES_MAX)?;
        for layer in &manifest.layers {
            repository.check_size("a layer of an attached artifact", layer.size, ATTACHED_LAYER_BYTES_MAX)?;
        }
        let of_manifest = length(&manifest_bytes);
        let sizes = manifest.parts().map(|part| part.size);
        let bytes = sizes.fold(found.bytes.saturating_add(of_manifest), u64::saturating_add);
        repository.check_size("everything attached to the component", bytes, ATTACHED_BYTES_MAX)?;
        found.bytes = bytes;
        let entry = attached_entry(&digest, &manifest, of_manifest, subject);
        let artifact_type = manifest.kind().to_owned();
        let config = (manifest.config.digest.clone(), self.small_blob(repository, &manifest.config).await?);
        let mut layers = Vec::new();
        let mut digests = Vec::new();
        for layer in manifest.layers {
            let bytes = self.small_blob(repository, &layer).await?;
            layers.push(StoredLayer { media_type: layer.media_type, annotations: layer.annotations, bytes });
            digests.push(layer.digest);
        }
        let attached = Attached { digest, subject: subject.clone(), artifact_type, manifest_bytes, layers };
        Ok(Fetched { attached, entry, config, layers: digests })
    }

    /// A blob of some megabytes at most, checked.
    async fn small_blob(&self, repository: &Repository, part: &Descriptor) -> Result<Vec<u8>, PullError> {
        let url = repository.url(&format!("blobs/{}", part.digest));
        let answer = self.ask(repository, Ask::new(Method::GET, url, self.bounds().answer)).await?;
        let answer = self.checked(repository, answer, &format!("@{}", part.digest)).await?;
        let max = usize::try_from(part.size).unwrap_or(usize::MAX);
        let bytes = answer.document("a part of an attached artifact", max).await?;
        repository.check_digest(&part.digest, &bytes)?;
        Ok(bytes)
    }
}

/// The tag of a list of referrers: `sha256-<hex>`.
pub(crate) fn fallback_tag(subject: &Digest) -> String {
    format!("sha256-{}", subject.hex())
}

/// A list of referrers, up to its bound: anybody who may push can add to it, or make it long.
#[derive(Default)]
struct ReferrerList {
    /// Digests up to the bound. The list's other fields are ignored.
    entries: Vec<Digest>,
    /// At least how many further ones there are.
    unlisted: usize,
    /// Why the list is invalid.
    problem: Option<String>,
}

impl ReferrerList {
    /// Takes a page, or its beginning if it is too long.
    fn take(&mut self, subject: &Digest, bytes: &[u8], is_whole: bool) {
        let room = REFERRERS_LISTED_MAX.saturating_sub(self.entries.len());
        if !is_whole {
            self.entries.extend(digests_at_start(bytes, room));
            self.unlisted = self.unlisted.saturating_add(1);
            return;
        }
        match Index::parse(bytes) {
            Ok(index) => {
                let of_page = index.manifests.listed;
                self.entries.extend(index.manifests.into_vec().into_iter().take(room).map(|entry| entry.digest));
                self.unlisted = self.unlisted.saturating_add(of_page.saturating_sub(room));
            }
            Err(problem) => {
                let what = format!("the list of referrers of {subject}");
                self.problem = Some(PullError::Document { what, problem }.to_string());
            }
        }
    }
}

fn manifest(bytes: &[u8]) -> Result<Manifest, String> {
    match Document::parse(bytes)? {
        Document::Manifest(manifest) => Ok(*manifest),
        Document::Index(_) => Err("it is an index".to_owned()),
    }
}

fn manifest_with_subject(bytes: &[u8], subject: &Digest) -> Result<Manifest, String> {
    let manifest = manifest(bytes)?;
    let is_of_it = manifest.subject.as_ref().is_some_and(|of| of.digest == *subject);
    if is_of_it { Ok(manifest) } else { Err("it is attached to something else".to_owned()) }
}

/// Keeps an artifact, or why it was skipped. Only a failed connection is an error: who signed a
/// component must not depend on the state of the network.
fn keep(fetched: Result<Fetched, PullError>, digest: Digest, found: &mut FoundReferrers) -> Result<(), PullError> {
    match fetched {
        Ok(fetched) => found.fetched.push(fetched),
        Err(error) if error.is_of_the_connection() => return Err(error),
        Err(error) => found.skipped.push(Skipped { digest, reason: error.to_string() }),
    }
    Ok(())
}
