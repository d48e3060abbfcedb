//! Manifests and indexes: parsing them within bounds, and finding the component in them. Must not
//! hold: asking for them.
//!
//! The form is that of the OCI image specification 1.1, and of Docker's manifests of version 2,
//! schema 2. A document that could be read as both a manifest and an index is neither.
mod bounded;
mod media_types;
mod select;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer as _, Serialize};
use toolcell_policy::Digest;

pub use bounded::{ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX, LAYERS_MAX, TYPE_BYTES_MAX};
pub use media_types::{COMPONENT_LAYER, EMPTY_CONFIG, OCI_INDEX, OCI_MANIFEST, WASM_CONFIG};
pub(crate) use media_types::{COSIGN_TAGS, LAYOUT_VERSION, MANIFEST_ACCEPT};
pub(crate) use select::{component_layer, manifest_of_index, starts_compressed};

/// Largest manifest or index, in bytes: the size that registries have to take (distribution
/// specification, "Pushing Manifests").
pub const MANIFEST_BYTES_MAX: usize = 4 << 20;

/// Largest config, in bytes: a component's has its imports and exports.
pub const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// A descriptor of something that is named by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the bytes.
    #[serde(deserialize_with = "bounded::type_text")]
    pub media_type: String,
    /// Their digest.
    #[serde(deserialize_with = "bounded::digest", serialize_with = "bounded::write_digest")]
    pub digest: Digest,
    /// Their number.
    pub size: u64,
    /// Annotations by the author of the descriptor.
    #[serde(default, deserialize_with = "bounded::annotations", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Type of the artifact, for one that has a manifest.
    #[serde(default, deserialize_with = "bounded::optional_type", skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Platform that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// Platform of an index's entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Platform {
    /// `wasm` for components.
    #[serde(default, deserialize_with = "bounded::type_text")]
    pub architecture: String,
    /// `wasi`, `wasip1` or `wasip2` for components.
    #[serde(default, deserialize_with = "bounded::type_text")]
    pub os: String,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Version of the form.
    #[serde(deserialize_with = "bounded::version")]
    pub schema_version: u8,
    /// Its own media type.
    #[serde(default, deserialize_with = "bounded::optional_type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Type of the artifact.
    #[serde(default, deserialize_with = "bounded::optional_type", skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The config.
    pub config: Descriptor,
    /// The layers, at most [`LAYERS_MAX`].
    #[serde(deserialize_with = "bounded::layers")]
    pub layers: Vec<Descriptor>,
    /// Manifest that this one is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations by its author.
    #[serde(default, deserialize_with = "bounded::annotations", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Member of an index, which a manifest must not have.
    #[serde(default, skip_serializing)]
    manifests: bounded::Absent,
}

/// An index, or a manifest list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Version of the form.
    #[serde(deserialize_with = "bounded::version")]
    pub schema_version: u8,
    /// Its own media type.
    #[serde(default, deserialize_with = "bounded::optional_type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its first entries, and the number of all.
    #[serde(deserialize_with = "bounded::entries", serialize_with = "bounded::write_entries")]
    pub manifests: bounded::Entries,
    /// Annotations by its author.
    #[serde(default, deserialize_with = "bounded::annotations", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Members of a manifest, which an index must not have.
    #[serde(default, skip_serializing)]
    layers: bounded::Absent,
    #[serde(default, skip_serializing)]
    config: bounded::Absent,
}

/// Either of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Document {
    Manifest(Box<Manifest>),
    Index(Index),
}

impl Document {
    /// Reads a document; the error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Kind {
            manifests: Option<serde::de::IgnoredAny>,
        }
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(format!("it has more than {MANIFEST_BYTES_MAX} bytes"));
        }
        let kind: Kind = serde_json::from_slice(bytes).map_err(problem)?;
        if kind.manifests.is_some() {
            Index::parse(bytes).map(Self::Index)
        } else {
            Manifest::parse(bytes).map(Box::new).map(Self::Manifest)
        }
    }
}

impl Manifest {
    /// A manifest of these parts.
    pub(crate) fn new(artifact_type: Option<String>, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST.to_owned()),
            artifact_type,
            config,
            layers,
            subject: None,
            annotations: BTreeMap::new(),
            manifests: bounded::Absent,
        }
    }

    /// Reads a manifest; the error says what is wrong with it.
    ///
    /// # Errors
    /// One part of a sentence, with line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(problem)?;
        media_types::check_manifest(manifest.media_type.as_deref())?;
        manifest.check_sizes()?;
        Ok(manifest)
    }

    /// One digest has one size: what is checked under one must not be fetched under another.
    fn check_sizes(&self) -> Result<(), String> {
        let mut sizes = BTreeMap::new();
        let mut others = self.parts().filter(|part| *sizes.entry(&part.digest).or_insert(part.size) != part.size);
        match others.next() {
            Some(part) => Err(format!("it has two sizes for {}", part.digest)),
            None => Ok(()),
        }
    }

    /// Type of the artifact: its own, else that of its config (image specification, "Guidelines for
    /// Artifact Usage").
    #[must_use]
    pub fn kind(&self) -> &str {
        self.artifact_type.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(&self.config.media_type)
    }

    /// Everything that it names by a digest.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }
}

impl Index {
    /// An index of these entries.
    pub(crate) fn new(entries: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(OCI_INDEX.to_owned()),
            manifests: bounded::Entries::from(entries),
            annotations: BTreeMap::new(),
            layers: bounded::Absent,
            config: bounded::Absent,
        }
    }

    /// Reads an index; the error says what is wrong with it.
    ///
    /// # Errors
    /// One part of a sentence, with line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let index: Self = serde_json::from_slice(bytes).map_err(problem)?;
        media_types::check_index(index.media_type.as_deref())?;
        Ok(index)
    }
}

/// The first `max` digests of an index that was only read in part. Nothing is found if
/// other members come before the list.
pub(crate) fn digests_at_start(bytes: &[u8], max: usize) -> Vec<Digest> {
    let mut digests = Vec::new();
    // A truncated index ends with an error.
    let start = bounded::IndexStart { digests: &mut digests, max };
    let _ = serde_json::Deserializer::from_slice(bytes).deserialize_map(start);
    digests
}

impl Descriptor {
    /// A descriptor of these bytes.
    pub(crate) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::named(&crate::digest_of(bytes), media_type, crate::length(bytes))
    }

    /// A descriptor of something with this digest.
    pub(crate) fn named(digest: &Digest, media_type: &str, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: digest.clone(),
            size,
            annotations: BTreeMap::new(),
            artifact_type: None,
            platform: None,
        }
    }
}

/// Why a foreign text cannot be parsed: printable, short, on one line. Parsers quote what they
/// read, which may have megabytes.
pub(crate) fn problem(error: impl std::fmt::Display) -> String {
    const CHARS_SHOWN: usize = 300;
    let text = error.to_string();
    let mut shown: String =
        text.chars().take(CHARS_SHOWN).map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
    if text.len() > shown.len() {
        shown.push('…');
    }
    shown
}

/// The JSON of a document of this crate.
pub(crate) fn written<T: Serialize>(document: &T) -> Vec<u8> {
    // The maps have strings as keys, so writing cannot fail.
    serde_json::to_vec(document).unwrap_or_default()
}
