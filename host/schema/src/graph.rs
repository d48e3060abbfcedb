//! A schema as a graph of subschemas with resolved references. Building it checks every bound that
//! does not need the compiler: depth, number, patterns, and references out of the schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keywords::{self, Applies, Child, REFERENCES};
use super::view;
use crate::bounds::{DEPTH_MAX, DefinitionProblem, SUBSCHEMAS_MAX};
use crate::problems::cut;
use crate::sanitize;

/// Bytes of the places of all subschemas, which the validator keeps once for each of their
/// keywords. A thousand subschemas of four keywords with ordinary names take a quarter of it.
const PLACES_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Most problems reported for one schema. Whoever mends twenty will look at the rest.
const PROBLEMS_MAX: usize = 20;

/// One subschema.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Subschemas and references that apply to the value itself.
    pub(super) here: Vec<usize>,
    /// Subschemas of members by name.
    pub(super) members: HashMap<String, usize>,
    /// Subschemas of any member or element.
    pub(super) below: Vec<usize>,
    /// The subschema has `unevaluatedProperties` or `unevaluatedItems`, which visit again
    /// everything that was applied here.
    pub(super) looks_twice: bool,
}

/// One regular expression and its place.
#[derive(Debug)]
pub(super) struct WrittenPattern {
    /// As a JSON Pointer.
    pub(super) place: String,
    pub(super) text: String,
    /// It applies to names of members, not to values.
    pub(super) of_names: bool,
}

/// Traits of a schema that make checks or problems expensive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// `format` and the keywords for content, which read a text as a whole.
    pub(super) reads_texts: bool,
    /// `"format": "regex"`, which compares every name in a text with every other.
    pub(super) reads_patterns: bool,
    /// Content in texts is parsed.
    pub(super) parses_texts: bool,
    /// The steps for the digits of the most expensive `multipleOf`; `None` without one.
    pub(super) divided: Option<u64>,
    /// `unevaluatedItems`, which reports its problems with a copy of each item.
    pub(super) copies_items: bool,
    /// The longest text or constant that a problem may quote, in bytes.
    pub(super) quoted_bytes: usize,
}

/// A schema as a graph; node 0 is the root.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) has_references: bool,
    pub(super) patterns: Vec<WrittenPattern>,
    pub(super) traits: Traits,
    /// The places of all subschemas, in bytes, once for each of their keywords.
    pub(super) places_bytes: usize,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn build(field: &str, schema: &Value) -> Result<Self, Vec<DefinitionProblem>> {
        let mut builder = Builder::new(field);
        builder.visit(schema, String::new(), 0);
        builder.resolve();
        if builder.problems.is_empty() { Ok(builder.graph) } else { Err(builder.problems) }
    }
}

struct Builder<'b> {
    field: &'b str,
    graph: Graph,
    problems: Vec<DefinitionProblem>,
    /// Nodes by JSON Pointer.
    pointers: HashMap<String, usize>,
    /// Nodes by `$anchor` and its kin.
    anchors: HashMap<String, usize>,
    /// Unresolved references: the node, its pointer, the keyword, the target.
    references: Vec<(usize, String, &'static str, String)>,
    too_many: bool,
}

impl<'b> Builder<'b> {
    fn new(field: &'b str) -> Self {
        Self {
            field,
            graph: Graph::default(),
            problems: Vec::new(),
            pointers: HashMap::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
            too_many: false,
        }
    }

    fn problem(&mut self, pointer: &str, message: impl Into<String>) {
        let field = self.place(pointer);
        self.report(DefinitionProblem::new(field, message));
    }

    fn report(&mut self, problem: DefinitionProblem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// A place in the definition, for people.
    fn place(&self, pointer: &str) -> String {
        place(self.field, pointer)
    }

    /// Reports once that further problems are left out.
    fn too_many(&mut self, message: String) {
        if !std::mem::replace(&mut self.too_many, true) {
            self.problem("", message);
        }
    }

    /// Visits one subschema; `None` if it exceeds a bound.
    fn visit(&mut self, schema: &Value, pointer: String, depth: usize) -> Option<usize> {
        if depth > DEPTH_MAX {
            self.problem(&pointer, format!("nested deeper than {DEPTH_MAX} subschemas"));
            return None;
        }
        if self.graph.nodes.len() >= SUBSCHEMAS_MAX {
            self.too_many(format!("more than {SUBSCHEMAS_MAX} subschemas"));
            return None;
        }
        let keywords = schema.as_object().map_or(0, Map::len);
        self.graph.places_bytes += pointer.len() * (keywords + 1);
        if self.graph.places_bytes > PLACES_BYTES_MAX {
            self.too_many("the names of its subschemas are too long in all".to_owned());
            return None;
        }
        let node = self.graph.nodes.len();
        self.graph.nodes.push(Node::default());
        if let Value::Object(members) = schema {
            self.check_members(members, &pointer, node);
            for child in keywords::children(members) {
                self.visit_child(node, &pointer, &child, depth + 1);
            }
        }
        self.pointers.insert(pointer, node);
        Some(node)
    }

    fn visit_child(&mut self, parent: usize, pointer: &str, child: &Child<'_>, depth: usize) {
        let [keyword, name] = child.place;
        let place = match (child.number, name) {
            (Some(number), _) => format!("{pointer}/{keyword}/{number}"),
            (None, "") if !matches!(keyword, "properties" | "patternProperties" | "$defs" | "definitions") => {
                format!("{pointer}/{keyword}")
            }
            (None, name) => format!("{pointer}/{keyword}/{}", escaped(name)),
        };
        if keyword == "patternProperties" {
            self.note_pattern(&place, name, true);
        }
        if !sanitize::is_plain_line(name) {
            self.problem(&place, "the name has control, bidirectional or zero-width characters");
        }
        let Some(node) = self.visit(child.schema, place, depth) else { return };
        let Some(parent) = self.graph.nodes.get_mut(parent) else { return };
        match child.applies {
            Applies::Here => parent.here.push(node),
            Applies::Below => parent.below.push(node),
            Applies::Member => {
                parent.members.insert(name.to_owned(), node);
            }
            Applies::Nowhere => {}
        }
    }

    fn check_members(&mut self, members: &Map<String, Value>, pointer: &str, node: usize) {
        let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
        if let Some(pattern) = text("pattern") {
            self.note_pattern(&format!("{pointer}/pattern"), pattern, false);
        }
        self.note_traits(members);
        for keyword in ["$id", "id", "$schema"] {
            // In older drafts `id` is that keyword. As the name of an argument it is below
            // `properties`.
            if !pointer.is_empty() && text(keyword).is_some() {
                self.problem(&format!("{pointer}/{keyword}"), "only the root of a schema may have it");
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            let Some(anchor) = text(keyword) else { continue };
            // With two, a reference would be ambiguous.
            if self.anchors.insert(anchor.to_owned(), node).is_some_and(|other| other != node) {
                self.problem(&format!("{pointer}/{keyword}"), "another subschema has the same");
            }
        }
        for keyword in REFERENCES {
            if let Some(target) = text(keyword) {
                self.references.push((node, pointer.to_owned(), keyword, target.to_owned()));
            }
        }
        let twice = members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems");
        if let Some(node) = self.graph.nodes.get_mut(node) {
            node.looks_twice = twice;
        }
    }

    fn note_traits(&mut self, members: &Map<String, Value>) {
        let traits = &mut self.graph.traits;
        let reading = ["format", "contentEncoding", "contentMediaType"];
        traits.reads_texts |= reading.iter().any(|keyword| members.contains_key(*keyword));
        traits.reads_patterns |= members.get("format").and_then(Value::as_str) == Some("regex");
        traits.parses_texts |= members.contains_key("contentMediaType");
        let divisor = members.get("multipleOf").and_then(Value::as_f64).map(view::digits_steps);
        traits.divided = traits.divided.max(divisor);
        traits.copies_items |= members.contains_key("unevaluatedItems");
        let constant = members.get("const").map_or(0, |value| value.to_string().len());
        let names = members.get("required").and_then(Value::as_array).into_iter().flatten();
        let told = names.filter_map(Value::as_str).map(str::len).max().unwrap_or(0).max(constant);
        traits.quoted_bytes = traits.quoted_bytes.max(told);
    }

    fn note_pattern(&mut self, pointer: &str, pattern: &str, of_names: bool) {
        self.graph.patterns.push(WrittenPattern { place: pointer.to_owned(), text: pattern.to_owned(), of_names });
    }

    fn resolve(&mut self) {
        for (node, pointer, keyword, target) in std::mem::take(&mut self.references) {
            self.graph.has_references = true;
            let place = format!("{pointer}/{keyword}");
            let shown: String = sanitize::line(&target).chars().take(128).collect();
            let Some(fragment) = target.strip_prefix('#') else {
                let field = self.place(&place);
                let problem = DefinitionProblem::new(field, format!("{shown:?} leaves the schema; nothing is fetched"));
                self.report(problem.hint("put the schema under $defs and refer to \"#/$defs/NAME\""));
                continue;
            };
            let found = if fragment.is_empty() || fragment.starts_with('/') {
                self.pointers.get(&normal(fragment)).copied()
            } else {
                self.anchors.get(fragment).copied()
            };
            match (found, self.graph.nodes.get_mut(node)) {
                (Some(target), Some(node)) => node.here.push(target),
                _ if self.too_many => {}
                _ => self.problem(&place, format!("{shown:?} names no subschema")),
            }
        }
    }
}

/// A place in a definition, for people; a very long one is cut.
pub(super) fn place(field: &str, pointer: &str) -> String {
    format!("{field}{}", cut(pointer))
}

/// A name as a part of a JSON Pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A pointer from a URI fragment: percent-decoded, as [`escaped`] writes it.
pub(super) fn normal(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        let digits = rest.as_slice().get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match digits.filter(|_| byte == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
