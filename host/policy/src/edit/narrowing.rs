//! Rights of single tools: a tool's table can narrow its component's rights, and widen them back.
use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value};

use super::{ManifestEdit, ManifestEntry, extend, placed, take_all};
use crate::rights::{ALL, Narrowing, narrowing_of};

impl ManifestEdit {
    /// Removes a right of the component from one tool. If the tool has no table, it gets one with
    /// all other rights. False if the tool lacks the right.
    ///
    /// # Errors
    /// The tool's table has no place for it: one sentence.
    pub fn narrow(&mut self, component: &str, tool: &str, entry: &ManifestEntry) -> Result<bool, String> {
        let Some(granted) = self.section_of(component, entry.section) else { return Ok(false) };
        if narrowing_of(entry.section, &entry.key) == Some(Narrowing::Flag) {
            let own = self.own_table(component, tool)?;
            let had = own.get(entry.section).and_then(Item::as_bool) != Some(false);
            own.insert(entry.section, toml_edit::value(false));
            return Ok(had);
        }
        self.inherit(component, tool, entry, &granted)?;
        let own = self.own_table(component, tool)?;
        let Some(section) = own.get_mut(entry.section) else { return Ok(false) };
        Ok(match section {
            Item::Value(Value::Array(names)) => take_all(names, &names_of(entry).into_iter().collect()),
            other => {
                let table = other.as_table_like_mut().ok_or_else(|| odd(entry))?;
                match entry.value.as_array() {
                    None => table.remove(&entry.key).is_some(),
                    Some(rules) => {
                        let list = table.get_mut(&entry.key).and_then(Item::as_array_mut);
                        list.is_some_and(|list| take_all(list, rules))
                    }
                }
            }
        })
    }

    /// Restores a right that the tool's table removed. False if the table removes no such right.
    ///
    /// # Errors
    /// The tool's table has no place for it: one sentence.
    pub fn widen(&mut self, component: &str, tool: &str, entry: &ManifestEntry) -> Result<bool, String> {
        let granted = self.section_of(component, entry.section);
        let own = self.tool_table(component, tool);
        let Some(section) = own.and_then(|own| own.get_mut(entry.section)) else { return Ok(false) };
        if narrowing_of(entry.section, &entry.key) == Some(Narrowing::Flag) {
            let own = self.own_table(component, tool)?;
            return Ok(own.remove(entry.section).is_some_and(|flag| flag.as_bool() == Some(false)));
        }
        match section {
            Item::Value(Value::Array(names)) => extend(names, &names_of(entry).into_iter().collect()),
            other => {
                let table = other.as_table_like_mut().ok_or_else(|| odd(entry))?;
                match entry.value.as_array() {
                    None => drop(table.insert(&entry.key, Item::Value(kept_mount(granted.as_ref(), entry)))),
                    Some(rules) => match table.get_mut(&entry.key).and_then(Item::as_array_mut) {
                        Some(list) => extend(list, rules),
                        None if is_kept(entry) => return Ok(false),
                        None => drop(table.insert(&entry.key, Item::Value(entry.value.clone()))),
                    },
                }
            }
        }
        Ok(true)
    }

    /// A copy of a component's section.
    fn section_of(&self, component: &str, section: &str) -> Option<Item> {
        self.components_item()?.get(component)?.as_table_like()?.get(section).cloned()
    }

    pub(super) fn tool_table(&mut self, component: &str, tool: &str) -> Option<&mut dyn TableLike> {
        let tools = self.sections_mut(component)?.get_mut("tools")?.as_table_like_mut()?;
        tools.get_mut(tool)?.as_table_like_mut()
    }

    /// The tool's table, created if missing.
    fn own_table(&mut self, component: &str, tool: &str) -> Result<&mut dyn TableLike, String> {
        let missing = || format!("components.{component}.tools.{tool} is not a table");
        let components = self.document.get_mut("components").and_then(Item::as_table_like_mut);
        let component_table =
            components.and_then(|all| all.get_mut(component)?.as_table_like_mut()).ok_or_else(missing)?;
        if !component_table.contains_key("tools") {
            let mut tools = Table::new();
            tools.set_implicit(true);
            component_table.insert("tools", Item::Table(tools));
        }
        let tools = component_table.get_mut("tools").and_then(Item::as_table_like_mut).ok_or_else(missing)?;
        if !tools.contains_key(tool) {
            tools.insert(tool, placed(&Item::Table(Table::new())));
        }
        tools.get_mut(tool).and_then(Item::as_table_like_mut).ok_or_else(missing)
    }

    /// Writes into the tool's table what it inherits of a section, if it does not mention it.
    fn inherit(&mut self, component: &str, tool: &str, entry: &ManifestEntry, granted: &Item) -> Result<(), String> {
        let own = self.own_table(component, tool)?;
        if narrowing_of(entry.section, &entry.key) == Some(Narrowing::List) {
            let rules = granted.as_array().ok_or_else(|| odd(entry))?;
            if !own.contains_key(entry.section) {
                own.insert(entry.section, Item::Value(Value::Array(plain(rules))));
            }
            return Ok(());
        }
        let all = granted.as_table_like().ok_or_else(|| odd(entry))?;
        match narrowing_of(entry.section, &entry.key) {
            Some(Narrowing::Rules(_) | Narrowing::RulesKept(_)) => {
                if !own.contains_key(entry.section) {
                    let mut table = InlineTable::new();
                    for right in ALL.iter().filter(|right| right.section == entry.section) {
                        if let Some(Narrowing::Rules(key)) = right.narrowing
                            && let Some(rules) = all.get(key).and_then(Item::as_array)
                        {
                            table.insert(key, Value::Array(plain(rules)));
                        }
                    }
                    own.insert(entry.section, Item::Value(Value::InlineTable(table)));
                }
                let section = own.get_mut(entry.section).and_then(Item::as_table_like_mut).ok_or_else(|| odd(entry))?;
                if is_kept(entry)
                    && !section.contains_key(&entry.key)
                    && let Some(rules) = all.get(&entry.key).and_then(Item::as_array)
                {
                    section.insert(&entry.key, Item::Value(Value::Array(plain(rules))));
                }
            }
            Some(Narrowing::Mounts) if !own.contains_key(entry.section) => {
                let mut table = InlineTable::new();
                for (guest, _) in all.iter() {
                    table.insert(guest, Value::InlineTable(InlineTable::new()));
                }
                own.insert(entry.section, Item::Value(Value::InlineTable(table)));
            }
            _ if entry.section == "env" && own.get("env").is_some_and(Item::is_table_like) => {
                return Err("its table `env` sets a program's variables, and cannot remove any".to_owned());
            }
            Some(Narrowing::Names) if !own.contains_key(entry.section) => {
                let names: Array = all.iter().map(|(name, _)| name).collect();
                own.insert(entry.section, Item::Value(Value::Array(names)));
            }
            _ => {}
        }
        Ok(())
    }
}

fn odd(entry: &ManifestEntry) -> String {
    format!("{} is not written as it should be; `toolcell check` shows how", entry.section)
}

/// True for a rule of a list that a tool inherits if its table does not mention the list.
fn is_kept(entry: &ManifestEntry) -> bool {
    matches!(narrowing_of(entry.section, &entry.key), Some(Narrowing::RulesKept(_)))
}

/// The names that an entry takes out of a list, or adds to it.
fn names_of(entry: &ManifestEntry) -> Vec<&str> {
    match entry.value.as_array().filter(|_| entry.key.is_empty()) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => vec![&entry.key],
    }
}

/// A list on one line, without comments.
fn plain(rules: &Array) -> Array {
    rules.iter().filter_map(Value::as_str).collect()
}

/// A tool's mount: the component's, or a read-only one if requested.
fn kept_mount(granted: Option<&Item>, entry: &ManifestEntry) -> Value {
    let access = |item: &dyn TableLike| item.get("access").and_then(Item::as_str).map(str::to_owned);
    let wanted = entry.value.as_inline_table().and_then(|table| access(table));
    let component = granted.and_then(|all| access(all.as_table_like()?.get(&entry.key)?.as_table_like()?));
    let mut mount = InlineTable::new();
    if wanted.as_deref() == Some("read") && component.as_deref() == Some("write") {
        mount.insert("access", "read".into());
    }
    Value::InlineTable(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
version = 1

[components.weather]
source = \"weather.wasm\"
keyvalue = {}

[components.weather.network]
http = [
    \"GET https://a.example/*\", # all
    \"GET https://b.example/*\",
]
tcp = [\"a.example:1\"]

[components.weather.env]
UNITS = \"metric\"
CITY = \"Oslo\"

[components.notes]
source = \"notes.wasm\"
";

    fn entry(section: &'static str, key: &str, value: Value) -> ManifestEntry {
        ManifestEntry { section, key: key.to_owned(), value }
    }

    fn http(rule: &str) -> ManifestEntry {
        entry("network", "http", Value::Array(Array::from_iter([rule])))
    }

    #[test]
    fn a_tool_loses_a_right_and_keeps_the_others_until_it_is_given_back() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        assert!(edit.narrow("weather", "find", &http("GET https://a.example/*")).unwrap());
        assert!(!edit.narrow("weather", "find", &http("GET https://a.example/*")).unwrap());
        assert!(edit.narrow("weather", "find", &entry("env", "CITY", "".into())).unwrap());
        assert!(edit.narrow("weather", "find", &entry("keyvalue", "quota", "1MiB".into())).unwrap());
        let table = "
[components.weather.tools.find]
network = { http = [\"GET https://b.example/*\"], tcp = [\"a.example:1\"] }
env = [\"UNITS\"]
keyvalue = false
";
        let expected = MANIFEST.replace("\n[components.notes]", &format!("{table}\n[components.notes]"));
        assert_eq!(edit.text(), expected);
        assert!(edit.widen("weather", "find", &http("GET https://a.example/x")).unwrap());
        assert!(edit.widen("weather", "find", &entry("env", "CITY", "".into())).unwrap());
        assert!(edit.widen("weather", "find", &entry("keyvalue", "quota", "1MiB".into())).unwrap());
        assert!(!edit.widen("weather", "find", &entry("secrets", "KEY", "".into())).unwrap());
        let table = "
[components.weather.tools.find]
network = { http = [\"GET https://b.example/*\", \"GET https://a.example/x\"], tcp = [\"a.example:1\"] }
env = [\"UNITS\", \"CITY\"]
";
        assert_eq!(edit.text(), MANIFEST.replace("\n[components.notes]", &format!("{table}\n[components.notes]")));
    }

    #[test]
    fn the_last_right_of_a_tool_leaves_an_empty_list_which_is_none() {
        let mut edit = ManifestEdit::of("[components.a.filesystem]\n\"/x\" = { path = \"x\" }\n").unwrap();
        let mount = entry("filesystem", "/x", Value::InlineTable(InlineTable::new()));
        assert!(edit.narrow("a", "t", &mount).unwrap());
        assert!(edit.text().contains("[components.a.tools.t]\nfilesystem = {}\n"), "{}", edit.text());
        assert!(edit.widen("a", "t", &mount).unwrap());
        assert!(edit.text().contains("filesystem = { \"/x\" = {} }"), "{}", edit.text());
        assert!(!edit.narrow("a", "t", &http("GET https://a.example")).unwrap());
        let template = "[components.a.env]\nA = \"1\"\n[components.a.tools.t]\nenv = { B = \"{b}\" }\n";
        let mut edit = ManifestEdit::of(template).unwrap();
        assert!(edit.narrow("a", "t", &entry("env", "A", "".into())).is_err());
        assert_eq!(edit.text(), template);
    }
}
