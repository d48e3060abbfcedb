//! WebAssembly components from OCI registries, in a store on disk, and pushing them.
//!
//! Holds the protocol of registries (OCI distribution specification 1.1), what a component looks
//! like in one, searches in registries of MCP servers, and the store: an OCI image layout that
//! processes share. Must not hold: the manifest, MCP, wasmtime, or any decision on who is trusted.
//! Signatures are stored next to a component as they came, and are only bytes here.
//!
//! The crate has an HTTP client of its own. Those of `oci-client` and its like read whole bodies
//! into memory before they look at their length, and follow any redirect. Here each body has a size
//! and a least rate, each address is checked before it is connected to, and credentials stay with
//! the host that they are for. Each request has a connection of its own.
//!
//! ```no_run
//! use toolcell_policy::Reference;
//! use toolcell_registry::{RegistryClient, RegistryOptions, Store};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = RegistryClient::new(RegistryOptions::from_environment());
//! let store = Store::open("components".as_ref())?;
//! let reference = Reference::parse("oci://ghcr.io/example/weather:1.2.0")?;
//! let digest = client.resolve(&reference).await?;
//! client.pull(&reference.with_digest(digest.clone()), &store, &|_| ()).await?;
//! let component = store.component(&digest)?;
//! # drop(component); Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod auth;
mod catalogue;
mod client;
mod document;
mod download;
mod error;
mod http;
mod listing;
mod packages;
mod pull;
mod push;
mod referrers;
mod repository;
mod settings;
mod store;

pub use auth::Credential;
pub use catalogue::{
    FoundPackage, FoundServer, Hint, MCP_REGISTRY, SEARCH_PAGES_MAX, SEARCH_WORD_CHARS_MAX, SearchResult,
};
pub use client::{RegistryClient, TAGS_MAX};
pub use document::{
    ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX, COMPONENT_LAYER, CONFIG_BYTES_MAX, Descriptor, EMPTY_CONFIG, Index,
    LAYERS_MAX, MANIFEST_BYTES_MAX, Manifest, OCI_INDEX, OCI_MANIFEST, Platform, TYPE_BYTES_MAX, WASM_CONFIG,
};
pub use error::{Compression, PullError, StoreError};
pub use listing::Tags;
pub use pull::{Accept, Progress, Pulled, Unaccepted};
pub use push::{Artifact, AttachedArtifact, AttachedLayer};
pub use referrers::{ATTACHED_MANIFEST_BYTES_MAX, REFERRERS_LISTED_MAX, REFERRERS_LOOKED_AT_MAX, Referrers, Skipped};
pub use settings::{Bounds, RegistryOptions, RegistrySettings};
pub use store::{
    ATTACHED_BYTES_MAX, ATTACHED_LAYER_BYTES_MAX, Attached, COMPONENT_BYTES_MAX, Fault, IMPORT_BYTES_MAX, Imported,
    Listed, Removed, STORE_ENTRIES_MAX, Store, StoredComponent, StoredLayer,
};

use sha2::{Digest as _, Sha256};
use toolcell_policy::Digest;

/// The digest of these bytes.
#[must_use]
pub fn digest_of(bytes: &[u8]) -> Digest {
    finished(Sha256::new_with_prefix(bytes))
}

/// The digest of everything that was hashed.
fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn finished(hash: Sha256) -> Digest {
    Digest::of_sha256(hash.finalize().into())
}
