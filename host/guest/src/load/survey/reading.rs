//! The pass over the bytes: each section goes to its counter.
use std::rc::Rc;

use toolcell_policy::is_later_wasi;
use toolcell_wall::load::facts::GuestEngine;
use wasmparser::{BinaryReader, ComponentInstance, Encoding, Instance, Parser, Payload};

use super::evaluation::{Evaluation, Step};
use super::item::{Item, Kind};
use super::ledger::{Ledger, LoadBound, Refusal, missing};
use super::module::{ModuleCount, Parts};
use super::scope::Scopes;
use super::{canonical, types};

/// Counts everything in these bytes, and the cost of instantiating them.
pub(super) fn survey(bytes: &[u8], ledger: &mut Ledger) -> Result<Parts, Refusal> {
    let mut scopes = Scopes::new(ledger);
    let mut module: Option<ModuleCount> = None;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        scopes.ledger.offset = offset_of(&payload).unwrap_or(scopes.ledger.offset);
        match (payload, &mut module) {
            (Payload::Version { encoding: Encoding::Module, .. }, _) => {
                module = Some(ModuleCount::begin(scopes.ledger)?);
            }
            (Payload::Version { encoding: Encoding::Component, .. }, _) => scopes.begin_component()?,
            (Payload::End(_), Some(_)) => {
                let parts = module.take().unwrap_or_default().finish();
                // A module that cannot be instantiated is refused even if nothing instantiates it.
                scopes.ledger.holds(LoadBound::HostBytes, parts.host_bytes)?;
                scopes.ledger.holds(LoadBound::CopiedBytes, parts.copied_bytes)?;
                if scopes.is_empty() {
                    let mut all = Parts::default();
                    all.instance(&parts, scopes.ledger)?;
                    return Ok(all);
                }
                scopes.step(Step::Push(Kind::Module, Item::Module(Rc::new(parts))))?;
            }
            (Payload::End(_), None) => {
                if let Some(definition) = scopes.end_component()? {
                    return Evaluation::instantiate(&definition, ledger);
                }
            }
            (payload, Some(module)) => module.section(&payload, scopes.ledger)?,
            (payload, None) => section(bytes, payload, &mut scopes)?,
        }
    }
    Err(missing("the file ends before what it holds", bytes.len()))
}

/// The offset of a section. Inside a module it is the offset of the module.
fn offset_of(payload: &Payload<'_>) -> Option<usize> {
    Some(match payload {
        Payload::Version { range, .. } => range.start,
        Payload::ComponentImportSection(section) => section.range().start,
        Payload::ComponentExportSection(section) => section.range().start,
        Payload::ComponentAliasSection(section) => section.range().start,
        Payload::ComponentInstanceSection(section) => section.range().start,
        Payload::ComponentCanonicalSection(section) => section.range().start,
        Payload::InstanceSection(section) => section.range().start,
        Payload::CoreTypeSection(section) => section.range().start,
        Payload::TypeSection(section) => section.range().start,
        Payload::ImportSection(section) => section.range().start,
        Payload::FunctionSection(section) => section.range().start,
        Payload::GlobalSection(section) => section.range().start,
        Payload::ExportSection(section) => section.range().start,
        Payload::ElementSection(section) => section.range().start,
        Payload::DataSection(section) => section.range().start,
        Payload::End(offset) => *offset,
        _ => return None,
    })
}

/// Counts a section of a component.
fn section<'a>(bytes: &'a [u8], payload: Payload<'a>, scopes: &mut Scopes<'a, '_>) -> Result<(), Refusal> {
    match payload {
        Payload::ComponentTypeSection(section) => {
            let range = section.range();
            let start = range.start;
            let of_section = bytes.get(range).ok_or_else(|| missing("a section ends after the file", start))?;
            types::section(BinaryReader::new(of_section, start), scopes)
        }
        Payload::CoreTypeSection(section) => section.into_iter().try_for_each(|ty| types::core(&ty?, scopes)),
        Payload::ComponentImportSection(section) => section.into_iter().try_for_each(|import| {
            let import = import?;
            scopes.named()?;
            if is_later_wasi(import.name.name) {
                scopes.ledger.engine = GuestEngine::Async;
            }
            scopes.import(import.name.name, import.ty)
        }),
        Payload::ComponentExportSection(section) => section.into_iter().try_for_each(|export| {
            let export = export?;
            scopes.named()?;
            scopes.export(export.name.name, export.kind, export.index, export.ty)
        }),
        Payload::ComponentAliasSection(section) => section.into_iter().try_for_each(|alias| scopes.alias(&alias?)),
        Payload::ComponentInstanceSection(section) => {
            section.into_iter().try_for_each(|instance| component_instance(instance?, scopes))
        }
        Payload::InstanceSection(section) => {
            section.into_iter().try_for_each(|instance| core_instance(instance?, scopes))
        }
        Payload::ComponentCanonicalSection(section) => {
            section.into_iter().try_for_each(|function| canonical::count(&function?, scopes))
        }
        Payload::ComponentStartSection { .. } => Ok(scopes.ledger.add(LoadBound::Items, 1)?),
        _ => Ok(()),
    }
}

fn component_instance<'a>(instance: ComponentInstance<'a>, scopes: &mut Scopes<'a, '_>) -> Result<(), Refusal> {
    let (entries, step) = match instance {
        ComponentInstance::Instantiate { component_index, args } => {
            (args.len(), Step::Instantiate(component_index, args))
        }
        ComponentInstance::FromExports(exports) => (exports.len(), Step::Bundle(exports)),
    };
    scopes.ledger.add(LoadBound::Items, entries as u64)?;
    scopes.step(step)
}

fn core_instance<'a>(instance: Instance<'a>, scopes: &mut Scopes<'a, '_>) -> Result<(), Refusal> {
    let (entries, step) = match instance {
        Instance::Instantiate { module_index, args } => (args.len(), Step::Core(module_index)),
        Instance::FromExports(exports) => (exports.len(), Step::CoreAlias),
    };
    scopes.ledger.add(LoadBound::Items, entries as u64)?;
    scopes.step(step)
}
