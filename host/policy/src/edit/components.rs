//! Whole components in a manifest: added, removed, renamed.
use toml_edit::{DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use super::{ManifestEdit, placed, set_value, text_of};
use crate::metadata::Suggestion;
use crate::rights;

/// Keys of an entry, and of one of its tools, that become metadata.
const METADATA: [&str; 3] = ["limits", "load", "tools"];
const METADATA_OF_LOAD: [&str; 2] = ["compile_time", "compile_memory"];
const METADATA_OF_TOOL: [&str; 7] =
    ["title", "description", "read_only", "destructive", "idempotent", "open_world", "limits"];

/// A component's entry outside a manifest.
#[derive(Clone, Debug, Default)]
pub struct ComponentEntry {
    table: Table,
}

impl ComponentEntry {
    /// An entry that serves this file and grants nothing.
    #[must_use]
    pub fn new(source: &str) -> Self {
        let mut entry = Self { table: Table::new() };
        entry.set("source", source.into());
        entry
    }

    /// Sets a key.
    pub fn set(&mut self, key: &str, value: Value) {
        match self.table.get_mut(key) {
            Some(old) => *old = Item::Value(value),
            None => drop(self.table.insert(key, Item::Value(value))),
        }
    }

    /// The text of a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key).and_then(Item::as_str)
    }

    /// Sets the key of a suggestion to its value, creating missing tables.
    pub fn suggest(&mut self, suggestion: &Suggestion) {
        let path = suggestion.path();
        let Some((key, tables)) = path.split_last() else { return };
        let mut table: &mut dyn TableLike = &mut self.table;
        for (depth, name) in tables.iter().enumerate() {
            let mut new = Table::new();
            // A table of tables has no header of its own.
            new.set_implicit(depth == 0 && tables.len() > 1);
            let Some(inner) = table.entry(name).or_insert(Item::Table(new)).as_table_like_mut() else { return };
            table = inner;
        }
        table.insert(key, Item::Value(suggestion.value()));
    }

    /// Its titles, descriptions, hints and limits as the text of metadata. It is unchecked: see
    /// [`Metadata::parse`](crate::Metadata::parse).
    #[must_use]
    pub fn metadata(&self) -> String {
        let mut table = self.table.clone();
        table.retain(|key, _| METADATA.contains(&key));
        if let Some(load) = table.get_mut("load").and_then(Item::as_table_like_mut) {
            retain(load, &METADATA_OF_LOAD);
        }
        let tools = table.get_mut("tools").and_then(Item::as_table_like_mut);
        for (_, tool) in tools.into_iter().flat_map(TableLike::iter_mut) {
            tool.as_table_like_mut().into_iter().for_each(|tool| retain(tool, &METADATA_OF_TOOL));
        }
        Self { table }.tables()
    }

    /// The entry as a text of its own.
    pub(crate) fn tables(&self) -> String {
        let mut document = DocumentMut::new();
        for (key, item) in &self.table {
            document.insert(key, placed(item));
        }
        document.to_string().trim_start().to_owned()
    }

    /// Removes every grant, of the component and of its tools, and returns the sections that had
    /// one. Scratch space stays: it belongs to the call alone.
    pub fn take_grants(&mut self) -> Vec<&'static str> {
        let mut sections: Vec<&'static str> = rights::places().map(|place| place.section).collect();
        sections.dedup();
        let mut taken = Vec::new();
        for &section in &sections {
            let Some(mut item) = self.table.remove(section) else { continue };
            let mut is_taken = true;
            if section == "filesystem"
                && let Some(mounts) = item.as_table_like_mut()
            {
                let all: Vec<String> = mounts.iter().map(|(guest, _)| guest.to_owned()).collect();
                for guest in &all {
                    let kept = mounts
                        .get(guest)
                        .and_then(Item::as_table_like)
                        .is_some_and(|mount| mount.contains_key("scratch"));
                    if !kept {
                        mounts.remove(guest);
                    }
                }
                is_taken = mounts.len() < all.len();
                if !mounts.is_empty() {
                    item.as_inline_table_mut().into_iter().for_each(InlineTable::fmt);
                    self.table.insert(section, item);
                }
            }
            if is_taken {
                taken.push(section);
            }
        }
        let tools = self.table.get_mut("tools").and_then(Item::as_table_like_mut);
        for (_, tool) in tools.into_iter().flat_map(TableLike::iter_mut) {
            let Some(tool) = tool.as_table_like_mut() else { continue };
            // A table of variables is a program's templates, and grants nothing.
            let is_templates = tool.get("env").is_some_and(Item::is_table_like);
            for section in sections.iter().filter(|section| **section != "env" || !is_templates) {
                tool.remove(section);
            }
        }
        taken
    }
}

impl ManifestEdit {
    /// A component's entry in the manifest.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<ComponentEntry> {
        match self.components_item()?.get(name)? {
            Item::Table(table) => Some(ComponentEntry { table: table.clone() }),
            Item::Value(Value::InlineTable(table)) => Some(ComponentEntry { table: table.clone().into_table() }),
            _ => None,
        }
    }

    /// Adds a component behind the others.
    ///
    /// # Errors
    /// The name is taken, or the manifest has no place for it: one sentence.
    pub fn insert_component(&mut self, name: &str, entry: &ComponentEntry) -> Result<(), String> {
        let root = self.document.as_table_mut();
        if !root.contains_key("components") {
            let mut components = Table::new();
            components.set_implicit(true);
            root.insert("components", Item::Table(components));
        }
        let components = root.get_mut("components").and_then(Item::as_table_like_mut);
        let components = components.ok_or("components is not a table")?;
        if components.contains_key(name) {
            return Err(format!("component {name:?} exists already"));
        }
        components.insert(name, placed(&Item::Table(entry.table.clone())));
        Ok(())
    }

    /// Removes a component with all its sections, and its patterns in rules for callers. Returns
    /// those patterns; `None` if there is no such component. Comments that an empty line separates
    /// from the component stay.
    pub fn remove_component(&mut self, name: &str) -> Option<Vec<String>> {
        let removed = self.document.get_mut("components")?.as_table_like_mut()?.remove(name)?;
        let mut headers = Vec::new();
        collect_headers(&removed, &mut headers);
        headers.sort_by_key(|(position, _)| *position);
        let (first, above) = headers.into_iter().next().unwrap_or_default();
        // The last part of the comments above belongs to the component.
        if let Some(end) = above.trim_end().rfind("\n\n") {
            let kept = above.get(..=end).unwrap_or_default().to_owned();
            self.keep_comments(first, &kept);
        }
        Some(self.patterns(|pattern| names_component(pattern, name).then_some(None)))
    }

    /// Renames a component, also in rules for callers, and returns those rules' patterns; `None` if
    /// there is no such component.
    pub fn rename_component(&mut self, old: &str, new: &str) -> Option<Vec<String>> {
        let components = self.document.get_mut("components")?;
        match components {
            Item::Table(table) if table.contains_key(old) => rename_in_table(table, old, new),
            Item::Value(Value::InlineTable(table)) if table.contains_key(old) => rename_in_line(table, old, new),
            _ => return None,
        }
        Some(self.patterns(|pattern| {
            let rest = names_component(pattern, old).then(|| pattern.get(old.len()..)).flatten()?;
            Some(Some(format!("{new}{rest}")))
        }))
    }

    /// Changes the patterns of rules for callers: `Some(None)` removes one. Returns the changed
    /// ones as they were. A list that becomes empty stays, since a rule needs one.
    fn patterns(&mut self, change: impl Fn(&str) -> Option<Option<String>>) -> Vec<String> {
        let mut changed = Vec::new();
        let callers = self.document.get_mut("callers").and_then(Item::as_table_like_mut);
        for (_, rule) in callers.into_iter().flat_map(TableLike::iter_mut) {
            let tools = rule.as_table_like_mut().and_then(|rule| rule.get_mut("tools")?.as_array_mut());
            let Some(tools) = tools else { continue };
            let mut at = 0;
            while let Some(pattern) = tools.get(at).map(|value| value.as_str().unwrap_or_default().to_owned()) {
                match change(&pattern) {
                    Some(None) => super::take_rule(tools, at),
                    Some(Some(new)) => {
                        tools.get_mut(at).into_iter().for_each(|old| set_value(old, &new));
                        at += 1;
                    }
                    None => {
                        at += 1;
                        continue;
                    }
                }
                changed.push(pattern);
            }
        }
        changed
    }

    /// Puts comments above the header after this position, or at the end.
    fn keep_comments(&mut self, position: isize, comments: &str) {
        let next = next_header(self.document.as_table_mut(), position);
        match next {
            Some(table) => {
                let own = text_of(table.decor().prefix());
                table.decor_mut().set_prefix(format!("{comments}{own}"));
            }
            None => {
                let own = self.document.trailing().as_str().unwrap_or_default().to_owned();
                self.document.set_trailing(format!("{comments}{own}"));
            }
        }
    }
}

fn retain(table: &mut dyn TableLike, keys: &[&str]) {
    let others: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for other in others.iter().filter(|other| !keys.contains(&other.as_str())) {
        table.remove(other);
    }
}

/// True for `weather/*` and `weather/forecast` of `weather`.
fn names_component(pattern: &str, component: &str) -> bool {
    pattern.strip_prefix(component).is_some_and(|rest| rest.starts_with('/'))
}

/// Positions of all headers, and the comments above each.
fn collect_headers(item: &Item, found: &mut Vec<(isize, String)>) {
    let Some(table) = item.as_table() else { return };
    if let Some(position) = table.position().filter(|_| !table.is_implicit() && !table.is_dotted()) {
        found.push((position, text_of(table.decor().prefix())));
    }
    table.iter().for_each(|(_, item)| collect_headers(item, found));
}

/// The first table with a header after this position.
fn next_header(root: &mut Table, position: isize) -> Option<&mut Table> {
    let mut headers = Vec::new();
    collect_headers(&Item::Table(root.clone()), &mut headers);
    let wanted = headers.into_iter().map(|(at, _)| at).filter(|at| *at > position).min()?;
    table_at(root, wanted)
}

fn table_at(table: &mut Table, position: isize) -> Option<&mut Table> {
    if table.position() == Some(position) && !table.is_implicit() && !table.is_dotted() {
        return Some(table);
    }
    table.iter_mut().filter_map(|(_, item)| item.as_table_mut()).find_map(|inner| table_at(inner, position))
}

fn renamed(key: &Key, old: &str, new: &str) -> Key {
    if key.get() != old {
        return key.clone();
    }
    Key::new(new).with_leaf_decor(key.leaf_decor().clone()).with_dotted_decor(key.dotted_decor().clone())
}

/// Reinserts every entry, so that the order stays.
fn rename_in_table(table: &mut Table, old: &str, new: &str) {
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for (key, item) in keys.iter().filter_map(|key| table.remove_entry(key)).collect::<Vec<_>>() {
        table.insert_formatted(&renamed(&key, old, new), item);
    }
}

fn rename_in_line(table: &mut InlineTable, old: &str, new: &str) {
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for (key, value) in keys.iter().filter_map(|key| table.remove_entry(key)).collect::<Vec<_>>() {
        table.insert_formatted(&renamed(&key, old, new), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
# The tools of the team.
version = 1

# Everything of the weather.

# Forecasts, by Ann.
[components.weather] # public
source = \"components/weather.wasm\"

[components.weather.network]
http = [\"GET https://api.example.com/v1/*\"] # v1 only

# Notes.
[components.notes]
source = \"notes.wasm\"

[callers.ci]
tools = [
    \"weather/*\", # all of it
    \"notes/find\",
    \"weather_find\",
]

[callers.default]
tools = [\"weather/find\"]
";

    #[test]
    fn a_component_is_added_behind_the_others_and_taken_out_again() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        let mut entry = ComponentEntry::new("components/units.wasm");
        entry.set("prefix", "u_".into());
        edit.insert_component("units", &entry).unwrap();
        let added = "\n[components.units]\nsource = \"components/units.wasm\"\nprefix = \"u_\"\n";
        let expected = MANIFEST.replace("\n[callers.ci]", &format!("{added}\n[callers.ci]"));
        assert_eq!(edit.text(), expected);
        assert!(edit.insert_component("units", &entry).is_err());
        assert_eq!(edit.remove_component("units"), Some(Vec::new()));
        assert_eq!(edit.text(), MANIFEST);
        let mut empty = ManifestEdit::of("version = 1\n").unwrap();
        empty.insert_component("units", &ComponentEntry::new("u.wasm")).unwrap();
        assert_eq!(empty.text(), "version = 1\n\n[components.units]\nsource = \"u.wasm\"\n");
    }

    #[test]
    fn a_component_goes_with_its_sections_its_comment_and_what_callers_may_of_it() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        assert_eq!(edit.remove_component("weather").unwrap(), ["weather/*", "weather/find"]);
        let expected = "\
# The tools of the team.
version = 1

# Everything of the weather.

# Notes.
[components.notes]
source = \"notes.wasm\"

[callers.ci]
tools = [
    \"notes/find\",
    \"weather_find\",
]

[callers.default]
tools = []
";
        assert_eq!(edit.text(), expected);
        assert_eq!(edit.remove_component("weather"), None);
        let line = "version = 1\ncomponents = { a = { source = \"a\" }, b = { source = \"b\" } }\n";
        let mut edit = ManifestEdit::of(line).unwrap();
        edit.remove_component("a").unwrap();
        assert_eq!(edit.text(), "version = 1\ncomponents = { b = { source = \"b\" } }\n");
    }

    #[test]
    fn a_component_is_renamed_wherever_the_manifest_names_it() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        assert_eq!(edit.rename_component("weather", "wx").unwrap(), ["weather/*", "weather/find"]);
        let expected = MANIFEST.replace("[components.weather", "[components.wx").replace("\"weather/", "\"wx/");
        assert_eq!(edit.text(), expected);
        assert_eq!(edit.rename_component("weather", "wx"), None);
        let line = "version = 1\ncomponents = { a = { source = \"a\" }, b = { source = \"b\" } } # two\n";
        let mut edit = ManifestEdit::of(line).unwrap();
        edit.rename_component("a", "c").unwrap();
        assert_eq!(edit.text(), line.replace("a = {", "c = {"));
    }

    #[test]
    fn an_entry_is_taken_over_without_its_grants() {
        let text = "\
version = 1
[components.counts]
source = \"counts.wasm\"
stdin = \"x\"
env = { A = \"1\" }
filesystem = { \"/tmp\" = { scratch = \"1MiB\" }, \"/home\" = { path = \"/home\" } }
[components.counts.tools.count]
description = \"d\"
env = { B = \"{b}\" }
keyvalue = false
";
        let edit = ManifestEdit::of(text).unwrap();
        let mut entry = edit.component("counts").unwrap();
        assert_eq!(entry.take_grants(), ["filesystem", "env"]);
        assert_eq!(entry.text("source"), Some("counts.wasm"));
        let mut other = ManifestEdit::of("version = 1\n").unwrap();
        other.insert_component("counts", &entry).unwrap();
        let expected = "\
version = 1

[components.counts]
source = \"counts.wasm\"
stdin = \"x\"
filesystem = { \"/tmp\" = { scratch = \"1MiB\" } }

[components.counts.tools.count]
description = \"d\"
env = { B = \"{b}\" }
";
        assert_eq!(other.text(), expected);
    }
}
