//! Components whose functions are tools. Must not hold: how values convert.
use wasmtime::component::Component;

use crate::load::component::LoadError;
use crate::shape::typed::{Functions, Unusable};

/// The functions of a component that has any, be it that JSON serves none of them.
///
/// # Errors
/// Two of them would have the same name, or their names take too much.
pub(in crate::shape) fn detect(component: &Component, bytes: &[u8]) -> Result<Option<Functions>, LoadError> {
    let functions = Functions::of(component, bytes).map_err(|unusable| match unusable {
        Unusable::Taken(taken) => LoadError::SameName { tool: taken.tool, functions: taken.functions },
        Unusable::Names { bytes_max } => LoadError::Names { bytes_max },
    })?;
    Ok((!functions.is_empty() || !functions.left_out().is_empty()).then_some(functions))
}
