//! A component's own description: digest, size, exports, imports. Nothing of it runs.
use wasmparser::{ComponentExternalKind, Parser, Payload};
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::imports::offered;
use super::preview1;
use crate::shape::{COMPLETION_EXPORT, CONTRACT_EXPORT, RESOURCES_EXPORT};
use toolcell_wall::digest::Digest;

/// The contract's interface for asking, up to its version.
const ASKING: &str = "toolcell:mcp/asking@";

/// A component's identity, exports and imports.
#[derive(Clone, Debug)]
pub struct Inspection {
    digest: Digest,
    size_bytes: u64,
    adapted: bool,
    exports: Vec<String>,
    imports: Vec<String>,
    not_offered: Vec<String>,
}

impl Inspection {
    /// Of code whose bytes had this digest and size, and were `adapted`.
    pub(crate) fn of_code(component: &Component, digest: Digest, size_bytes: u64, adapted: bool) -> Self {
        let ty = component.component_type();
        let engine = component.engine();
        let exports = ty.exports(engine).map(|(name, item)| describe(name, &item.ty)).collect();
        let imports: Vec<String> = ty.imports(engine).map(|(name, _)| name.to_owned()).collect();
        Self::told((digest, size_bytes, adapted), exports, imports)
    }

    /// Of bytes with this digest and size, adapted or not, that have these exports and imports.
    pub(crate) fn told(
        (digest, size_bytes, adapted): (Digest, u64, bool),
        exports: Vec<String>,
        imports: Vec<String>,
    ) -> Self {
        let not_offered = imports.iter().filter(|name| !offered(name)).cloned().collect();
        Self { digest, size_bytes, adapted, exports, imports, not_offered }
    }

    /// The digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its size.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// True if it is a program for WASI preview 1, which the official adapter made a component of.
    /// Its exports and imports are then the component's.
    #[must_use]
    pub fn is_adapted(&self) -> bool {
        self.adapted
    }

    /// The names of its exports.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// The names of its imports: the capabilities it asks for.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The imports that this host does not offer.
    #[must_use]
    pub fn not_offered(&self) -> &[String] {
        &self.not_offered
    }

    /// True if it may ask the person behind its caller: it imports the interface for asking.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.imports.iter().any(|name| name.starts_with(ASKING))
    }

    /// True if it offers values for arguments: it exports the interface for completion.
    #[must_use]
    pub fn completes(&self) -> bool {
        self.exports.iter().any(|name| name.starts_with(COMPLETION_EXPORT))
    }

    /// True if it has resources of its own: it exports the interface for them.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.exports.iter().any(|name| name.starts_with(RESOURCES_EXPORT))
    }

    /// The version of the tool contract it exports; `None` where it exports none.
    #[must_use]
    pub fn contract_version(&self) -> Option<&str> {
        self.exports.iter().find_map(|name| name.strip_prefix(CONTRACT_EXPORT))
    }
}

/// Imports and exports that are read ahead. A component of one language has some thirty.
const READ_AHEAD_MAX: usize = 10_000;

/// The names that a component imports and exports.
#[derive(Debug, Default)]
pub(crate) struct NamesAhead {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
}

impl NamesAhead {
    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.exports.iter().chain(&self.imports).map(String::len).sum()
    }

    fn has_room(&self) -> bool {
        self.exports.len() + self.imports.len() < READ_AHEAD_MAX
    }
}

/// Both, read without compiling the component; `None` of anything else, and where there are too
/// many.
pub(crate) fn names_ahead(bytes: &[u8]) -> Option<NamesAhead> {
    if preview1::is_module(bytes) {
        return None;
    }
    let mut depth = 0_usize;
    let mut names = NamesAhead::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.checked_sub(1)?,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    names.has_room().then_some(())?;
                    names.imports.push(import.ok()?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    names.has_room().then_some(())?;
                    let export = export.ok()?;
                    let is_function = export.kind == ComponentExternalKind::Func;
                    names.exports.push(shown(export.name.name, is_function));
                }
            }
            _ => {}
        }
    }
    Some(names)
}

/// Functions exported without an interface show that they are functions; interfaces are shown by
/// name.
fn describe(name: &str, item: &ComponentItem) -> String {
    shown(name, matches!(item, ComponentItem::ComponentFunc(_)))
}

fn shown(name: &str, is_function: bool) -> String {
    if is_function { format!("{name}()") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;
    use wasmtime::component::Component;

    use super::*;

    #[test]
    fn names_are_read_ahead_as_the_engine_reads_them() {
        let engine = Engine::default();
        let texts = [
            "(component)",
            r#"(component (import "a:b/c@1.0.0" (instance)) (import "f" (func)))"#,
            r#"(component (import "a:b/c@1.0.0" (instance)) (component (import "inner" (func))) (core module) (import "g" (func)))"#,
            r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f"))) (export "g" (func $f))
                (instance $j (export "f" (func $f))) (export "a:b/d" (instance $j)))"#,
        ];
        for text in texts {
            let bytes = wat::parse_str(text).unwrap();
            let component = Component::from_binary(&engine, &bytes).unwrap();
            let inspection = Inspection::of_code(&component, Digest::of(&bytes), bytes.len() as u64, false);
            let NamesAhead { mut exports, mut imports } = names_ahead(&bytes).unwrap();
            let mut own_exports = inspection.exports().to_vec();
            let mut own_imports = inspection.imports().to_vec();
            for names in [&mut exports, &mut imports, &mut own_exports, &mut own_imports] {
                names.sort();
            }
            assert_eq!((exports, imports), (own_exports, own_imports), "{text}");
            (8..bytes.len()).for_each(|cut| drop(names_ahead(&bytes[..cut])));
        }
        assert!(names_ahead(&wat::parse_str("(module (import \"a\" \"b\" (func)))").unwrap()).is_none());
    }
}
