//! Places in a document: a value and the way that leads to it. Holds no selection.

use serde_json::Value;
use std::cell::Cell;
use std::fmt::Write as _;
use std::rc::Rc;

/// Places that one query may look at: far more than any document that fits into a call has, and few enough that a
/// query which multiplies them (`$..*..*`) ends with a clear message instead of the end of its memory.
const PLACES_MAX: usize = 500_000;

/// The places of one document.
pub struct Places<'document> {
    root: Place<'document>,
    looked_at: Cell<usize>,
}

/// One place.
#[derive(Clone, Debug)]
pub struct Place<'document> {
    value: &'document Value,
    way: Option<Rc<Way<'document>>>,
}

/// The last step to a place, and the place that it starts from.
#[derive(Debug)]
struct Way<'document> {
    from: Option<Rc<Way<'document>>>,
    step: Step<'document>,
}

#[derive(Debug)]
enum Step<'document> {
    Name(&'document str),
    Index(usize),
}

/// A query looked at more places than it may.
#[derive(Debug)]
pub struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the query looks at more than {PLACES_MAX} places; make it more specific")
    }
}

impl<'document> Places<'document> {
    /// All of a document.
    pub fn of(document: &'document Value) -> Self {
        Self { root: Place { value: document, way: None }, looked_at: Cell::new(0) }
    }

    /// The document itself.
    pub fn root(&self) -> Place<'document> {
        self.root.clone()
    }

    /// Counts a place that is looked at.
    ///
    /// # Errors
    /// [`TooMany`] past the limit.
    pub fn look(&self) -> Result<(), TooMany> {
        self.looked_at.set(self.looked_at.get() + 1);
        if self.looked_at.get() > PLACES_MAX { Err(TooMany) } else { Ok(()) }
    }
}

impl<'document> Place<'document> {
    /// What is there.
    pub fn value(&self) -> &'document Value {
        self.value
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<Self> {
        let (name, value) = self.value.as_object()?.get_key_value(name)?;
        Some(self.step_to(Step::Name(name), value))
    }

    /// The element at this index from the start.
    pub fn element(&self, index: usize) -> Option<Self> {
        let value = self.value.as_array()?.get(index)?;
        Some(self.step_to(Step::Index(index), value))
    }

    /// Every member or element, in the document's order.
    pub fn children(&self) -> Vec<Self> {
        match self.value {
            Value::Array(elements) => {
                elements.iter().enumerate().map(|(index, value)| self.step_to(Step::Index(index), value)).collect()
            }
            Value::Object(members) => {
                members.iter().map(|(name, value)| self.step_to(Step::Name(name), value)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The way to here as a normalized path (RFC 9535, section 2.7).
    pub fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut way = self.way.as_ref();
        while let Some(here) = way {
            steps.push(&here.step);
            way = here.from.as_ref();
        }
        let mut path = String::from("$");
        for step in steps.into_iter().rev() {
            match step {
                Step::Name(name) => push_name(&mut path, name),
                Step::Index(index) => push(&mut path, format_args!("[{index}]")),
            }
        }
        path
    }

    fn step_to(&self, step: Step<'document>, value: &'document Value) -> Self {
        Self { value, way: Some(Rc::new(Way { from: self.way.clone(), step })) }
    }
}

fn push_name(path: &mut String, name: &str) {
    path.push_str("['");
    for letter in name.chars() {
        match letter {
            '\'' => path.push_str("\\'"),
            '\\' => path.push_str("\\\\"),
            '\u{8}' => path.push_str("\\b"),
            '\u{c}' => path.push_str("\\f"),
            '\n' => path.push_str("\\n"),
            '\r' => path.push_str("\\r"),
            '\t' => path.push_str("\\t"),
            control if control < ' ' => push(path, format_args!("\\u{:04x}", u32::from(control))),
            other => path.push(other),
        }
    }
    path.push_str("']");
}

fn push(path: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = path.write_fmt(text);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_normalized() {
        let document = json!({"a'b\\c": {"\u{1}\n\u{7f}é": [0, {"": true}]}});
        let places = Places::of(&document);
        let place = places.root().member("a'b\\c").unwrap().member("\u{1}\n\u{7f}é").unwrap();
        let place = place.element(1).unwrap().member("").unwrap();
        assert_eq!(place.path(), "$['a\\'b\\\\c']['\\u0001\\n\u{7f}é'][1]['']");
        assert_eq!(place.value(), &json!(true));
        assert_eq!(places.root().path(), "$");
    }
}
