//! The text of a manifest, line by line, with the option that each comes from.
use std::fmt::Write as _;

use toolcell_policy::edit::ManifestEntry;
use toolcell_policy::rights::{PlaceForm, RightPlace, places};

/// A text that tracks the option of each line.
#[derive(Default)]
pub struct SketchLines {
    text: String,
    /// First byte of each line, with its origin.
    starts: Vec<(usize, Option<Origin>)>,
    /// Entries of the current component.
    pending: Vec<(ManifestEntry, Origin)>,
}

/// The option that a line comes from.
#[derive(Clone, Debug)]
struct Origin {
    /// The option as written.
    option: String,
    /// Its number among the rights; `None` for a component's file.
    right: Option<usize>,
}

impl SketchLines {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The option that the byte at this place comes from.
    pub fn option_at(&self, byte: usize) -> Option<&str> {
        self.origin_at(byte).map(|origin| origin.option.as_str())
    }

    /// The number of the right that the byte at this place comes from.
    pub fn right_at(&self, byte: usize) -> Option<usize> {
        self.origin_at(byte)?.right
    }

    fn origin_at(&self, byte: usize) -> Option<&Origin> {
        let line = self.starts.iter().rev().find(|(start, _)| *start <= byte)?;
        line.1.as_ref()
    }

    /// Begins a component.
    pub fn begin(&mut self, name: &str, option: &str, source: &str) {
        let origin = Origin { option: option.to_owned(), right: None };
        self.push("", None);
        self.line(&format!("[components.{name}]"), Some(&origin));
        self.line(&format!("source = {}", quoted(source)), Some(&origin));
    }

    /// Adds an entry to the component, unless it already has it.
    pub fn add(&mut self, entry: &ManifestEntry, right: usize, option: &str) {
        let same = |(other, _): &(ManifestEntry, Origin)| {
            (other.section, &other.key, other.value.to_string()) == (entry.section, &entry.key, entry.value.to_string())
        };
        if !self.pending.iter().any(same) {
            self.pending.push((entry.clone(), Origin { option: option.to_owned(), right: Some(right) }));
        }
    }

    /// Writes the sections of the component.
    pub fn end(&mut self, component: &str) {
        let pending = std::mem::take(&mut self.pending);
        let mut begun = "";
        // Lists of the component's own table come before the tables below it.
        let is_list = |place: &RightPlace| place.form == PlaceForm::List;
        for RightPlace { section, form } in places().filter(is_list).chain(places().filter(|place| !is_list(place))) {
            let is_here = |entry: &ManifestEntry| match form {
                PlaceForm::Rules(list) => entry.section == section && entry.key == list,
                PlaceForm::Names | PlaceForm::List => entry.section == section,
            };
            let entries: Vec<_> = pending.iter().filter(|(entry, _)| is_here(entry)).collect();
            let Some((_, first)) = entries.first() else { continue };
            if section != begun && form != PlaceForm::List {
                self.push("", None);
                self.line(&format!("[components.{component}.{section}]"), Some(first));
                begun = section;
            }
            match form {
                PlaceForm::Rules(list) => self.list(list, first, &entries),
                PlaceForm::List => self.list(section, first, &entries),
                PlaceForm::Names => {
                    for (entry, origin) in entries {
                        self.line(&format!("{} = {}", key(&entry.key), entry.value), Some(origin));
                    }
                }
            }
        }
    }

    fn list(&mut self, list: &str, first: &Origin, rules: &[&(ManifestEntry, Origin)]) {
        self.line(&format!("{list} = ["), Some(first));
        for (entry, origin) in rules {
            for rule in entry.value.as_array().into_iter().flatten() {
                self.line(&format!("    {},", rule.to_string().trim()), Some(origin));
            }
        }
        self.push("]", None);
    }

    /// Adds a line without an option.
    pub fn push(&mut self, line: &str, option: Option<&str>) {
        let origin = option.map(|option| Origin { option: option.to_owned(), right: None });
        self.line(line, origin.as_ref());
    }

    fn line(&mut self, line: &str, origin: Option<&Origin>) {
        self.starts.push((self.text.len(), origin.cloned()));
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// A key, quoted unless it is bare.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toolcell_policy::edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::rights;

    #[test]
    fn each_line_knows_the_option_that_it_comes_from() {
        let mut lines = SketchLines::default();
        lines.push("version = 1", None);
        lines.begin("a", "x/a.wasm", "../x/a.wasm");
        for (number, right) in
            ["GET https://a.example", "read /d x = d", "POST https://a.example", "GET https://a.example"]
                .into_iter()
                .enumerate()
        {
            lines.add(&rights::read(right).unwrap(), number, &format!("--allow '{right}'"));
        }
        lines.end("a");
        let text = "\
version = 1

[components.a]
source = \"../x/a.wasm\"

[components.a.filesystem]
\"/d x\" = { path = \"d\", access = \"read\" }

[components.a.network]
http = [
    \"GET https://a.example\",
    \"POST https://a.example\",
]
";
        assert_eq!(lines.text(), text);
        let at = |wanted: &str| text.find(wanted).unwrap();
        assert_eq!(lines.option_at(at("version")), None);
        assert_eq!(lines.option_at(at("../x")), Some("x/a.wasm"));
        assert_eq!(lines.right_at(at("../x")), None);
        assert_eq!(lines.right_at(at("\"POST")), Some(2));
        assert_eq!(lines.option_at(at("access")), Some("--allow 'read /d x = d'"));
    }
}
