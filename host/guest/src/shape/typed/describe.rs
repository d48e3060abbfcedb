//! Descriptions of tools and types. The first text wins: the manifest's, then those of `.wit`
//! files, then the component's own.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use toolcell_wall::load::descriptions::WrittenDescriptions;

use super::schema::{Docs, TypeDocs};
use super::texts::{TypeText, WitTexts};
use super::ty::{Ty, TyId, Types};
use super::wit::WitError;

/// Descriptions and names that do not come from the component.
#[derive(Debug, Clone, Default)]
pub struct Descriptions {
    /// As in [`WrittenDescriptions`].
    pub exports: Vec<(String, String)>,
    /// As in [`WrittenDescriptions`].
    pub given: BTreeMap<String, String>,
    /// The texts of `.wit` files.
    pub wit: Option<Arc<WitTexts>>,
    /// As in [`DEV_SOURCE`](toolcell_wall::mounts::DEV_SOURCE), for a component that `toolcell dev`
    /// serves.
    pub dev_source: Option<String>,
}

impl Descriptions {
    /// Reads the texts.
    ///
    /// # Errors
    /// [`WitError`] for the first text that is not WIT.
    pub fn read(written: WrittenDescriptions) -> Result<Self, WitError> {
        let WrittenDescriptions { exports, given, wit, dev_source } = written;
        let wit = wit.map(|packages| WitTexts::parse(&packages).map(Arc::new)).transpose()?;
        Ok(Self { exports, given, wit, dev_source })
    }
}

/// The component's name for a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeName {
    /// `acme:weather/forecasts`; `None` for the world itself.
    pub(super) interface: Option<String>,
    pub(super) name: String,
}

/// Descriptions of one component's types.
pub(super) struct DescribedTypes(HashMap<TyId, KnownText>);

struct KnownText {
    name: Option<String>,
    text: Option<String>,
    parts: Vec<Option<String>>,
}

/// All sources of descriptions; the first one wins.
#[derive(Clone, Copy)]
pub(super) struct TextSources<'a> {
    given: &'a BTreeMap<String, String>,
    wits: [Option<&'a WitTexts>; 2],
}

impl<'a> TextSources<'a> {
    pub(super) fn new(descriptions: &'a Descriptions, own: &'a WitTexts) -> Self {
        Self { given: &descriptions.given, wits: [descriptions.wit.as_deref(), Some(own)] }
    }

    pub(super) fn function(&self, interface: Option<&str>, name: &str) -> Option<String> {
        let written = |texts: &&'a WitTexts| texts.scope(interface)?.functions.get(name);
        self.given.get(name).or_else(|| self.wits.iter().flatten().find_map(written)).cloned()
    }

    /// A parameter. WIT has no doc comments on parameters.
    pub(super) fn parameter(&self, function: &str, name: &str) -> Option<String> {
        self.given.get(&format!("{function}.{name}")).cloned()
    }

    fn ty(&self, names: &[TypeName], part_names: &[&str]) -> Option<KnownText> {
        let mut all: Vec<KnownText> = Vec::new();
        for name in names {
            if !all.iter().any(|known| known.name.as_deref() == Some(&name.name)) {
                all.push(self.named(&name.name, names, part_names));
            }
        }
        // Types of the same structure are one type in a component. A description of one of them may
        // be wrong for the other, so only those that apply to all are used.
        all.into_iter().reduce(|one, other| KnownText {
            name: None,
            text: one.text.filter(|text| other.text.as_ref() == Some(text)),
            parts: one
                .parts
                .into_iter()
                .zip(other.parts)
                .map(|(one, other)| if one == other { one } else { None })
                .collect(),
        })
    }

    /// Descriptions of a type with this name, in any interface that has it.
    fn named(&self, name: &str, names: &[TypeName], part_names: &[&str]) -> KnownText {
        let written: Vec<&TypeText> = self
            .wits
            .iter()
            .flatten()
            .flat_map(|texts| {
                let same = names.iter().filter(|other| other.name == name);
                same.map(|other| texts.scope(other.interface.as_deref()))
            })
            .filter_map(|scope| scope?.types.get(name))
            .collect();
        let text = self.given.get(name).or_else(|| written.iter().find_map(|known| known.text.as_ref()));
        let part = |part: &&str| {
            let given = self.given.get(&format!("{name}.{part}"));
            given.or_else(|| written.iter().find_map(|known| known.parts.get(*part))).cloned()
        };
        KnownText { name: Some(name.to_owned()), text: text.cloned(), parts: part_names.iter().map(part).collect() }
    }
}

impl DescribedTypes {
    pub(super) fn new(types: &Types, names: &HashMap<TyId, Vec<TypeName>>, sources: &TextSources<'_>) -> Self {
        let known = |(ty, names): (&TyId, &Vec<TypeName>)| Some((*ty, sources.ty(names, &part_names(types.get(*ty)))?));
        Self(names.iter().filter_map(known).collect())
    }
}

impl Docs for DescribedTypes {
    fn of_type(&self, ty: TyId) -> Option<TypeDocs<'_>> {
        let known = self.0.get(&ty)?;
        Some(TypeDocs { name: known.name.as_deref(), text: known.text.as_deref(), members: &known.parts })
    }
}

/// The names of a type's parts, as in WIT and in its order.
pub(super) fn part_names(ty: &Ty) -> Vec<&str> {
    match ty {
        Ty::Record(fields) => fields.iter().map(|field| field.wit_name.as_str()).collect(),
        Ty::Variant(cases) => cases.iter().map(|case| case.name.as_str()).collect(),
        Ty::Enum(labels) | Ty::Flags(labels) => labels.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}
