//! Changes that make a grant narrower where it stands: its comments and its place remain.
use toml_edit::{Array, Item, Key, TableLike, Value};

use super::{ManifestEdit, close, closing_of, set, set_value, take_rule, text_of};

/// One grant of a component's or a tool's table, narrower or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// These rules take the place of one; none remove it. An empty key is a list in the table
    /// itself.
    Rules {
        /// The section, such as `network`.
        section: &'static str,
        /// The key of the list in it.
        key: &'static str,
        /// The rule, as it is written.
        old: String,
        /// The rules in its place.
        new: Vec<String>,
    },
    /// A name of a section goes: a variable, a mount. A tool's list of names loses it as well.
    Name {
        /// The section.
        section: &'static str,
        /// The name.
        name: String,
    },
    /// A mount can only be read. Its bounds for writing go.
    ReadOnly {
        /// Its path in the guest's tree.
        guest: String,
    },
    /// A mount holds only a folder of what it held.
    Folder {
        /// Its path in the guest's tree.
        guest: String,
        /// The path of the folder there.
        inner: String,
        /// The folder of the host.
        path: String,
    },
    /// A section goes.
    Section {
        /// The section.
        section: &'static str,
    },
}

impl ManifestEdit {
    /// Carries out a change in the component's table, or in one tool's. False if there is nothing
    /// to change.
    pub fn change(&mut self, component: &str, tool: Option<&str>, change: &Change) -> bool {
        let table = match tool {
            None => self.sections_mut(component),
            Some(tool) => self.tool_table(component, tool),
        };
        let Some(table) = table else { return false };
        let done = changed(table, change);
        // In a tool's table, an empty list or section is one that takes everything away.
        if tool.is_none() {
            tidy(table, change);
        }
        done
    }
}

/// Removes the list or the section that a change left empty.
fn tidy(table: &mut dyn TableLike, change: &Change) {
    let is_empty_list = |item: &Item| item.as_array().is_some_and(Array::is_empty);
    let section = match change {
        Change::Rules { section, key, .. } => {
            if let Some(lists) = table.get_mut(section).and_then(Item::as_table_like_mut)
                && lists.get(key).is_some_and(is_empty_list)
            {
                lists.remove(key);
            }
            section
        }
        Change::Name { section, .. } => section,
        Change::ReadOnly { .. } | Change::Folder { .. } | Change::Section { .. } => return,
    };
    let is_empty = |item: &Item| is_empty_list(item) || item.as_table_like().is_some_and(TableLike::is_empty);
    if table.get(section).is_some_and(is_empty) {
        table.remove(section);
    }
}

fn changed(table: &mut dyn TableLike, change: &Change) -> bool {
    match change {
        Change::Rules { section, key: "", old, new } => {
            table.get_mut(section).and_then(Item::as_array_mut).is_some_and(|rules| replaced(rules, old, new))
        }
        Change::Rules { section, key, old, new } => {
            let section = table.get_mut(section).and_then(Item::as_table_like_mut);
            let rules = section.and_then(|section| section.get_mut(key)?.as_array_mut());
            rules.is_some_and(|rules| replaced(rules, old, new))
        }
        Change::Name { section, name } => match table.get_mut(section) {
            Some(Item::Value(Value::Array(names))) => replaced(names, name, &[]),
            Some(section) => section.as_table_like_mut().is_some_and(|section| section.remove(name).is_some()),
            None => false,
        },
        Change::ReadOnly { guest } => mount_of(table, guest).is_some_and(read_only),
        Change::Folder { guest, inner, path } => {
            let Some(mount) = mount_of(table, guest).and_then(Item::as_table_like_mut) else { return false };
            set(mount, "path", path);
            let section = table.get_mut("filesystem").and_then(Item::as_table_like_mut);
            section.is_some_and(|section| renamed(section, guest, inner))
        }
        Change::Section { section } => table.remove(section).is_some(),
    }
}

fn mount_of<'t>(table: &'t mut dyn TableLike, guest: &str) -> Option<&'t mut Item> {
    table.get_mut("filesystem")?.as_table_like_mut()?.get_mut(guest)
}

fn read_only(mount: &mut Item) -> bool {
    let closing = closing_of(mount);
    let Some(table) = mount.as_table_like_mut() else { return false };
    for bound in ["quota", "files"] {
        table.remove(bound);
    }
    set(table, "access", "read");
    close(mount, closing);
    true
}

/// Gives a key of a table another name. Order and comments stay.
fn renamed(table: &mut dyn TableLike, old: &str, new: &str) -> bool {
    if table.contains_key(new) {
        return false;
    }
    let keys: Vec<Key> = table.iter().filter_map(|(key, _)| table.key(key).cloned()).collect();
    let mut found = false;
    for key in keys {
        let Some(item) = table.remove(key.get()) else { continue };
        let is_wanted = key.get() == old;
        found |= is_wanted;
        let name = if is_wanted { new } else { key.get() };
        table.insert(name, item);
        if let Some(mut placed) = table.key_mut(name) {
            *placed.leaf_decor_mut() = key.leaf_decor().clone();
            *placed.dotted_decor_mut() = key.dotted_decor().clone();
        }
    }
    found
}

/// Replaces a rule of a list. The first one takes its place, and the others follow it in the same
/// layout. False if the list does not have it.
fn replaced(rules: &mut Array, old: &str, new: &[String]) -> bool {
    let is_old = |rule: &Value| rule.as_str().is_some_and(|text| text.trim() == old);
    let Some(at) = rules.iter().position(is_old) else { return false };
    let Some(first) = new.first() else {
        take_rule(rules, at);
        return true;
    };
    let Some(there) = rules.get_mut(at) else { return false };
    let decor = there.decor().clone();
    set_value(there, first);
    let before = text_of(decor.prefix());
    let indent = before.rfind('\n').and_then(|from| before.get(from..)).unwrap_or(" ").to_owned();
    // Space before the bracket belongs behind the last rule.
    let is_last = at + 1 == rules.len();
    let suffix = text_of(decor.suffix());
    if is_last
        && new.len() > 1
        && let Some(there) = rules.get_mut(at)
    {
        there.decor_mut().set_suffix("");
    }
    for (number, text) in new.iter().enumerate().skip(1) {
        let mut value = Value::from(text.as_str());
        value.decor_mut().set_prefix(indent.clone());
        let ends = is_last && number + 1 == new.len();
        value.decor_mut().set_suffix(if ends { suffix.as_str() } else { "" });
        rules.insert_formatted(at + number, value);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(old: &str, new: &[&str]) -> Change {
        let new = new.iter().map(|text| (*text).to_owned()).collect();
        Change::Rules { section: "network", key: "http", old: old.to_owned(), new }
    }

    #[test]
    fn a_rule_is_replaced_where_it_stands() {
        let text = "[components.a.network] # all\nhttp = [\n    # the first\n    \"https://a.example\", # of Ann\n    \"https://b.example\",\n]\n";
        let mut edit = ManifestEdit::of(text).unwrap();
        assert!(edit.change(
            "a",
            None,
            &rules("https://a.example", &["GET https://a.example/x", "GET https://a.example/y"])
        ));
        let expected =
            text.replace("\"https://a.example\",", "\"GET https://a.example/x\",\n    \"GET https://a.example/y\",");
        assert_eq!(edit.text(), expected);
        assert!(edit.change("a", None, &rules("https://b.example", &[])));
        assert!(!edit.change("a", None, &rules("https://b.example", &[])));
        assert!(!edit.change("b", None, &rules("https://a.example", &[])));
    }

    #[test]
    fn rules_in_a_line_stay_in_it() {
        let mut edit = ManifestEdit::of(
            "[components.a]\nnetwork = { http = [ \"https://a.example\" ] }\ncalls = [\"a_*\", \"b\"]\n",
        )
        .unwrap();
        assert!(edit.change(
            "a",
            None,
            &rules("https://a.example", &["GET https://a.example/x", "GET https://a.example/y"])
        ));
        let calls = Change::Rules {
            section: "calls",
            key: "",
            old: "a_*".to_owned(),
            new: vec!["a_1".to_owned(), "a_2".to_owned()],
        };
        assert!(edit.change("a", None, &calls));
        assert_eq!(
            edit.text(),
            "[components.a]\nnetwork = { http = [ \"GET https://a.example/x\", \"GET https://a.example/y\" ] }\ncalls = [\"a_1\", \"a_2\", \"b\"]\n"
        );
    }

    #[test]
    fn a_mount_becomes_narrower_and_keeps_its_comments() {
        let text = "[components.a.filesystem]\n# first\n\"/x\" = { path = \"x\" }\n# data\n\"/data\" = { path = \"d\", access = \"write\", quota = \"1MiB\" } # of Ann\n\"/y\" = { path = \"y\" }\n[components.a.tools.t]\nfilesystem = { \"/data\" = { access = \"write\" } }\nenv = [\"A\", \"B\"]\n";
        let mut edit = ManifestEdit::of(text).unwrap();
        let read = Change::ReadOnly { guest: "/data".to_owned() };
        assert!(edit.change("a", None, &read) && edit.change("a", Some("t"), &read));
        let folder =
            Change::Folder { guest: "/data".to_owned(), inner: "/data/in".to_owned(), path: "d/in".to_owned() };
        assert!(edit.change("a", None, &folder));
        assert!(edit.change("a", Some("t"), &Change::Name { section: "env", name: "A".to_owned() }));
        let expected = text
            .replace("access = \"write\", quota = \"1MiB\"", "access = \"read\"")
            .replace("{ access = \"write\" }", "{ access = \"read\" }")
            .replace("\"/data\" = { path = \"d\"", "\"/data/in\" = { path = \"d/in\"")
            .replace("[\"A\", \"B\"]", "[\"B\"]");
        assert_eq!(edit.text(), expected);
        assert!(edit.change("a", None, &Change::Name { section: "filesystem", name: "/x".to_owned() }));
        assert!(edit.change("a", None, &Change::Section { section: "filesystem" }));
        assert!(!edit.change("a", None, &Change::Section { section: "filesystem" }));
    }
}
