//! The relay of recordings: loaded once, when a component's calls may be recorded.
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use toolcell_policy::{Diagnostic, is_later_wasi};
use toolcell_sandbox::{ComponentDigest, GuestEngine, HeldComponent};

use super::CatalogBuilder;
use super::compiler::Compilation;
use crate::catalog::recordable::RecordedComponents;
use crate::catalog::{CatalogParts, LoadedComponent};

/// Longest time to compile the relay. It takes a second.
const COMPILES_WITHIN: Duration = Duration::from_secs(60);

/// Bytes of memory of its compiler, and of what it runs.
const MEMORY_BYTES: (u64, u64) = (1 << 30, 64 << 20);

/// The relays that were needed.
pub(in crate::catalog) type Relays = HashMap<RelayKey, Arc<HeldComponent>>;

/// What a relay is made for: a recorded call makes an instance of it, which costs more the more it
/// has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::catalog) struct RelayKey {
    engine: GuestEngine,
    /// Interfaces without versions, in order.
    imports: Vec<String>,
}

impl RelayKey {
    /// For the calls of this component.
    pub(in crate::catalog) fn of(component: &HeldComponent) -> Self {
        let name = |import: &String| import.split_once('@').map_or(import.as_str(), |(name, _)| name).to_owned();
        let imports: BTreeSet<String> = component.inspection().imports().iter().map(name).collect();
        Self { engine: component.engine(), imports: Vec::from_iter(imports) }
    }
}

impl CatalogBuilder {
    /// The relays of those of these components whose calls may be recorded. Without one, calls are
    /// served and not recorded.
    pub(super) fn relays(
        &self,
        recorded: RecordedComponents,
        parts: &CatalogParts,
        problems: &mut Vec<Diagnostic>,
    ) -> Relays {
        let recorded: Vec<_> = parts.components.iter().filter(|component| recorded.has(component)).collect();
        if recorded.is_empty() {
            return Relays::default();
        }
        let keys: BTreeSet<RelayKey> = recorded.iter().map(|component| RelayKey::of(&component.component)).collect();
        let mut relays = self.relays.lock();
        // Those of components that are gone go as well.
        relays.retain(|key, _| keys.contains(key));
        for key in keys {
            if relays.contains_key(&key) {
                continue;
            }
            match self.load_relay(&key) {
                Ok(loaded) => drop(relays.insert(key, Arc::new(loaded))),
                Err(problem) => {
                    let message = format!("no call is recorded: {problem}");
                    problems.push(Diagnostic::warning("recordings::unavailable", message));
                }
            }
        }
        relays.clone()
    }

    fn load_relay(&self, key: &RelayKey) -> Result<HeldComponent, String> {
        let make = self.options.relay.ok_or("this program cannot record calls")?;
        let bytes = make(key.engine, &key.imports)?;
        let compilation = Compilation {
            digest: ComponentDigest::of(&bytes),
            component: "recordings",
            source: "recordings",
            time: COMPILES_WITHIN,
            memory_bytes: MEMORY_BYTES,
            serves_meanwhile: false,
            tell: &|_| {},
        };
        let (relay, _) = self.compiler.compile(&bytes, &compilation).map_err(|error| error.to_string())?;
        Ok(relay)
    }
}

/// A warning for each component whose calls the manifest has recorded in vain.
pub(super) fn not_recorded(components: &[Arc<LoadedComponent>]) -> Vec<Diagnostic> {
    let recorded = components.iter().filter(|component| component.policy().may_be_recorded());
    let in_vain = recorded.filter(|component| component.inspection().imports().iter().any(|name| is_later_wasi(name)));
    let warning = |component: &Arc<LoadedComponent>| {
        let message = format!("component {:?}: its calls cannot be recorded yet", component.name());
        Diagnostic::warning("components::record", message)
            .at(component.policy().source_span())
            .label("it imports WASI 0.3")
            .hint("remove record, or build the component for WASI 0.2")
    };
    in_vain.map(warning).collect()
}
