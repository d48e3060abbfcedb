//! The functions that a component exports for models to call.
use toolcell_wall::load::facts::LeftOutFunction;
use wasmtime::component::types::{self, ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex};

use super::functions::{NAMES_BYTES_MAX, TooLong};
use super::names::WitName;
use crate::shape::CONTRACT;

/// Bytes of the names of nested instances on the way to a function. Each level needs one at least,
/// so it also bounds how deep they are followed.
const NESTED_PATH_BYTES_MAX: usize = 256;

/// The instance that readers of streams and futures are exported from. Loading adds it.
pub(crate) const READERS: &str = "toolcell:streams/readers";

/// The interfaces that runtimes and this host call, by their prefix: those of WASI (`wasi:cli/run`,
/// `wasi:http/incoming-handler`), the tool contract, that of `toolcell dev`, and the readers of
/// streams.
const OF_RUNTIMES: [&str; 4] = ["wasi:", CONTRACT, "toolcell:dev/", READERS];

/// The interface through which componentize-py prepares its components.
const OF_PYTHON: &str = "exports";

/// The function, and its parameters, through which componentize-qjs prepares its components. It
/// stays among their exports.
const OF_QUICKJS: (&str, [&str; 4]) = ("init", ["shim", "script", "entry-path", "disable-gc"]);

/// Each function of a component that only this host could call, as left out for this reason.
pub(crate) fn left_out_all(component: &Component, reason: &str) -> Vec<LeftOutFunction> {
    let mut left_out = Vec::new();
    let mut bytes_left = NAMES_BYTES_MAX;
    // Past the bound, some are missing. They are not tools, and nothing depends on them.
    let _ = each(component, &mut |names, _, _| {
        let bytes = size_of::<LeftOutFunction>() + names.bytes() + reason.len();
        bytes_left = bytes_left.checked_sub(bytes).ok_or(TooLong)?;
        left_out.push(LeftOutFunction { function: names.to_string(), reason: reason.to_owned() });
        Ok(())
    });
    left_out
}

/// Takes one function of a component.
type FunctionVisit<'v> = dyn FnMut(WitName<'_>, &ComponentFunc, ComponentExportIndex) -> Result<(), TooLong> + 'v;

/// Visits each function that a component exports for models to call.
pub(super) fn each(component: &Component, visit: &mut FunctionVisit<'_>) -> Result<(), TooLong> {
    let ty = component.component_type();
    let engine = component.engine();
    for (name, export) in ty.exports(engine) {
        match export.ty {
            ComponentItem::ComponentFunc(function) if !prepares_quickjs(name, &function) => {
                if let Some(index) = component.get_export_index(None, name) {
                    visit(WitName { interface: None, version: None, name }, &function, index)?;
                }
            }
            ComponentItem::ComponentInstance(instance) if !is_of_runtime(name) => {
                let Some(index) = component.get_export_index(None, name) else { continue };
                each_of(component, &InterfaceExport { name, path: "", index, ty: &instance }, visit)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// An instance that a component exports, or one within it.
struct InterfaceExport<'a> {
    /// The name of the outermost one, with its version.
    name: &'a str,
    /// The way from there, such as `inner/`. No toolchain makes any.
    path: &'a str,
    index: ComponentExportIndex,
    ty: &'a types::ComponentInstance,
}

/// Visits the functions of an instance. The names of those within a further one have a slash.
fn each_of(
    component: &Component,
    &InterfaceExport { name, path, index, ty }: &InterfaceExport<'_>,
    visit: &mut FunctionVisit<'_>,
) -> Result<(), TooLong> {
    let version = name.split_once('@').map(|(_, version)| version);
    for (inner, export) in ty.exports(component.engine()) {
        let Some(index) = component.get_export_index(Some(&index), inner) else { continue };
        match export.ty {
            ComponentItem::ComponentFunc(function) => {
                let whole = format!("{path}{inner}");
                visit(WitName { interface: Some(unversioned(name)), version, name: &whole }, &function, index)?;
            }
            ComponentItem::ComponentInstance(ty) => {
                let path = format!("{path}{inner}/");
                if path.len() > NESTED_PATH_BYTES_MAX {
                    return Err(TooLong);
                }
                each_of(component, &InterfaceExport { name, path: &path, index, ty: &ty }, visit)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// True for interfaces that runtimes and this host call, rather than models.
pub(crate) fn is_of_runtime(interface: &str) -> bool {
    interface == OF_PYTHON || OF_RUNTIMES.iter().any(|begin| interface.starts_with(begin))
}

/// True for the function by which componentize-qjs hands a script to its engine. As a tool, it
/// would run scripts of the caller in the author's place.
fn prepares_quickjs(name: &str, function: &ComponentFunc) -> bool {
    let (own_name, parameters) = OF_QUICKJS;
    name == own_name && function.params().map(|(parameter, _)| parameter).eq(parameters)
}

/// `acme:weather/forecasts@1.0.0` without its version.
pub(super) fn unversioned(interface: &str) -> &str {
    interface.split_once('@').map_or(interface, |(name, _)| name)
}
