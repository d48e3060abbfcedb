//! A template: text and slots, read once.

/// A text with slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    text: String,
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Slot(Slot),
}

/// A place for an argument of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The argument's name; empty for all of them.
    pub(crate) name: String,
    pub(crate) kind: SlotKind,
    /// True if the value may begin with `-` where an option could stand.
    pub(crate) dash: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// The value.
    Value,
    /// The value; without one, the whole template is left out.
    Optional,
    /// This text if there is a value; without one, the whole template is left out.
    Switch(String),
    /// An argument for each item.
    Each,
    /// All arguments as JSON.
    All,
}

/// Why a text is not a template. The message completes the sentence "args …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// `{` without `}`.
    #[error("has a \"{{\" without its \"}}\"")]
    Open,
    /// `}` without `{`.
    #[error("has a \"}}\" without its \"{{\"")]
    Close,
    /// `{}`.
    #[error("has a slot without a name")]
    Unnamed,
    /// More than one list.
    #[error("has two slots of lists")]
    TwoLists,
}

impl Template {
    /// Reads the text of a template.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            let escaped = [("{{", '{'), ("}}", '}')].into_iter().find(|(twice, _)| from.starts_with(twice));
            if let Some((twice, brace)) = escaped {
                literal.push(brace);
                rest = from.strip_prefix(twice).unwrap_or_default();
                continue;
            }
            let inside = from.strip_prefix('{').ok_or(TemplateError::Close)?;
            let (slot, after) = inside.split_once('}').ok_or(TemplateError::Open)?;
            if slot.contains('{') {
                return Err(TemplateError::Open);
            }
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Slot(Slot::parse(slot)?));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() || parts.is_empty() {
            parts.push(Part::Text(literal));
        }
        let template = Self { text: text.to_owned(), parts };
        if template.slots().filter(|slot| slot.kind == SlotKind::Each).count() > 1 {
            return Err(TemplateError::TwoLists);
        }
        Ok(template)
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.parts.iter().filter_map(|part| match part {
            Part::Slot(slot) => Some(slot),
            Part::Text(_) => None,
        })
    }

    /// The slot at its very beginning.
    pub(crate) fn first_slot(&self) -> Option<&Slot> {
        match self.parts.first() {
            Some(Part::Slot(slot)) => Some(slot),
            _ => None,
        }
    }

    /// True for the argument `--`, which ends a program's options.
    pub(crate) fn ends_options(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Text(text)] if text == "--")
    }
}

impl Slot {
    /// Reads the text between the braces.
    fn parse(inside: &str) -> Result<Self, TemplateError> {
        if inside == "*" {
            return Ok(Self { name: String::new(), kind: SlotKind::All, dash: true });
        }
        let (name, kind) = if let Some(name) = inside.strip_suffix("...") {
            (name, SlotKind::Each)
        } else {
            match inside.split_once('?') {
                None => (inside, SlotKind::Value),
                Some((name, "")) => (name, SlotKind::Optional),
                Some((name, text)) => (name, SlotKind::Switch(text.to_owned())),
            }
        };
        let (name, dash) = match name.strip_suffix('!') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() {
            return Err(TemplateError::Unnamed);
        }
        Ok(Self { name: name.to_owned(), kind, dash })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    fn slot(name: &str, kind: SlotKind, dash: bool) -> Part {
        Part::Slot(Slot { name: name.to_owned(), kind, dash })
    }

    #[test]
    fn templates_are_text_and_slots() {
        let switch = |text: &str| SlotKind::Switch(text.to_owned());
        for (written, expected) in [
            ("", vec![text("")]),
            ("-x", vec![text("-x")]),
            ("{a}", vec![slot("a", SlotKind::Value, false)]),
            ("{a?}", vec![slot("a", SlotKind::Optional, false)]),
            ("{a?--a}", vec![slot("a", switch("--a"), false)]),
            ("{a?b?}", vec![slot("a", switch("b?"), false)]),
            ("{a...}", vec![slot("a", SlotKind::Each, false)]),
            ("{a!}", vec![slot("a", SlotKind::Value, true)]),
            ("{a!?}", vec![slot("a", SlotKind::Optional, true)]),
            ("{a!...}", vec![slot("a", SlotKind::Each, true)]),
            ("{*}", vec![slot("", SlotKind::All, true)]),
            (
                "--{a}={b}.",
                vec![
                    text("--"),
                    slot("a", SlotKind::Value, false),
                    text("="),
                    slot("b", SlotKind::Value, false),
                    text("."),
                ],
            ),
            ("{{a}}", vec![text("{a}")]),
            ("{{{a}}}", vec![text("{"), slot("a", SlotKind::Value, false), text("}")]),
            ("{{}}{{", vec![text("{}{")]),
        ] {
            assert_eq!(Template::parse(written).unwrap().parts(), expected, "{written:?}");
        }
    }

    #[test]
    fn what_is_no_template_is_told() {
        for (written, expected) in [
            ("{", TemplateError::Open),
            ("{a", TemplateError::Open),
            ("{a{b}", TemplateError::Open),
            ("}", TemplateError::Close),
            ("a}b", TemplateError::Close),
            ("{a}}", TemplateError::Close),
            ("{}", TemplateError::Unnamed),
            ("{?}", TemplateError::Unnamed),
            ("{!}", TemplateError::Unnamed),
            ("{...}", TemplateError::Unnamed),
            ("{a...}{b...}", TemplateError::TwoLists),
        ] {
            assert_eq!(Template::parse(written), Err(expected), "{written:?}");
        }
    }
}
