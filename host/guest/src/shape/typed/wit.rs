//! Comments of `.wit` files. Nothing is resolved, so packages used from elsewhere may be missing.
use toolcell_wall::load::descriptions::WitFile;
use wit_parser::{Interface, SourceMap, Type, TypeDef, TypeDefKind, UnresolvedPackage, World, WorldItem, WorldKey};

use super::texts::{TextScope, TypeText, WitTexts};

/// A file that does not parse as WIT: `wit/weather.wit:3:7: expected …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct WitError {
    /// File, line and column.
    pub place: String,
    /// The problem there.
    pub message: String,
}

impl WitTexts {
    /// Reads packages, each with its files. Texts of earlier packages win.
    ///
    /// # Errors
    /// [`WitError`] for the first text that is not WIT.
    pub fn parse(packages: &[Vec<WitFile>]) -> Result<Self, WitError> {
        let mut texts = Self::default();
        for files in packages {
            let mut sources = SourceMap::new();
            for file in files {
                sources.push_str(&file.name, file.text.as_str());
            }
            let group = sources.parse().map_err(|(sources, error)| WitError {
                place: sources.render_location(error.kind().span()),
                message: error.to_string().replace('\n', " "),
            })?;
            texts.add_package(&group.main);
            group.nested.iter().for_each(|package| texts.add_package(package));
        }
        Ok(texts)
    }

    fn add_package(&mut self, package: &UnresolvedPackage) {
        let prefix = format!("{}:{}", package.name.namespace, package.name.name);
        for (_, interface) in &package.interfaces {
            if let Some(name) = &interface.name {
                self.interfaces.entry(format!("{prefix}/{name}")).or_default().add(package, interface);
            }
        }
        for (_, world) in &package.worlds {
            self.add_world(package, world);
        }
    }

    fn add_world(&mut self, package: &UnresolvedPackage, world: &World) {
        self.world_name.get_or_insert_with(|| world.name.clone());
        for (key, item) in world.imports.iter().chain(&world.exports) {
            let WorldKey::Name(name) = key else { continue };
            match item {
                WorldItem::Type { id, .. } => {
                    if let Some(ty) = package.types.get(*id) {
                        self.world.add_type(package, name, ty);
                    }
                }
                WorldItem::Function(function) => self.world.add_function(name, function.docs.contents.as_deref()),
                WorldItem::Interface { id, .. } => {
                    if let Some(interface) = package.interfaces.get(*id) {
                        self.interfaces.entry(name.clone()).or_default().add(package, interface);
                    }
                }
            }
        }
    }
}

impl TextScope {
    fn add(&mut self, package: &UnresolvedPackage, interface: &Interface) {
        for (name, function) in &interface.functions {
            self.add_function(name, function.docs.contents.as_deref());
        }
        for (name, id) in &interface.types {
            if let Some(ty) = package.types.get(*id) {
                self.add_type(package, name, ty);
            }
        }
    }

    fn add_function(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = non_empty(text) {
            self.functions.entry(name.to_owned()).or_insert(text);
        }
    }

    fn add_type(&mut self, package: &UnresolvedPackage, name: &str, ty: &TypeDef) {
        let known = text_of(package, ty);
        if known != TypeText::default() {
            self.types.entry(name.to_owned()).or_insert(known);
        }
    }
}

/// The text of a type. An alias (`use`, `type a = b`) has the text of its target.
fn text_of(package: &UnresolvedPackage, ty: &TypeDef) -> TypeText {
    let mut parts = TypeText { text: non_empty(ty.docs.contents.as_deref()), ..TypeText::default() };
    let mut part = |name: &str, docs: Option<&str>| {
        if let Some(text) = non_empty(docs) {
            parts.parts.insert(name.to_owned(), text);
        }
    };
    match &ty.kind {
        TypeDefKind::Record(record) => {
            record.fields.iter().for_each(|field| part(&field.name, field.docs.contents.as_deref()));
        }
        TypeDefKind::Variant(variant) => {
            variant.cases.iter().for_each(|case| part(&case.name, case.docs.contents.as_deref()));
        }
        TypeDefKind::Enum(labels) => {
            labels.cases.iter().for_each(|case| part(&case.name, case.docs.contents.as_deref()));
        }
        TypeDefKind::Flags(flags) => {
            flags.flags.iter().for_each(|flag| part(&flag.name, flag.docs.contents.as_deref()));
        }
        // A type comes before its aliases, so this ends.
        TypeDefKind::Type(Type::Id(other)) => {
            if let Some(other) = package.types.get(*other) {
                let other = text_of(package, other);
                parts.text = parts.text.take().or(other.text);
                parts.parts = other.parts;
            }
        }
        _ => {}
    }
    parts
}

fn non_empty(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}
