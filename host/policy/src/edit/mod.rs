//! Edits of a manifest in place: comments, order and layout stay as they are. Must not hold: what
//! is edited, or why.
mod changes;
mod components;
mod narrowing;

pub use changes::Change;
pub use components::ComponentEntry;
pub use toml_edit::{Array, InlineTable, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::manifest::CODE;
use crate::rights::{self, ALL, Narrowing};

/// A manifest's text while it is edited.
pub struct ManifestEdit {
    document: DocumentMut,
}

/// One item to add to a component's section, or to remove from it.
#[derive(Clone, Debug)]
pub struct ManifestEntry {
    /// The section below `[components.NAME]`, such as `network`.
    pub section: &'static str,
    /// The key in it; empty where the section itself is a list, such as `calls`.
    pub key: String,
    /// The value.
    pub value: Value,
}

impl ManifestEntry {
    /// The entry for a line of this section, such as `"/data" = { path = "data" }`. `None` if the
    /// text is not one line of a table.
    #[must_use]
    pub fn of_line(section: &'static str, line: &str) -> Option<Self> {
        let document: DocumentMut = line.parse().ok()?;
        let mut entries = document.iter();
        let (key, item) = entries.next().filter(|_| !line.contains('\n'))?;
        Some(Self { section, key: key.to_owned(), value: item.as_value()?.clone() })
    }

    /// The entry for a right on the command line. A right of one tool, or one to revoke, has no
    /// value.
    #[must_use]
    pub fn of_right(right: &str) -> Option<Self> {
        let right = right.trim();
        let (verb, rest) = right.split_once(' ').map_or((right, ""), |(verb, rest)| (verb, rest.trim()));
        ALL.iter().find_map(|each| (each.entry)(each, verb, rest)).or_else(|| rights::http_entry(right))
    }

    /// The entries for private addresses that a right on the command line implies: without them the
    /// right would allow nothing.
    #[must_use]
    pub fn private_of_right(right: &str) -> Vec<Self> {
        // Unlike a request's path, the path of a right may be a pattern. Only the host matters, and
        // a rule without a method allows each.
        let right = right.trim();
        let has_method = right.split_once("://").is_none_or(|(before, _)| before.contains(' '));
        let asked = if has_method { right.replace('*', "") } else { format!("GET {}", right.replace('*', "")) };
        let addresses = crate::suggest::private_addresses(&asked);
        addresses.iter().filter_map(|address| Self::of_right(&format!("private {address}"))).collect()
    }

    /// A secret: the place of its value, and the way it is used.
    #[must_use]
    pub fn secret(name: &str, from: &str, delivery: Vec<(&'static str, Value)>) -> Self {
        let value = table(std::iter::once(("from", from.into())).chain(delivery));
        Self { section: "secrets", key: name.to_owned(), value }
    }

    /// A folder or a file, at this path of the guest.
    #[must_use]
    pub fn mount(guest: &str, path: &str, access: &str) -> Self {
        let value = table([("path", path.into()), ("access", access.into())]);
        Self { section: "filesystem", key: guest.to_owned(), value }
    }

    /// A text of its value, which is a table in one line.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value.as_inline_table()?.get(key)?.as_str()
    }
}

impl ManifestEdit {
    /// A manifest's text.
    ///
    /// # Errors
    ///
    /// It is not TOML: one sentence.
    pub fn of(text: &str) -> Result<Self, String> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        Ok(Self { document })
    }

    /// The current text.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Names of the manifest's components.
    pub fn components(&self) -> Vec<String> {
        let components = self.components_item();
        components.map(|table| table.iter().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default()
    }

    /// True if the manifest has scripts: rights of [`CODE`] are in its section.
    pub fn has_scripts(&self) -> bool {
        self.document.contains_key(CODE)
    }

    /// The source of a component, as the manifest writes it.
    pub fn source(&self, component: &str) -> Option<&str> {
        self.components_item()?.get(component)?.as_table_like()?.get("source")?.as_str()
    }

    /// Sets another source for an existing component. False if it has none.
    pub fn set_source(&mut self, component: &str, source: &str) -> bool {
        let sections = self.sections_mut(component);
        let Some(old) = sections.and_then(|sections| sections.get_mut("source")?.as_value_mut()) else { return false };
        set_value(old, source);
        true
    }

    /// The place of a secret's value, as the manifest writes it; an empty text if it has none.
    /// `None` if the component has no such secret.
    pub fn secret_source(&self, component: &str, secret: &str) -> Option<&str> {
        let secrets = self.components_item()?.get(component)?.as_table_like()?.get("secrets")?.as_table_like()?;
        let from = secrets.get(secret)?.as_table_like().and_then(|secret| secret.get("from")?.as_str());
        Some(from.unwrap_or_default())
    }

    /// Changes the source of an existing secret's value. False if there is no such secret.
    pub fn set_secret_source(&mut self, component: &str, secret: &str, from: &str) -> bool {
        let secrets =
            self.sections_mut(component).and_then(|sections| sections.get_mut("secrets")?.as_table_like_mut());
        let secret = secrets.and_then(|secrets| secrets.get_mut(secret)?.as_table_like_mut());
        let Some(secret) = secret else { return false };
        set(secret, "from", from);
        true
    }

    fn components_item(&self) -> Option<&dyn TableLike> {
        self.document.get("components")?.as_table_like()
    }

    /// The sections of a component, or those of scripts.
    fn sections_mut(&mut self, component: &str) -> Option<&mut dyn TableLike> {
        let sections = match component {
            CODE => self.document.get_mut(CODE),
            _ => self.document.get_mut("components").and_then(|item| item.as_table_like_mut()?.get_mut(component)),
        };
        sections?.as_table_like_mut()
    }

    /// Adds everything in these tables: rules to lists of rules, keys to sections, sections to
    /// components.
    ///
    /// # Errors
    /// A key already has another value, or the tables are not TOML: one sentence.
    pub fn merge(&mut self, tables: &str) -> Result<(), String> {
        let added: DocumentMut = tables.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        merge(self.document.as_table_mut(), added.as_table(), "")
    }

    /// Adds one entry to a component.
    ///
    /// # Errors
    /// The key has another value: one sentence.
    pub fn add(&mut self, component: &str, entry: &ManifestEntry) -> Result<(), String> {
        let mut sections = Table::new();
        sections.set_implicit(true);
        if entry.key.is_empty() {
            sections.insert(entry.section, Item::Value(entry.value.clone()));
        } else {
            let mut section = Table::new();
            section.insert(&entry.key, Item::Value(entry.value.clone()));
            sections.insert(entry.section, Item::Table(section));
        }
        let mut root = Table::new();
        if component == CODE {
            root.insert(CODE, Item::Table(sections));
        } else {
            let mut components = Table::new();
            components.set_implicit(true);
            components.insert(component, Item::Table(sections));
            root.insert("components", Item::Table(components));
        }
        merge(self.document.as_table_mut(), &root, "")
    }

    /// Removes one entry from a component: a rule from its list, or else the whole key. A list or
    /// section that becomes empty is removed as well. `keyvalue` is removed as a whole, since the
    /// section is the right. False if there is no such entry.
    pub fn remove(&mut self, component: &str, entry: &ManifestEntry) -> bool {
        let Some(sections) = self.sections_mut(component) else { return false };
        if rights::narrowing_of(entry.section, &entry.key) == Some(Narrowing::Flag) {
            return sections.remove(entry.section).is_some();
        }
        if entry.key.is_empty() {
            return take_rules_out(sections, entry.section, &entry.value);
        }
        let Some(section) = sections.get_mut(entry.section).and_then(Item::as_table_like_mut) else { return false };
        let found = take_out(section, entry);
        if found && section.is_empty() {
            sections.remove(entry.section);
        }
        found
    }
}

/// A table on one line.
pub(crate) fn table(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::InlineTable(entries.into_iter().collect())
}

/// A right's name and its value on the command line.
pub(crate) fn name_and_value(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name.trim(), Some(value.trim())))
}

/// A word and a name; the word alone where the name is empty.
pub(crate) fn right_text(word: &str, name: &str) -> String {
    if name.is_empty() { word.to_owned() } else { format!("{word} {name}") }
}

fn take_out(section: &mut dyn TableLike, entry: &ManifestEntry) -> bool {
    match entry.value.as_array() {
        Some(_) => take_rules_out(section, &entry.key, &entry.value),
        None => section.remove(&entry.key).is_some(),
    }
}

/// Takes rules out of a list, and the list where none is left. False if it had none of them.
fn take_rules_out(section: &mut dyn TableLike, key: &str, wanted: &Value) -> bool {
    let Some(wanted) = wanted.as_array() else { return false };
    let Some(rules) = section.get_mut(key).and_then(Item::as_array_mut) else { return false };
    let found = take_all(rules, wanted);
    if rules.is_empty() {
        section.remove(key);
    }
    found
}

/// Removes every rule that is among the wanted ones. False if there is none.
fn take_all(rules: &mut Array, wanted: &Array) -> bool {
    let is_wanted = |rule: &Value| wanted.iter().any(|wanted| wanted.as_str() == rule.as_str());
    let before = rules.len();
    while let Some(at) = { rules.iter().position(is_wanted) } {
        take_rule(rules, at);
    }
    rules.len() < before
}

/// Removes one rule, and the comment after it. Comments before it stay.
fn take_rule(rules: &mut Array, at: usize) {
    let removed = text_of(rules.remove(at).decor().prefix());
    let kept = removed.rfind('\n').and_then(|end| removed.get(..end)).unwrap_or_default();
    let behind = |text: &str| {
        let rest = text.find('\n').and_then(|end| text.get(end..)).unwrap_or(text);
        format!("{kept}{rest}")
    };
    match rules.get_mut(at) {
        Some(next) => {
            let text = text_of(next.decor().prefix());
            let in_line = at == 0 && !text.contains('\n');
            next.decor_mut().set_prefix(if in_line { removed.clone() } else { behind(&text) });
        }
        None => {
            let text = behind(&text_of(Some(rules.trailing())));
            rules.set_trailing(text);
        }
    }
}

/// Sets a text, with the layout of the one before.
fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => set_value(old, text),
        None => drop(table.insert(key, toml_edit::value(text))),
    }
}

fn set_value(old: &mut Value, text: &str) {
    let decor = old.decor().clone();
    *old = Value::from(text);
    *old.decor_mut() = decor;
}

fn text_of(raw: Option<&toml_edit::RawString>) -> String {
    raw.and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
}

fn merge(into: &mut dyn TableLike, added: &dyn TableLike, path: &str) -> Result<(), String> {
    for (key, item) in added.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let Some(old) = into.get_mut(key) else {
            into.insert(key, placed(item));
            continue;
        };
        if let (Some(rules), Some(more)) = (old.as_array_mut(), item.as_array()) {
            extend(rules, more);
        } else if path.split('.').nth(2) == Some("filesystem") && item.is_inline_table() {
            raise(old, item, &path)?;
        } else if let (true, Some(more)) = (old.is_table_like(), item.as_table_like()) {
            let closing = closing_of(old);
            if let Some(old) = old.as_table_like_mut() {
                merge(old, more, &path)?;
            }
            close(old, closing);
        } else if !same(old, item) {
            return Err(format!("{path} is {} already", old.to_string().trim()));
        }
    }
    Ok(())
}

/// Removes the space between the last value of an inline table and its brace.
fn closing_of(table: &mut Item) -> Option<String> {
    let (_, last) = table.as_inline_table_mut()?.iter_mut().last()?;
    let closing = text_of(last.decor().suffix());
    last.decor_mut().set_suffix("");
    Some(closing)
}

/// Puts it after the new last value.
fn close(table: &mut Item, closing: Option<String>) {
    if let (Some(table), Some(closing)) = (table.as_inline_table_mut(), closing)
        && let Some((_, last)) = table.iter_mut().last()
    {
        last.decor_mut().set_suffix(closing);
    }
}

/// An item as it is added: a table is placed next to its neighbours.
fn placed(item: &Item) -> Item {
    let mut item = item.clone();
    if let Some(table) = item.as_table_mut() {
        table.set_position(None);
        let inner: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
        for key in inner {
            let moved = table.get(&key).map(placed);
            moved.into_iter().for_each(|moved| drop(table.insert(&key, moved)));
        }
        if !table.is_implicit() {
            table.decor_mut().set_prefix("\n");
        }
    }
    item
}

/// Adds the missing rules, with the layout of the last one. A comment after the last one stays with
/// it.
fn extend(rules: &mut Array, more: &Array) {
    let missing: Vec<Value> =
        more.iter().filter(|rule| !rules.iter().any(|old| old.as_str() == rule.as_str())).cloned().collect();
    for mut rule in missing {
        let before = rules.iter().last().map(|last| text_of(last.decor().prefix())).unwrap_or_default();
        let own_line = before.rfind('\n').and_then(|at| before.get(at..));
        let indent = own_line.map_or_else(|| if rules.is_empty() { "" } else { " " }.to_owned(), str::to_owned);
        // The text between the last rule and the bracket belongs to that rule.
        let last = rules.len().checked_sub(1).and_then(|last| rules.get_mut(last));
        let suffix = last.map(|last| {
            let suffix = text_of(last.decor().suffix());
            last.decor_mut().set_suffix("");
            suffix
        });
        let behind = format!("{}{}", suffix.unwrap_or_default(), text_of(Some(rules.trailing())));
        let (comment, end) = behind.rfind('\n').map_or(("", behind.as_str()), |at| behind.split_at(at));
        rule.decor_mut().set_prefix(format!("{comment}{indent}"));
        rule.decor_mut().set_suffix("");
        let is_own_line = own_line.is_some();
        let end = end.to_owned();
        rules.push_formatted(rule);
        rules.set_trailing_comma(is_own_line);
        rules.set_trailing(end);
    }
}

/// Makes a read-only mount writable, and adds its bounds. Its folder stays.
fn raise(old: &mut Item, added: &Item, path: &str) -> Result<(), String> {
    let text =
        |item: &Item, key: &str| item.as_table_like().and_then(|table| table.get(key)?.as_str().map(str::to_owned));
    let folder = text(old, "path");
    if folder.is_none() || folder != text(added, "path") {
        return Err(format!("{path} is {} already", old.to_string().trim()));
    }
    let wants = added.as_table_like().into_iter().flat_map(TableLike::iter);
    let wants: Vec<(String, Item)> = wants.map(|(key, item)| (key.to_owned(), item.clone())).collect();
    let before = old.to_string();
    let closing = closing_of(old);
    let Some(table) = old.as_table_like_mut() else { return Ok(()) };
    for (key, item) in wants {
        match table.get(&key) {
            _ if key == "path" || (key == "access" && item.as_str() != Some("write")) => {}
            Some(there) if key != "access" && !same(there, &item) => {
                return Err(format!("{path} is {} already", before.trim()));
            }
            _ => drop(table.insert(&key, item)),
        }
    }
    close(old, closing);
    Ok(())
}

fn same(old: &Item, added: &Item) -> bool {
    let plain = |item: &Item| item.to_string().split_whitespace().collect::<String>();
    plain(old) == plain(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
# The tools of the team.
version = 1

[components.weather] # by Ann
source = \"weather.wasm\"

[components.weather.network]
# The public API.
http = [
    \"GET https://api.example.com/v1/*\", # forecasts
]

[components.notes]
source = \"notes.wasm\"
filesystem = { \"/notes\" = { path = \"notes\" } }
";

    fn http(rule: &str) -> ManifestEntry {
        ManifestEntry { section: "network", key: "http".to_owned(), value: Value::Array(Array::from_iter([rule])) }
    }

    #[test]
    fn each_right_is_an_entry_of_a_section() {
        for (right, expected) in [
            ("GET https://a.example/*", "network.http = [\"GET https://a.example/*\"]"),
            ("tcp a.example:1", "network.tcp = [\"a.example:1\"]"),
            ("read /data", "filesystem./data = { path = \"data\", access = \"read\" }"),
            ("write / = x", "filesystem./ = { path = \"x\", access = \"write\" }"),
            (
                "write /out = my notes create quota=10MiB files=100",
                "filesystem./out = { path = \"my notes\", access = \"write\", create = true, quota = \"10MiB\", files = 100 }",
            ),
            ("read /a b = create", "filesystem./a b = { path = \"create\", access = \"read\" }"),
            ("write /out create", "filesystem./out = { path = \"out\", access = \"write\", create = true }"),
            ("scratch /tmp", "filesystem./tmp = { scratch = \"8MiB\" }"),
            ("scratch /tmp = 1MiB", "filesystem./tmp = { scratch = \"1MiB\" }"),
            ("env A", "env.A = { from = \"env:A\" }"),
            ("env A = b = c", "env.A = \"b = c\""),
            ("env URL = https://a.example/", "env.URL = \"https://a.example/\""),
            ("config k = v", "config.k = \"v\""),
            ("keyvalue", "keyvalue.quota = \"1MiB\""),
            (
                "secret K = env:K as Authorization: Bearer {} for https://a.example",
                "secrets.K = { from = \"env:K\", header = \"Authorization\", value = \"Bearer {}\", for = \"https://a.example\" }",
            ),
            (
                "secret K = file:k as x-key for GET https://a.example/x",
                "secrets.K = { from = \"file:k\", header = \"x-key\", for = \"GET https://a.example/x\" }",
            ),
            (
                "secret K = keyring:s/a as ?key for https://a.example",
                "secrets.K = { from = \"keyring:s/a\", query = \"key\", for = \"https://a.example\" }",
            ),
            ("secret K = env:K exposed", "secrets.K = { from = \"env:K\", expose = true }"),
            ("secret K", "secrets.K = { from = \"env:K\" }"),
        ] {
            let entry = ManifestEntry::of_right(right).unwrap();
            assert_eq!(format!("{}.{} = {}", entry.section, entry.key, entry.value), expected, "{right}");
        }
        for right in ["", "launch rockets", "read data", "tcp", "secret K = env:K", "secret"] {
            assert!(ManifestEntry::of_right(right).is_none(), "{right}");
        }
        assert_eq!(ManifestEntry::private_of_right("GET http://127.0.0.1:80/x").len(), 1);
        assert_eq!(ManifestEntry::private_of_right("http://127.0.0.1:80/*").len(), 1);
        assert_eq!(ManifestEntry::private_of_right("GET https://a.example/x").len(), 0);
    }

    #[test]
    fn a_line_of_a_section_is_an_entry() {
        let entry = ManifestEntry::of_line("filesystem", r#""/a \"b" = { path = "x = y", access = "read" }"#).unwrap();
        assert_eq!(
            (entry.key.as_str(), entry.text("path"), entry.text("access")),
            ("/a \"b", Some("x = y"), Some("read"))
        );
        assert_eq!(entry.text("quota"), None);
        for line in ["", "a", "[a]", "a = 1\nb = 2", "[a]\nb = 1"] {
            assert!(ManifestEntry::of_line("env", line).is_none(), "{line}");
        }
    }

    #[test]
    fn the_right_of_scripts_is_in_a_section_of_its_own() {
        let mut edit = ManifestEdit::of("version = 1\n\n[code]\ncalls = [\"a\"]\n").unwrap();
        let entry = ManifestEntry::of_right("call b").unwrap();
        edit.add(CODE, &entry).unwrap();
        assert_eq!(edit.text(), "version = 1\n\n[code]\ncalls = [\"a\", \"b\"]\n");
        assert!(edit.remove(CODE, &entry));
        assert_eq!(edit.text(), "version = 1\n\n[code]\ncalls = [\"a\"]\n");
    }

    #[test]
    fn a_rule_is_added_where_the_others_are_and_nothing_else_moves() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        edit.add("weather", &http("GET https://api.example.com/v2/*")).unwrap();
        let expected = MANIFEST.replace("# forecasts\n]", "# forecasts\n    \"GET https://api.example.com/v2/*\",\n]");
        assert_eq!(edit.text(), expected);
        edit.add("weather", &http("GET https://api.example.com/v2/*")).unwrap();
        assert_eq!(edit.text(), expected, "it is there already");
        assert!(edit.remove("weather", &http("GET https://api.example.com/v2/*")));
        assert_eq!(edit.text(), MANIFEST);
        assert!(!edit.remove("weather", &http("GET https://elsewhere.example")));
    }

    #[test]
    fn a_section_is_made_behind_its_component_and_goes_with_its_last_entry() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        let units = ManifestEntry { section: "env", key: "UNITS".to_owned(), value: Value::from("metric") };
        edit.add("weather", &units).unwrap();
        let text = edit.text();
        assert!(
            text.contains("# forecasts\n]\n\n[components.weather.env]\nUNITS = \"metric\"\n\n[components.notes]"),
            "{text}"
        );
        assert!(edit.remove("weather", &units));
        assert_eq!(edit.text(), MANIFEST);
    }

    #[test]
    fn a_source_changes_alone() {
        let text = "[components]\na = { source = \"a.wasm\" } # of Ann\n[components.b]\nsource = 'b.wasm' # of Bob\n";
        let mut edit = ManifestEdit::of(text).unwrap();
        assert!(edit.set_source("a", "c.wasm") && edit.set_source("b", "d.wasm") && !edit.set_source("c", "e.wasm"));
        assert_eq!(edit.text(), text.replace("a.wasm", "c.wasm").replace("'b.wasm'", "\"d.wasm\""));
    }

    #[test]
    fn a_secret_is_read_from_elsewhere_and_the_rest_of_it_stays() {
        let text = "[components.a.secrets]\nKEY = { from = \"env:KEY\", expose = true } # of Ann\n";
        let mut edit = ManifestEdit::of(text).unwrap();
        assert_eq!(edit.secret_source("a", "KEY"), Some("env:KEY"));
        assert!(edit.set_secret_source("a", "KEY", "file:key") && !edit.set_secret_source("a", "OTHER", "file:key"));
        assert_eq!(edit.text(), text.replace("env:KEY", "file:key"));
        assert_eq!(edit.secret_source("b", "KEY"), None);
    }

    #[test]
    fn state_is_taken_away_whole_and_rules_in_a_line_stay_one() {
        let text = "[components.a]\nkeyvalue = { quota = \"1MiB\", entries = 10 }\nnetwork = { http = [\"GET https://a.example\", \"GET https://b.example\"] }\n";
        let mut edit = ManifestEdit::of(text).unwrap();
        let state = ManifestEntry { section: "keyvalue", key: "quota".to_owned(), value: Value::from("1MiB") };
        assert!(edit.remove("a", &state) && !edit.remove("a", &state));
        assert!(edit.remove("a", &http("GET https://a.example")));
        assert_eq!(edit.text(), "[components.a]\nnetwork = { http = [\"GET https://b.example\"] }\n");
    }

    #[test]
    fn tables_are_merged_into_those_that_are_there() {
        let mut edit = ManifestEdit::of(MANIFEST).unwrap();
        edit.merge(
            "[components.notes.filesystem]\n\"/notes\" = { path = \"notes\", access = \"write\" }\n\n\
             [components.notes.network]\nhttp = [\"GET https://a.example/x\"]\nprivate = [\"127.0.0.1:80\"]\n",
        )
        .unwrap();
        let text = edit.text();
        assert!(
            text.contains("filesystem = { \"/notes\" = { path = \"notes\" , access = \"write\" } }")
                || text.contains("access = \"write\""),
            "{text}"
        );
        assert!(
            text.contains(
                "[components.notes.network]\nhttp = [\"GET https://a.example/x\"]\nprivate = [\"127.0.0.1:80\"]\n"
            ),
            "{text}"
        );
        let other = edit.merge("[components.notes.filesystem]\n\"/notes\" = { path = \"elsewhere\" }\n").unwrap_err();
        assert!(other.starts_with("components.notes.filesystem./notes is "), "{other}");
        let other = edit.merge("[components.notes]\nsource = \"other.wasm\"\n").unwrap_err();
        assert_eq!(other, "components.notes.source is \"notes.wasm\" already");
    }
}
