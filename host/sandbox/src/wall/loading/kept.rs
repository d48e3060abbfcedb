//! Loads that the host keeps for the next start: code, facts, lists of tools and functions.
//!
//! Code from a loader may be anything that the component wanted, so it is mapped only behind walls,
//! or in threads if `walls = "none"`.
use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::engine::KnownEngine;
use super::listing::ListName;
use crate::load::cache::CodeCache;
use crate::load::held::{CodeElsewhere, CodeOrigin, HeldComponent};
use crate::load::kept_facts;
use toolcell_wall::load::FUNCTIONS_BYTES_MAX;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, GuestEngine, SourceFacts};
use toolcell_wall::load::message::{FACTS_BYTES_MAX, LISTING_BYTES_MAX, ListReport};

/// The suffix of a file of functions.
const FUNCTIONS: &str = ".made";
/// Bytes of all files with this suffix: enough for a dozen interpreters.
const ALL_FUNCTIONS_BYTES_MAX: u64 = 512 << 20;

/// The part of the code cache that belongs to loaders.
pub(super) struct KeptLoads {
    cache: Arc<CodeCache>,
    engine: KnownEngine,
    /// True if code is made behind walls.
    has_walls: bool,
}

/// Facts that result from a load, in a file.
#[derive(Serialize, Deserialize)]
struct KeptFacts {
    cost: InstanceCost,
    engine: GuestEngine,
    facts: ComponentFacts,
}

impl KeptLoads {
    pub(super) fn new(cache: Arc<CodeCache>, stack_bytes: usize, has_walls: bool) -> Self {
        let engine = KnownEngine::new(Arc::clone(&cache), stack_bytes);
        Self { cache, engine, has_walls }
    }

    /// The engines of loaders.
    pub(super) fn engine(&self) -> &KnownEngine {
        &self.engine
    }

    /// The name of everything that the code of these bytes depends on: both engines, and the one
    /// that it is for. Code that is made behind walls is only mapped there.
    pub(super) fn name(&self, engines: EngineName, engine: GuestEngine, source: SourceFacts) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(engines.as_bytes()).update(source.digest.as_bytes());
        let is_async = engine == GuestEngine::Async;
        hasher.update(&[u8::from(source.adapted), u8::from(self.has_walls), u8::from(is_async)]);
        hasher.finalize().to_hex().to_string()
    }

    /// The names that code of these bytes may have, as nobody has read them here.
    fn names(&self, source: SourceFacts) -> impl Iterator<Item = (GuestEngine, String)> {
        let engines = self.engine.name().into_iter();
        engines.flat_map(move |engines| {
            GuestEngine::ALL.into_iter().map(move |engine| (engine, self.name(engines, engine, source)))
        })
    }

    /// True if code of these bytes is kept, valid or not.
    pub(super) fn has(&self, source: SourceFacts) -> bool {
        self.names(source).any(|(_, name)| self.cache.has(&code(&name)))
    }

    /// The component of these bytes, if its code and its facts are kept.
    pub(super) fn find(&self, source: SourceFacts) -> Option<HeldComponent> {
        self.names(source).find_map(|(engine, name)| self.find_for(engine, name, source))
    }

    fn find_for(&self, engine: GuestEngine, name: String, source: SourceFacts) -> Option<HeldComponent> {
        let kept: KeptFacts = kept_facts::find(&self.cache, &facts(&name), FACTS_BYTES_MAX as u64)?;
        let KeptFacts { cost, facts, .. } = Some(kept).filter(|kept| kept.engine == engine)?;
        let file = self.cache.find(&code(&name))?;
        let facts_of_code = CodeFacts { source, engine, cost };
        let code = CodeElsewhere { file, facts: facts_of_code, origin: CodeOrigin::Cache, name: Some(name) };
        Some(HeldComponent::new(code, facts))
    }

    /// Keeps code. Returns the kept file, which takes no memory.
    pub(super) fn keep_code(&self, name: &str, file: &File) -> Option<File> {
        self.cache.keep_code_of(&code(name), file)
    }

    pub(super) fn keep_facts(&self, name: &str, code: &CodeFacts, told: &ComponentFacts) {
        let content = KeptFacts { cost: code.cost, engine: code.engine, facts: told.clone() };
        kept_facts::keep(&self.cache, &facts(name), &content, FACTS_BYTES_MAX as u64);
    }

    /// The tools that a component listed under these limits, with these descriptions.
    pub(super) fn listing(&self, list: &ListName) -> Option<ListReport> {
        kept_facts::find(&self.cache, list.as_str(), LISTING_BYTES_MAX as u64).filter(ListReport::is_whole)
    }

    pub(super) fn keep_listing(&self, list: &ListName, listing: &ListReport) {
        kept_facts::keep(&self.cache, list.as_str(), listing, LISTING_BYTES_MAX as u64);
    }

    /// The functions that the last load of this component left, and their bytes.
    pub(super) fn functions(&self, engines: EngineName, component: &str) -> Option<(File, u64)> {
        let name = self.functions_name(engines, component);
        let bytes_max = FUNCTIONS_BYTES_MAX + MAC_BYTES;
        let file = self.cache.find_file(&name, FUNCTIONS, bytes_max)?;
        let bytes = file.metadata().ok()?.len().checked_sub(MAC_BYTES)?;
        Some((file, bytes))
    }

    pub(super) fn keep_functions(&self, engines: EngineName, component: &str, file: &File) {
        let name = self.functions_name(engines, component);
        drop(self.cache.keep_file(&name, FUNCTIONS, file, ALL_FUNCTIONS_BYTES_MAX));
    }

    fn functions_name(&self, engines: EngineName, component: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(engines.as_bytes()).update(&[u8::from(self.has_walls)]).update(component.as_bytes());
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

/// The prefix of names of lists.
pub(super) const LIST: &str = "list";
