//! Loads that the host keeps for the next start: code, facts, lists of tools and functions. Must
//! not hold: the form of a file, or its MAC (that is `load::cache`).
//!
//! Code from a loader may be anything that the component wanted, so it is mapped in sandbox
//! processes alone. Its names begin with `loaded-`, and the MAC covers them: a host that runs code
//! in its own process looks for other names.
use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcell_policy::Limits;

use super::message::{self, FACTS_BYTES_MAX, LISTING_BYTES_MAX, WireListing};
use crate::load::cache::CodeCache;
use crate::load::component::CodeFacts;
use crate::load::digest::Digest;
use crate::load::functions::handed::HANDED_BYTES_MAX;
use crate::load::held::{CodeElsewhere, ComponentFacts, HeldComponent};
use crate::load::precompiled::{CodeOrigin, name_elsewhere};
use crate::load::preview1;
use crate::load::survey::Survey;
use crate::shape::typed::WrittenDescriptions;
use crate::wall::message::{decode, encode};

/// The end of the name of a file of facts or of a list.
const TOLD: &str = ".told";
/// Bytes of all of those. Facts and a list of a Rust tool have some kilobytes.
const TOLD_BYTES_MAX: u64 = 128 << 20;
/// The end of the name of a file of functions.
const FUNCTIONS: &str = ".made";
/// Bytes of all of those: a dozen interpreters have as many.
const FUNCTIONS_BYTES_MAX: u64 = 512 << 20;

/// The part of the code cache that belongs to loaders.
pub(super) struct Kept {
    cache: Arc<CodeCache>,
    /// Everything that code depends on beside the component.
    engine: String,
}

/// Facts that come out of a load, in a file.
#[derive(Serialize, Deserialize)]
struct Told {
    survey: Survey,
    facts: ComponentFacts,
}

impl Kept {
    pub(super) fn new(cache: Arc<CodeCache>, engine: String) -> Self {
        Self { cache, engine }
    }

    /// The name of everything that the code of these bytes depends on.
    pub(super) fn name(&self, digest: Digest, bytes: &[u8]) -> String {
        name_elsewhere(&self.engine, digest, preview1::is_module(bytes))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.cache.has(&code(name))
    }

    /// The component of this name, if its code and its facts are kept.
    pub(super) fn find(&self, name: String, digest: Digest, bytes: &[u8]) -> Option<HeldComponent> {
        let told = self.cache.find_bytes(&facts(&name), TOLD, FACTS_BYTES_MAX as u64)?;
        let Told { survey, facts } = decode(&told).ok()?;
        let file = self.cache.find(&code(&name))?;
        let code = CodeFacts::new(digest, bytes.len() as u64, preview1::is_module(bytes), survey);
        let code = CodeElsewhere { file, facts: code, origin: CodeOrigin::Cache, name: Some(name) };
        Some(HeldComponent::elsewhere(code, facts))
    }

    /// Keeps code. Returns it as it is kept, which takes no memory.
    pub(super) fn keep_code(&self, name: &str, file: &File) -> Option<File> {
        self.cache.keep_code_of(&code(name), file);
        self.cache.find(&code(name))
    }

    pub(super) fn keep_facts(&self, name: &str, survey: Survey, told: &ComponentFacts) {
        if let Ok(bytes) = encode(&Told { survey, facts: told.clone() }) {
            self.cache.keep_bytes((&facts(name), TOLD), &bytes, TOLD_BYTES_MAX);
        }
    }

    /// The tools that a component listed under these limits, with these texts.
    pub(super) fn listing(&self, list: &ListName) -> Option<WireListing> {
        let bytes = self.cache.find_bytes(&list.0, TOLD, LISTING_BYTES_MAX as u64)?;
        decode(&bytes).ok().filter(WireListing::is_whole)
    }

    pub(super) fn keep_listing(&self, list: &ListName, listing: &WireListing) {
        if let Ok(bytes) = encode(listing) {
            self.cache.keep_bytes((&list.0, TOLD), &bytes, TOLD_BYTES_MAX);
        }
    }

    /// The functions that the last load of this component left, and their bytes.
    pub(super) fn functions(&self, component: &str) -> Option<(File, u64)> {
        let name = self.functions_name(component);
        let bytes_max = HANDED_BYTES_MAX + MAC_BYTES;
        let file = self.cache.find_file(&name, FUNCTIONS, bytes_max)?;
        let bytes = file.metadata().ok()?.len().checked_sub(MAC_BYTES)?;
        Some((file, bytes))
    }

    pub(super) fn keep_functions(&self, component: &str, file: &File) {
        self.cache.keep_file((&self.functions_name(component), FUNCTIONS), file, FUNCTIONS_BYTES_MAX);
    }

    fn functions_name(&self, component: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.engine.as_bytes()).update(b"\0").update(component.as_bytes());
        format!("made-{}", hasher.finalize().to_hex())
    }
}

/// Bytes of a MAC behind a file.
const MAC_BYTES: u64 = 32;

fn code(name: &str) -> String {
    format!("loaded-{name}")
}

fn facts(name: &str) -> String {
    format!("facts-{name}")
}

/// The name of everything that a list of tools depends on.
pub(super) struct ListName(String);

impl ListName {
    pub(super) fn of(name: &str, limits: &Limits, written: &WrittenDescriptions) -> Option<Self> {
        let of = encode(&(name, message::told(limits), written)).ok()?;
        Some(Self(format!("list-{}", blake3::hash(&of).to_hex())))
    }
}
