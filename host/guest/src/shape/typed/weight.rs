//! The size of the schema of some types as text, counted without writing it.
//!
//! It mirrors [`super::schema`]. A type with a name is written under `$defs` once, and a reference
//! at each use; a short type is written at each use. The count errs on the high side.
use std::collections::{HashMap, HashSet};

use super::schema::Docs;
use super::ty::{Ty, TyId, Types};

/// Types up to this weight are written in full at each use.
const PLAIN_WEIGHT_MAX: usize = 4;

/// A keyword or two around a type, and the object that they are in.
const FRAME_BYTES: usize = 120;

/// An integer of 64 bits, with the pattern of its digits.
const WIDE_BYTES: usize = 120;

/// A reference, without the name in it.
const REFERENCE_BYTES: usize = 40;

/// Counts for one component's types.
pub(super) struct Weights<'a> {
    types: &'a Types,
    docs: &'a dyn Docs,
    /// The number of types that each type consists of, written in full.
    plain: HashMap<TyId, usize>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(types: &'a Types, docs: &'a dyn Docs) -> Self {
        Self { types, docs, plain: HashMap::new() }
    }

    /// Bytes of the schema of an object with these types.
    pub(super) fn of(&mut self, roots: impl Iterator<Item = TyId>) -> usize {
        let mut bytes = FRAME_BYTES;
        let mut seen = HashSet::new();
        let mut ahead: Vec<TyId> = Vec::new();
        for root in roots {
            bytes = bytes.saturating_add(self.stands(root, &mut ahead));
        }
        while let Some(ty) = ahead.pop() {
            if seen.insert(ty) {
                bytes = bytes.saturating_add(self.written(ty, &mut ahead));
            }
        }
        bytes
    }

    /// The size of a type at one use: a reference, or all of it. Notes the reference's target in
    /// `ahead`.
    fn stands(&mut self, ty: TyId, ahead: &mut Vec<TyId>) -> usize {
        if !self.types.get(ty).has_parts() && self.weight(ty) <= PLAIN_WEIGHT_MAX {
            return self.written(ty, ahead);
        }
        ahead.push(ty);
        let name = self.docs.of_type(ty).and_then(|known| known.name).map_or(0, str::len);
        REFERENCE_BYTES.saturating_add(name)
    }

    /// The size of a type written in full.
    fn written(&mut self, ty: TyId, ahead: &mut Vec<TyId>) -> usize {
        let known = self.docs.of_type(ty).unwrap_or_default();
        let texts = known.members.iter().flatten().map(String::len).chain(known.text.map(str::len));
        let own = names(self.types.get(ty)).saturating_add(known.name.map_or(0, str::len));
        let mut bytes = texts.fold(FRAME_BYTES.saturating_add(own), usize::saturating_add);
        for part in self.types.parts(ty) {
            bytes = bytes.saturating_add(self.stands(part, ahead));
        }
        bytes
    }

    fn weight(&mut self, ty: TyId) -> usize {
        if let Some(weight) = self.plain.get(&ty) {
            return *weight;
        }
        let mut weight = 1_usize;
        for part in self.types.parts(ty) {
            let stands_alone = self.types.get(part).has_parts();
            weight = weight.saturating_add(if stands_alone { 1 } else { self.weight(part) });
        }
        self.plain.insert(ty, weight);
        weight
    }
}

/// The size of the names of a type's own parts. Those of fields appear among the properties and in
/// the list of required ones.
fn names(ty: &Ty) -> usize {
    let listed = |names: &[String]| names.iter().map(|name| name.len() + 8).fold(0, usize::saturating_add);
    match ty {
        Ty::Record(fields) => fields.iter().map(|field| 2 * field.name.len() + 16).fold(0, usize::saturating_add),
        Ty::Variant(cases) => cases.iter().map(|case| 2 * case.name.len() + FRAME_BYTES).fold(0, usize::saturating_add),
        Ty::Enum(labels) | Ty::Flags(labels) => listed(labels),
        Ty::Int(int) if int.is_wide() => WIDE_BYTES,
        Ty::F32 | Ty::F64 | Ty::Bytes | Ty::Result(..) | Ty::Stream(_) => 2 * FRAME_BYTES,
        _ => 0,
    }
}
