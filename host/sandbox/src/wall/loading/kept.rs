//! Loads that the host keeps for the next start: code, facts, lists of tools and functions. Must
//! not hold: the form of a file, or its MAC (that is `load::cache`).
//!
//! Code from a loader may be anything that the component wanted, so it is mapped behind walls
//! alone, or in threads where the manifest wants none.
use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{FACTS_BYTES_MAX, LISTING_BYTES_MAX, WireListing};
use crate::load::cache::CodeCache;
use crate::load::functions::handed::HANDED_BYTES_MAX;
use crate::load::held::{CodeElsewhere, CodeOrigin, HeldComponent};
use crate::load::precompiled;
use crate::load::told;
use crate::run::listing::ListName;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, SourceFacts};

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
    cost: InstanceCost,
    facts: ComponentFacts,
}

impl Kept {
    pub(super) fn new(cache: Arc<CodeCache>, engine: String) -> Self {
        Self { cache, engine }
    }

    /// The name of everything that the code of these bytes depends on.
    pub(super) fn name(&self, source: SourceFacts) -> String {
        precompiled::name(&self.engine, source.digest, source.adapted)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.cache.has(&code(name))
    }

    /// The component of these bytes, if its code and its facts are kept.
    pub(super) fn find(&self, source: SourceFacts) -> Option<HeldComponent> {
        let name = self.name(source);
        let Told { cost, facts } = told::find(&self.cache, &facts(&name), FACTS_BYTES_MAX as u64)?;
        let file = self.cache.find(&code(&name))?;
        let code =
            CodeElsewhere { file, facts: CodeFacts { source, cost }, origin: CodeOrigin::Cache, name: Some(name) };
        Some(HeldComponent::new(code, facts))
    }

    /// Keeps code. Returns it as it is kept, which takes no memory.
    pub(super) fn keep_code(&self, name: &str, file: &File) -> Option<File> {
        self.cache.keep_code_of(&code(name), file)
    }

    pub(super) fn keep_facts(&self, name: &str, cost: InstanceCost, told: &ComponentFacts) {
        let content = Told { cost, facts: told.clone() };
        told::keep(&self.cache, &facts(name), &content, FACTS_BYTES_MAX as u64);
    }

    /// The tools that a component listed under these limits, with these texts.
    pub(super) fn listing(&self, list: &ListName) -> Option<WireListing> {
        told::find(&self.cache, list.as_str(), LISTING_BYTES_MAX as u64).filter(WireListing::is_whole)
    }

    pub(super) fn keep_listing(&self, list: &ListName, listing: &WireListing) {
        told::keep(&self.cache, list.as_str(), listing, LISTING_BYTES_MAX as u64);
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
        let name = self.functions_name(component);
        drop(self.cache.keep_file((&name, FUNCTIONS), file, FUNCTIONS_BYTES_MAX));
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

/// Begins the names of lists.
pub(super) const LIST: &str = "list";
