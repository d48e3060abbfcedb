//! Core modules: the number of each kind of part, and the host's cost of an instance.
use toolcell_wall::load::cost::InstanceCost;
use wasmparser::{ElementItems, ElementKind, ElementSectionReader, Payload};

use super::ledger::{Ledger, LoadBound, Refusal};
use super::references::References;

/// Bytes of an instance's record that do not depend on its module, with the store's own part.
const INSTANCE_BYTES: u64 = 1_024;
/// Bytes of the record of a component instance: its handles and flags.
const COMPONENT_INSTANCE_BYTES: u64 = 512;
/// Bytes of a trampoline's function reference and lowering.
const TRAMPOLINE_BYTES: u64 = 64;
/// Bytes of an import: three pointers at most, rounded up.
const IMPORT_BYTES: u64 = 32;
/// Bytes of a global: room for a vector.
const GLOBAL_BYTES: u64 = 16;
/// Bytes of a function reference. Each function that is exported or in a table has one.
const FUNCTION_BYTES: u64 = 40;
/// Bytes of a memory's or a table's record. Its content is counted when it grows.
const MEMORY_BYTES: u64 = 256;
/// Bytes of a data or element segment's record.
const SEGMENT_BYTES: u64 = 16;
/// Bytes of one element of a segment, as a value.
const ELEMENT_BYTES: u64 = 16;

/// The parts of a module, or of everything that a component instantiates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) instances: u64,
    pub(crate) memories: u64,
    pub(crate) tables: u64,
    /// Elements that the largest table starts with.
    pub(crate) table_elements_max: u64,
    /// Imports of core modules.
    pub(crate) imports: u64,
    /// Bytes of the host's own records.
    pub(crate) host_bytes: u64,
    /// Bytes that making an instance copies or writes.
    pub(crate) copied_bytes: u64,
    /// Component instances with functions of their own.
    pub(crate) waiting_parts: u64,
}

impl From<Parts> for InstanceCost {
    fn from(parts: Parts) -> Self {
        let Parts { instances, memories, table_elements_max, host_bytes, copied_bytes, waiting_parts, .. } = parts;
        Self { instances, memories, table_elements_max, host_bytes, copied_bytes, waiting_parts }
    }
}

impl Parts {
    /// Adds an instance of this module.
    pub(crate) fn instance(&mut self, module: &Self, ledger: &mut Ledger) -> Result<(), Refusal> {
        ledger.add(LoadBound::Instances, 1)?;
        ledger.add(LoadBound::Memories, module.memories)?;
        ledger.add(LoadBound::Tables, module.tables)?;
        ledger.add(LoadBound::CoreImports, module.imports)?;
        ledger.add(LoadBound::CopiedBytes, module.copied_bytes)?;
        self.instances = self.instances.saturating_add(1);
        self.memories = self.memories.saturating_add(module.memories);
        self.tables = self.tables.saturating_add(module.tables);
        self.table_elements_max = self.table_elements_max.max(module.table_elements_max);
        self.copied_bytes = self.copied_bytes.saturating_add(module.copied_bytes);
        self.hosted(INSTANCE_BYTES.saturating_add(module.host_bytes), ledger)
    }

    /// Adds a component instance, which may have functions of its own.
    pub(crate) fn component_instance(&mut self, lifts: bool, ledger: &mut Ledger) -> Result<(), Refusal> {
        self.waiting_parts = self.waiting_parts.saturating_add(lifts.into());
        self.hosted(COMPONENT_INSTANCE_BYTES, ledger)
    }

    /// Adds a trampoline.
    pub(crate) fn trampoline(&mut self, ledger: &mut Ledger) -> Result<(), Refusal> {
        self.hosted(TRAMPOLINE_BYTES, ledger)
    }

    fn hosted(&mut self, bytes: u64, ledger: &mut Ledger) -> Result<(), Refusal> {
        ledger.add(LoadBound::HostBytes, bytes)?;
        self.host_bytes = self.host_bytes.saturating_add(bytes);
        Ok(())
    }
}

/// Counts a module, section by section.
#[derive(Default)]
pub(crate) struct ModuleCount {
    parts: Parts,
    references: References,
}

impl ModuleCount {
    /// A module begins.
    pub(crate) fn begin(ledger: &mut Ledger) -> Result<Self, Refusal> {
        ledger.add(LoadBound::Modules, 1)?;
        Ok(Self::default())
    }

    /// The cost of an instance of it.
    pub(crate) fn finish(self) -> Parts {
        let mut parts = self.parts;
        let references = self.references.count().saturating_mul(FUNCTION_BYTES);
        parts.host_bytes = parts.host_bytes.saturating_add(references);
        parts
    }

    /// Counts one section.
    pub(crate) fn section(&mut self, payload: &Payload<'_>, ledger: &mut Ledger) -> Result<(), Refusal> {
        self.parts(payload, ledger)?;
        // Only what is within the bounds is collected.
        self.references.section(payload)
    }

    fn parts(&mut self, payload: &Payload<'_>, ledger: &mut Ledger) -> Result<(), Refusal> {
        match payload {
            Payload::TypeSection(section) => section.clone().into_iter().try_for_each(|group| {
                let types = group?.types().len().max(1) as u64;
                Ok::<_, Refusal>(ledger.add(LoadBound::CoreTypes, types)?)
            })?,
            Payload::ImportSection(section) => {
                section.clone().into_imports().try_for_each(|import| {
                    import.map(drop).map_err(Refusal::from).and_then(|()| self.import(ledger))
                })?;
            }
            Payload::FunctionSection(section) => ledger.add(LoadBound::Functions, u64::from(section.count()))?,
            Payload::TableSection(section) => {
                section.clone().into_iter().try_for_each(|table| self.table(table?.ty.initial, ledger))?;
            }
            Payload::MemorySection(section) => self.memories(u64::from(section.count()), ledger)?,
            Payload::GlobalSection(section) => {
                ledger.add(LoadBound::Globals, u64::from(section.count()))?;
                self.host(u64::from(section.count()), GLOBAL_BYTES);
            }
            Payload::ExportSection(section) => ledger.add(LoadBound::CoreExports, u64::from(section.count()))?,
            Payload::ElementSection(section) => self.elements(section.clone(), ledger)?,
            Payload::DataSection(section) => {
                ledger.add(LoadBound::DataSegments, u64::from(section.count()))?;
                for segment in section.clone() {
                    self.copied(segment?.data.len() as u64);
                    self.host(1, SEGMENT_BYTES);
                }
            }
            Payload::TagSection(section) => self.host(u64::from(section.count()), GLOBAL_BYTES),
            _ => {}
        }
        Ok(())
    }

    fn import(&mut self, ledger: &Ledger) -> Result<(), Refusal> {
        self.parts.imports = self.parts.imports.saturating_add(1);
        ledger.holds(LoadBound::CoreImports, self.parts.imports)?;
        self.host(1, IMPORT_BYTES);
        Ok(())
    }

    fn memories(&mut self, count: u64, ledger: &Ledger) -> Result<(), Refusal> {
        self.parts.memories = self.parts.memories.saturating_add(count);
        self.host(count, MEMORY_BYTES);
        Ok(ledger.holds(LoadBound::Memories, self.parts.memories)?)
    }

    fn table(&mut self, elements: u64, ledger: &Ledger) -> Result<(), Refusal> {
        self.parts.tables = self.parts.tables.saturating_add(1);
        ledger.holds(LoadBound::Tables, self.parts.tables)?;
        self.parts.table_elements_max = self.parts.table_elements_max.max(elements);
        self.host(1, MEMORY_BYTES);
        Ok(())
    }

    fn elements(&mut self, section: ElementSectionReader<'_>, ledger: &mut Ledger) -> Result<(), Refusal> {
        ledger.add(LoadBound::ElementSegments, u64::from(section.count()))?;
        for segment in section {
            let segment = segment?;
            let count = match &segment.items {
                ElementItems::Functions(items) => items.count(),
                ElementItems::Expressions(_, items) => items.count(),
            };
            let count = u64::from(count);
            ledger.add(LoadBound::Elements, count)?;
            self.copied(count.saturating_mul(ELEMENT_BYTES));
            self.host(1, SEGMENT_BYTES);
            // Elements that are not put into a table at once are kept as values.
            if matches!(segment.kind, ElementKind::Passive) {
                self.host(count, ELEMENT_BYTES);
            }
        }
        Ok(())
    }

    fn host(&mut self, count: u64, bytes: u64) {
        self.parts.host_bytes = self.parts.host_bytes.saturating_add(count.saturating_mul(bytes));
    }

    fn copied(&mut self, bytes: u64) {
        self.parts.copied_bytes = self.parts.copied_bytes.saturating_add(bytes);
    }
}
