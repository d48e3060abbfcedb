//! The references of a schema: which are replaced by their targets, and which stay. All are
//! measured first, since replacing them can multiply a schema.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use crate::graph::normal;
use crate::keywords::{self, REFERENCES};

use super::GROWTH_MAX;

/// Bytes up to which a schema may grow [`GROWTH_MAX`] times. A page of definitions takes a quarter
/// of it.
pub(super) const SMALL_BYTES: usize = 16 * 1024;

/// How many times larger other schemas may become by replacing references or duplicating
/// definitions.
const LARGE_GROWTH_MAX: usize = 2;

/// Deepest nesting of subschemas once references are replaced. Lists of tools need five.
pub(super) const DEPTH_MAX: usize = 32;

/// The references of one schema.
pub(super) struct References<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    /// The new names of the schemas that references still name, by their pointers.
    kept: BTreeMap<String, Option<String>>,
}

/// A reference in the portable form.
pub(super) enum Reference<'s> {
    /// It is replaced by this schema.
    Inlined(&'s Value),
    /// It stays, and names this place.
    Kept(String),
}

/// The size of a schema once its references are replaced.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    bytes: usize,
    depth: usize,
}

struct Measuring<'r, 's> {
    references: &'r References<'s>,
    measured: HashMap<String, Measure>,
    /// The references that are being followed.
    path: Vec<String>,
    /// The recursive ones.
    recursive: Vec<String>,
    too_deep: bool,
}

impl<'s> References<'s> {
    /// The references of this schema, all replaced except recursive ones; `None` if the result is
    /// too large.
    pub(super) fn replaced(root: &'s Value) -> Option<Self> {
        let mut references = Self { root, anchors: HashMap::new(), kept: BTreeMap::new() };
        let mut is_any = false;
        references.find_anchors(root, &mut is_any);
        if !is_any {
            return Some(references);
        }
        let mut measuring = Measuring {
            references: &references,
            measured: HashMap::new(),
            path: Vec::new(),
            recursive: Vec::new(),
            too_deep: false,
        };
        let mut whole = measuring.schema(root, 0);
        for (_, target) in references.anchored() {
            let Measure { bytes, depth } = measuring.schema(target, 1);
            whole = Measure { bytes: whole.bytes.saturating_add(bytes), depth: whole.depth.max(depth) };
        }
        let Measuring { measured, recursive, too_deep, .. } = measuring;
        let bytes = |pointers: &[String]| {
            let each = pointers.iter().filter(|pointer| !pointer.is_empty());
            let each = each.map(|pointer| measured.get(pointer).map_or(0, |measure| measure.bytes));
            each.fold(0, usize::saturating_add)
        };
        let fits = !too_deep && whole.depth <= DEPTH_MAX;
        let fits = fits && whole.bytes.saturating_add(bytes(&recursive)) <= bytes_max(root);
        references.kept = names(recursive);
        fits.then_some(references)
    }

    /// The references of this schema, all kept, each with a place of its own; `None` if the result
    /// is too large.
    pub(super) fn staying(root: &'s Value) -> Option<Self> {
        let mut references = Self { root, anchors: HashMap::new(), kept: BTreeMap::new() };
        references.find_anchors(root, &mut false);
        let mut named = Vec::new();
        references.find_targets(root, &mut named);
        named.sort();
        named.dedup();
        let written = named.iter().filter(|pointer| !pointer.is_empty());
        let written = written.filter_map(|pointer| references.by_pointer(pointer));
        let bytes = written.map(|target| target.to_string().len()).fold(root.to_string().len(), usize::saturating_add);
        references.kept = names(named);
        (bytes <= bytes_max(root)).then_some(references)
    }

    /// The reference in this schema, if it has one.
    pub(super) fn of_schema(&self, schema: &'s Map<String, Value>) -> Option<Reference<'s>> {
        let (pointer, target) = self.target(schema)?;
        Some(match self.kept.get(&pointer) {
            Some(Some(name)) => Reference::Kept(format!("#/$defs/{name}")),
            Some(None) => Reference::Kept("#".to_owned()),
            None => Reference::Inlined(target),
        })
    }

    /// The schemas that references still name, with their names.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&str, &'s Value)> {
        self.kept.iter().filter_map(|(pointer, name)| {
            let name = name.as_deref()?;
            Some((name, self.by_pointer(pointer)?))
        })
    }

    /// The definitions with an anchor, with their names.
    pub(super) fn anchored(&self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let definitions = self.root.get("$defs").and_then(Value::as_object).into_iter().flatten();
        definitions.filter(|(_, target)| target.get("$anchor").is_some()).map(|(name, target)| (name.as_str(), target))
    }

    fn by_pointer(&self, pointer: &str) -> Option<&'s Value> {
        match pointer.strip_prefix('#') {
            Some(anchor) => self.anchors.get(anchor).copied(),
            None => self.root.pointer(pointer),
        }
    }

    /// The target of this schema's reference, with its pointer, or `#` and its anchor.
    fn target(&self, schema: &'s Map<String, Value>) -> Option<(String, &'s Value)> {
        let written = REFERENCES.iter().find_map(|keyword| schema.get(*keyword)?.as_str())?;
        let fragment = written.strip_prefix('#')?;
        let pointer =
            if fragment.is_empty() || fragment.starts_with('/') { normal(fragment) } else { written.to_owned() };
        let target = self.by_pointer(&pointer)?;
        Some((pointer, target))
    }

    fn find_targets(&self, schema: &'s Value, found: &mut Vec<String>) {
        let Some(members) = schema.as_object() else { return };
        found.extend(self.target(members).map(|(pointer, _)| pointer));
        for child in keywords::children(members) {
            self.find_targets(child.schema, found);
        }
    }

    fn find_anchors(&mut self, schema: &'s Value, is_any: &mut bool) {
        let Some(members) = schema.as_object() else { return };
        *is_any |= REFERENCES.iter().any(|keyword| members.contains_key(*keyword));
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = members.get(keyword).and_then(Value::as_str) {
                self.anchors.insert(anchor, schema);
            }
        }
        for child in keywords::children(members) {
            self.find_anchors(child.schema, is_any);
        }
    }
}

/// The largest size that a schema may grow to.
fn bytes_max(root: &Value) -> usize {
    let written = root.to_string().len();
    let small = SMALL_BYTES.min(GROWTH_MAX.saturating_mul(written));
    small.max(LARGE_GROWTH_MAX.saturating_mul(written))
}

/// Names for the schemas at these pointers; the root needs none.
fn names(pointers: Vec<String>) -> BTreeMap<String, Option<String>> {
    let mut names = UsedNames::default();
    let mut kept = BTreeMap::new();
    for pointer in pointers {
        if kept.contains_key(&pointer) {
            continue;
        }
        let last = pointer.rsplit(['/', '#']).next().unwrap_or_default();
        let name = (!pointer.is_empty()).then(|| names.unused(last));
        kept.insert(pointer, name);
    }
    kept
}

/// Names that are in use.
#[derive(Default)]
struct UsedNames {
    used: HashSet<String>,
    /// The next number to try for a name, so that many equal names take no longer than different
    /// ones.
    next: HashMap<String, usize>,
}

impl UsedNames {
    /// An unused name similar to this one, of letters, digits and `_`.
    fn unused(&mut self, like: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let plain: String = like.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        let plain = if plain.is_empty() { "schema".to_owned() } else { plain };
        if self.used.insert(plain.clone()) {
            return plain;
        }
        let next = self.next.entry(plain.clone()).or_insert(2);
        loop {
            let name = format!("{plain}_{next}");
            *next += 1;
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

impl<'s> Measuring<'_, 's> {
    /// The size of a schema at this depth, counted up to the bounds.
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Measure {
        if depth > 2 * DEPTH_MAX {
            self.too_deep = true;
        }
        let Some(members) = schema.as_object().filter(|_| !self.too_deep) else {
            return Measure { bytes: 8, depth: 1 };
        };
        let mut measure = Measure { bytes: 2, depth: 0 };
        let add = |part: Measure, measure: &mut Measure| {
            measure.bytes = measure.bytes.saturating_add(part.bytes);
            measure.depth = measure.depth.max(part.depth);
        };
        for (keyword, value) in members {
            measure.bytes = measure.bytes.saturating_add(keyword.len() + 4);
            if !keywords::holds_schemas(keyword) {
                measure.bytes = measure.bytes.saturating_add(value.to_string().len());
            }
        }
        for child in keywords::children(members) {
            if matches!(child.place, ["$defs" | "definitions", _]) {
                continue;
            }
            let [_, name] = child.place;
            measure.bytes = measure.bytes.saturating_add(name.len() + 4);
            let part = self.schema(child.schema, depth + 1);
            add(part, &mut measure);
        }
        if let Some((pointer, target)) = self.references.target(members) {
            let part = self.target(pointer, target, depth);
            add(part, &mut measure);
        }
        Measure { depth: measure.depth + 1, ..measure }
    }

    fn target(&mut self, pointer: String, target: &'s Value, depth: usize) -> Measure {
        if self.path.contains(&pointer) || pointer.is_empty() {
            if !self.recursive.contains(&pointer) {
                self.recursive.push(pointer);
            }
            return Measure { bytes: 24, depth: 1 };
        }
        if let Some(measure) = self.measured.get(&pointer) {
            return *measure;
        }
        self.path.push(pointer.clone());
        let measure = self.schema(target, depth + 1);
        self.path.pop();
        self.measured.insert(pointer, measure);
        measure
    }
}
