//! Components that are command-line programs: they export `wasi:cli/run`. Must not hold: what a run is.
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex};

use crate::load::component::LoadError;
use crate::load::inspect::Inspection;

/// The export of a program, up to its version; every minor of 0.2 has the same.
const EXPORT: &str = "wasi:cli/run@0.2.";

/// Where a program begins, in a component that is one.
///
/// # Errors
/// It exports something else under that name.
pub(in crate::shape) fn detect(
    component: &Component,
    inspection: &Inspection,
) -> Result<Option<ComponentExportIndex>, LoadError> {
    let Some(name) = inspection.exports().iter().find(|name| name.starts_with(EXPORT)) else { return Ok(None) };
    let run = || {
        let (_, interface) = component.get_export(None, name)?;
        let (item, index) = component.get_export(Some(&interface), "run")?;
        is_run(&item).then_some(index)
    };
    match run() {
        Some(index) => Ok(Some(index)),
        None => Err(LoadError::Mismatch { reason: format!("\"{name}\" has no function run: func() -> result") }),
    }
}

fn is_run(item: &ComponentItem) -> bool {
    let ComponentItem::ComponentFunc(run) = item else { return false };
    let mut results = run.results();
    let plain = |ty: &Type| matches!(ty, Type::Result(result) if result.ok().is_none() && result.err().is_none());
    run.params().len() == 0 && results.next().is_some_and(|ty| plain(&ty)) && results.next().is_none()
}
