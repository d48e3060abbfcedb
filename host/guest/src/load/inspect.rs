//! The exports and imports of a component, from its code or from its bytes before compiling.
//! Nothing of it runs.
use toolcell_wall::load::facts::SourceFacts;
use toolcell_wall::load::inspection::Inspection;
use toolcell_wall::sections::is_module;
use wasmparser::{ComponentExternalKind, Parser, Payload};
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// The inspection of compiled code, with facts about the bytes it came from.
pub(crate) fn of_code(component: &Component, source: SourceFacts) -> Inspection {
    let ty = component.component_type();
    let engine = component.engine();
    let exports = ty.exports(engine).map(|(name, item)| describe(name, &item.ty)).collect();
    let imports: Vec<String> = ty.imports(engine).map(|(name, _)| name.to_owned()).collect();
    Inspection::new(source, exports, imports)
}

/// Imports and exports that are read before compiling. A component in one language has some thirty.
const READ_AHEAD_MAX: usize = 10_000;

/// The names that a component imports and exports.
#[derive(Debug, Default)]
pub(crate) struct ComponentNames {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
}

impl ComponentNames {
    pub(crate) fn bytes(&self) -> usize {
        self.exports.iter().chain(&self.imports).map(String::len).sum()
    }

    fn has_room(&self) -> bool {
        self.exports.len() + self.imports.len() < READ_AHEAD_MAX
    }
}

/// Both, read without compiling the component. `None` for anything but a component, and if there
/// are too many.
pub(crate) fn component_names(bytes: &[u8]) -> Option<ComponentNames> {
    if is_module(bytes) {
        return None;
    }
    let mut depth = 0_usize;
    let mut names = ComponentNames::default();
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

/// A component up to its first module, component or instance. What toolchains make has all of its
/// imports there, and no code.
pub(crate) fn before_code(bytes: &[u8]) -> Option<&[u8]> {
    let mut end = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.ok()?;
        end = match &payload {
            Payload::Version { range, .. } => range.end,
            Payload::ComponentTypeSection(_)
            | Payload::CoreTypeSection(_)
            | Payload::ComponentImportSection(_)
            | Payload::ComponentAliasSection(_)
            | Payload::CustomSection(_) => payload.as_section()?.1.end,
            _ => break,
        };
    }
    bytes.get(..end)
}

/// Functions exported without an interface are shown as functions; interfaces are shown by name.
fn describe(name: &str, item: &ComponentItem) -> String {
    shown(name, matches!(item, ComponentItem::ComponentFunc(_)))
}

fn shown(name: &str, is_function: bool) -> String {
    if is_function { format!("{name}()") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use toolcell_wall::digest::ComponentDigest;
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
            let source =
                SourceFacts { digest: ComponentDigest::of(&bytes), size_bytes: bytes.len() as u64, adapted: false };
            let inspection = of_code(&component, source);
            let ComponentNames { mut exports, mut imports } = component_names(&bytes).unwrap();
            let mut own_exports = inspection.exports().to_vec();
            let mut own_imports = inspection.imports().to_vec();
            for names in [&mut exports, &mut imports, &mut own_exports, &mut own_imports] {
                names.sort();
            }
            assert_eq!((exports, imports), (own_exports, own_imports), "{text}");
            (8..bytes.len()).for_each(|cut| drop(component_names(&bytes[..cut])));
        }
        assert!(component_names(&wat::parse_str("(module (import \"a\" \"b\" (func)))").unwrap()).is_none());
    }
}
