//! Exit codes of programs for WASI preview 1. The adapter turns each into success or failure, all
//! that `wasi:cli/exit` knew when it was written. Here a module's import of `proc_exit` becomes one
//! of `exit-with-code`, so that a 2 stays a 2.
use std::ops::Range;

use wasm_encoder::Encode as _;
use wasmparser::{BinaryReader, BinaryReaderError, Parser, Payload};
use wit_component::{StringEncoding, embed_component_metadata, metadata};

use super::{ADAPTER, PREVIEW1, sections};

/// The import of preview 1, whose code the adapter turns into success or failure.
const PROC_EXIT: &str = "proc_exit";

/// The import that replaces it. Takes a `u8`, which a core module sees as an `i32`, like the exit
/// code before.
const EXIT_WITH_CODE: &str = "exit-with-code";

/// The interface that has it, in the version that the adapter uses: both must mean the same one.
const INTERFACE: &str = "wasi:cli/exit@0.2.12";

/// A world for modules that import it.
const WORLD: &str = "package toolcell:adapted; world exits { import wasi:cli/exit@0.2.12; }";

/// The section of imports, by its number in the format.
const IMPORT_SECTION: u8 = 2;

/// The module with its exit codes preserved; `None` if it never exits with one.
///
/// # Errors
/// The module does not read as one, or the adapter knows another interface.
pub(super) fn with_codes(module: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let Some(mut renamed) = rename(module).map_err(|error| error.to_string())? else { return Ok(None) };
    let embedded = metadata::decode(ADAPTER).and_then(|(_, adapter)| {
        let mut resolve = adapter.resolve;
        let package = resolve.push_source("adapted.wit", WORLD)?;
        let world = resolve.select_world(&[package], None)?;
        embed_component_metadata(&mut renamed, &resolve, world, StringEncoding::UTF8)
    });
    embedded.map(|()| Some(renamed)).map_err(|error| format!("{error:#}"))
}

/// The module with the import renamed; every other byte is kept.
fn rename(module: &[u8]) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    for payload in Parser::new(0).parse_all(module) {
        let Payload::ImportSection(section) = payload? else { continue };
        let range = section.range();
        let mut found = None;
        for import in section.into_imports_with_offsets() {
            let (at, import) = import?;
            if import.module == PREVIEW1 && import.name == PROC_EXIT {
                found = Some(at);
            }
        }
        return Ok(found.and_then(|at| replace(module, range, at)));
    }
    Ok(None)
}

/// Puts the section together again, with another name for the import that is here.
fn replace(module: &[u8], section: Range<usize>, at: usize) -> Option<Vec<u8>> {
    // The type follows both names.
    let mut import = BinaryReader::new(module.get(at..section.end)?, 0);
    import.skip_string().ok()?;
    import.skip_string().ok()?;
    let mut body = module.get(section.start..at)?.to_vec();
    INTERFACE.encode(&mut body);
    EXIT_WITH_CODE.encode(&mut body);
    body.extend(module.get(at + import.current_position()..section.end)?);
    sections::replace(module, section, IMPORT_SECTION, &body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The imports of a module.
    fn imports(module: &[u8]) -> Vec<(String, String)> {
        let mut imports = Vec::new();
        for payload in Parser::new(0).parse_all(module) {
            if let Payload::ImportSection(section) = payload.unwrap() {
                let all = section.into_imports().map(|import| import.unwrap());
                imports.extend(all.map(|import| (import.module.to_owned(), import.name.to_owned())));
            }
        }
        imports
    }

    fn module(imports: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {imports} (memory 1) (func (export \"_start\")) (data (i32.const 0) \"x\"))"))
            .unwrap()
    }

    #[test]
    fn the_import_is_renamed_wherever_it_stands_and_nothing_else_changes() {
        let one = "(import \"wasi_snapshot_preview1\" \"fd_close\" (func (param i32) (result i32)))";
        let exit = "(import \"wasi_snapshot_preview1\" \"proc_exit\" (func (param i32)))";
        let many = one.repeat(300);
        for before in ["", one, many.as_str()] {
            for after in ["", one, many.as_str()] {
                let module = module(&format!("{before}{exit}{after}"));
                let renamed = rename(&module).unwrap().unwrap();
                let mut expected = imports(&module);
                let at = expected.iter().position(|(_, name)| name == PROC_EXIT).unwrap();
                expected[at] = (INTERFACE.to_owned(), EXIT_WITH_CODE.to_owned());
                assert_eq!(imports(&renamed), expected);
                assert!(renamed.ends_with(&module[module.len() - 20..]));
            }
        }
        assert_eq!(rename(&module(one)).unwrap(), None);
    }

    #[test]
    fn the_adapter_knows_the_interface() {
        let exit = "(import \"wasi_snapshot_preview1\" \"proc_exit\" (func (param i32)))";
        assert!(with_codes(&module(exit)).unwrap().is_some());
    }
}
