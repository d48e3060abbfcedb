//! `toolcell:dev/live-source`, which components built by `toolcell dev` export. It imports the
//! project's files, to find problems before a call does.
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::wasi::state::CallState;

/// The interface, up to its version.
const EXPORT: &str = "toolcell:dev/live-source@1.";

/// Bytes of a problem that are shown: a line of Python with the text of its exception.
const PROBLEM_BYTES_MAX: usize = 2_000;

/// The name of the interface among these exports.
pub(crate) fn export(exports: &[String]) -> Option<&str> {
    exports.iter().map(String::as_str).find(|name| name.starts_with(EXPORT))
}

/// Imports the project's files: `load: func() -> result<_, string>`. The inner error describes the
/// problem and its place.
///
/// # Errors
/// An error of the engine, or the function has another type.
pub(crate) async fn load(
    store: &mut Store<CallState>,
    instance: Instance,
    export: &str,
) -> wasmtime::Result<Result<(), String>> {
    let interface = instance.get_export_index(&mut *store, None, export);
    let function = interface.and_then(|interface| instance.get_export_index(&mut *store, Some(&interface), "load"));
    let function = function.ok_or_else(|| wasmtime::Error::msg("its interface has no function \"load\""))?;
    let load = instance.get_typed_func::<(), (Result<(), String>,)>(&mut *store, &function)?;
    let (loaded,) = load.call_async(&mut *store, ()).await?;
    Ok(loaded.map_err(clipped))
}

fn clipped(mut problem: String) -> String {
    if problem.len() > PROBLEM_BYTES_MAX {
        problem.truncate(problem.floor_char_boundary(PROBLEM_BYTES_MAX));
        problem.push('…');
    }
    problem
}
