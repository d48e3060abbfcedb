//! The exports and imports of a component, from its code or from its bytes before compiling.
//! Nothing of it runs.
use crate::shape::typed::READERS;
use toolcell_wall::load::facts::SourceFacts;
use toolcell_wall::load::inspection::Inspection;
use toolcell_wall::sections::is_module;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentImport, ComponentOuterAliasKind, ComponentType, ComponentTypeRef,
    InstanceTypeDeclaration, Parser, Payload, TypeBounds,
};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentItem, ResourceType};

/// The inspection of compiled code, with facts about the bytes it came from.
pub(crate) fn of_code(component: &Component, source: SourceFacts) -> Inspection {
    let ty = component.component_type();
    let engine = component.engine();
    let own = ty.exports(engine).filter(|(name, _)| *name != READERS);
    let exports = own.map(|(name, item)| describe(name, &item.ty)).collect();
    let mut named = NamedTypes { engine, resources: Vec::new() };
    let wanted = ty.imports(engine).filter(|(_, item)| !named.hold(&item.ty));
    let imports: Vec<String> = wanted.map(|(name, _)| name.to_owned()).collect();
    Inspection::new(source, exports, imports)
}

/// Resources that are remembered. Each is compared with every one before it. All of WASI has some
/// thirty.
const RESOURCES_MAX: usize = 1_000;

/// Types that a component imports only to give them names: nobody has to offer those.
struct NamedTypes<'e> {
    engine: &'e Engine,
    /// The resources of the imports so far, up to [`RESOURCES_MAX`]. Under another name they are
    /// only named.
    resources: Vec<ResourceType>,
}

impl NamedTypes<'_> {
    /// True if all of an import is such types. Imports come in their order.
    fn hold(&mut self, item: &ComponentItem) -> bool {
        match item {
            ComponentItem::Type(_) => true,
            ComponentItem::Resource(resource) => {
                let is_known = self.resources.contains(resource);
                if !is_known && self.resources.len() < RESOURCES_MAX {
                    self.resources.push(*resource);
                }
                is_known
            }
            ComponentItem::ComponentInstance(instance) => {
                let exports = instance.exports(self.engine);
                // Each of them is read, for its resources.
                exports.fold(true, |all, (_, item)| self.hold(&item.ty) && all)
            }
            _ => false,
        }
    }
}

/// The names that a component exports, and those of the imports that somebody has to offer.
#[derive(Debug, Default)]
pub(crate) struct ComponentNames {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
}

impl ComponentNames {
    pub(crate) fn bytes(&self) -> usize {
        self.exports.iter().chain(&self.imports).map(String::len).sum()
    }
}

/// Both, read without compiling the component. `None` for anything but a component. The survey has
/// bounded their number.
pub(crate) fn component_names(bytes: &[u8]) -> Option<ComponentNames> {
    if is_module(bytes) {
        return None;
    }
    let mut depth = 0_usize;
    let mut names = ComponentNames::default();
    let mut types = InterfaceTypes::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.checked_sub(1)?,
            Payload::ComponentTypeSection(section) if depth == 1 => {
                for ty in section {
                    types.define(&ty.ok()?);
                }
            }
            Payload::ComponentAliasSection(section) if depth == 1 => {
                for alias in section {
                    types.alias(&alias.ok()?);
                }
            }
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.ok()?;
                    if !types.import(&import) {
                        names.imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let export = export.ok()?;
                    types.export(export.kind);
                    let is_function = export.kind == ComponentExternalKind::Func;
                    names.exports.push(shown(export.name.name, is_function));
                }
            }
            _ => {}
        }
    }
    Some(names)
}

/// The types that a component has defined up to some place, by index. True for an interface that
/// only names types.
#[derive(Default)]
struct InterfaceTypes(Vec<bool>);

impl InterfaceTypes {
    fn define(&mut self, ty: &ComponentType<'_>) {
        self.0.push(match ty {
            ComponentType::Instance(declarations) => !declarations.iter().any(|declaration| match declaration {
                InstanceTypeDeclaration::Export { ty, .. } => !matches!(ty, ComponentTypeRef::Type(TypeBounds::Eq(_))),
                _ => false,
            }),
            _ => false,
        });
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) {
        match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. } => self.0.push(false),
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, index, .. } => self.0.push(self.at(*index)),
            _ => {}
        }
    }

    fn export(&mut self, kind: ComponentExternalKind) {
        if kind == ComponentExternalKind::Type {
            self.0.push(false);
        }
    }

    /// Adds what an import defines. True if it only names types.
    fn import(&mut self, import: &ComponentImport<'_>) -> bool {
        match import.ty {
            ComponentTypeRef::Type(bounds) => {
                self.0.push(false);
                matches!(bounds, TypeBounds::Eq(_))
            }
            ComponentTypeRef::Instance(index) => self.at(index),
            _ => false,
        }
    }

    fn at(&self, index: u32) -> bool {
        usize::try_from(index).ok().and_then(|index| self.0.get(index)).copied().unwrap_or(false)
    }
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

    fn inspected(engine: &Engine, bytes: &[u8]) -> Inspection {
        let component = Component::from_binary(engine, bytes).unwrap();
        let size_bytes = bytes.len() as u64;
        of_code(&component, SourceFacts { digest: ComponentDigest::of(bytes), size_bytes, adapted: false })
    }

    #[test]
    fn resources_are_remembered_up_to_a_bound() {
        // The last of them, under another name.
        let imports = |count: usize| {
            let export = |at| format!("(export \"r{at}\" (type (sub resource)))");
            let exports: String = (0..count).map(export).collect();
            let last = count - 1;
            let text = format!(
                "(component (import \"a:b/many\" (instance $i {exports}))
                   (alias export $i \"r{last}\" (type $t)) (import \"held\" (type (eq $t))))"
            );
            let mut imports = inspected(&Engine::default(), &wat::parse_str(text).unwrap()).imports().to_vec();
            imports.sort();
            imports
        };
        assert_eq!(imports(RESOURCES_MAX), ["a:b/many"]);
        assert_eq!(imports(RESOURCES_MAX + 1), ["a:b/many", "held"]);
    }

    #[test]
    fn names_are_read_ahead_as_the_engine_reads_them() {
        let engine = Engine::default();
        let texts = [
            "(component)",
            r#"(component (import "a:b/c@1.0.0" (instance (export "f" (func)))) (import "f" (func)))"#,
            r#"(component (type $r (record (field "x" s32))) (import "point" (type $p (eq $r)))
                (import "a:b/types" (instance $i (type $c (enum "red" "green")) (export "colour" (type (eq $c)))))
                (alias export $i "colour" (type $colour)) (type $e (enum "e")) (export $f "exported" (type $e))
                (import "a:b/handles" (instance (export "handle" (type (sub resource)))))
                (import "paint" (func (param "p" $p) (param "c" $colour))) (import "canvas" (type (sub resource))))"#,
            r#"(component (import "a:b/handles" (instance $i (export "handle" (type (sub resource)))))
                (alias export $i "handle" (type $handle)) (import "held" (type $held (eq $handle)))
                (import "a:b/users" (instance (alias outer 1 $held (type $h)) (export "user" (type (eq $h)))))
                (import "use" (func (param "it" (own $held)))))"#,
            r#"(component (import "a:b/c@1.0.0" (instance (export "f" (func)))) (component (import "inner" (func))) (core module) (import "g" (func)))"#,
            r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f"))) (export "g" (func $f))
                (instance $j (export "f" (func $f))) (export "a:b/d" (instance $j)))"#,
        ];
        for text in texts {
            let bytes = wat::parse_str(text).unwrap();
            let inspection = inspected(&engine, &bytes);
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
