//! Text of the lock file: TOML that is equal for equal content, and easy to compare in version
//! control.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use toml::de::{DeTable, DeValue};
use toolcell_policy::ApprovalPolicy;

use super::confirmation::ConfirmationRule;
use super::pinned::{Lock, PinnedComponent, PinnedTool, digest, sorted};

/// The only version of the format.
const VERSION: i128 = 1;

/// Lines of grants from which on tools of a component share one list. 20: a shorter one is read
/// where it counts. A bridge has hundreds of tools, each with a line for every path.
const SHARED_LINES_MIN: usize = 20;

const HEAD: &str = "\
# What `toolcell serve --locked` serves, and nothing else. Written by `toolcell lock` and `toolcell approve`; keep it in
# version control, and read what changes in it.
version = 1
";

/// One pinned component as text, equal for equal components.
pub fn text_of(name: &str, component: &PinnedComponent) -> String {
    Lock { components: BTreeMap::from([(name.to_owned(), component.clone())]) }.text("")
}

/// A lock file's content.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedLock {
    /// The pinned components.
    pub lock: Lock,
    /// The manifest that it pins, by the name of its file.
    pub manifest: Option<String>,
}

impl Lock {
    /// The lock of this manifest as text.
    pub fn text(&self, manifest: &str) -> String {
        let mut out = format!("{HEAD}manifest = {}\n", quoted(manifest));
        for (name, component) in &self.components {
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "\n[components.{}]\nsource = {}\ndigest = {}\nsize_bytes = {}\ncontract = {}\n",
                key(name),
                quoted(&component.source),
                quoted(&component.digest),
                component.size_bytes,
                quoted(&component.contract),
            );
            if !component.signed_by.is_empty() {
                push_lines(&mut out, "signed_by", &component.signed_by);
            }
            if let Some(root) = &component.trusted_root {
                let _ = writeln!(out, "trusted_root = {}", quoted(root));
            }
            let shared = shared_grants(component);
            if let Some(shared) = shared {
                push_lines(&mut out, "grants", shared);
            }
            for (tool_name, tool) in &component.tools {
                let _ = write!(out, "\n[components.{}.tools.{}]\n", key(name), key(tool_name));
                push_tool(&mut out, tool, shared.is_some_and(|shared| *shared == tool.grants));
            }
        }
        out
    }

    /// Parses a lock. `Err` is one sentence.
    pub fn parse(text: &str) -> Result<ParsedLock, String> {
        let table = DeTable::parse(text).map_err(|error| format!("not TOML: {}", error.message().trim()))?;
        let root = TomlTable { path: String::new(), table: table.get_ref() };
        match root.value("version")? {
            DeValue::Integer(number) if i128::from_str_radix(number.as_str(), number.radix()) == Ok(VERSION) => {}
            _ => return Err(format!("version is not {VERSION}, the only one that this program reads")),
        }
        let mut components = BTreeMap::new();
        if let Some(all) = root.table_if("components")? {
            for (name, component) in all.tables()? {
                components.insert(name, read_component(&component)?);
            }
        }
        let manifest = root.has("manifest").then(|| root.text("manifest")).transpose()?;
        Ok(ParsedLock { lock: Self { components }, manifest })
    }
}

/// The long list of grants that most tools of a component have, if several have one.
fn shared_grants(component: &PinnedComponent) -> Option<&Vec<String>> {
    let mut counts: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
    for tool in component.tools.values().filter(|tool| tool.grants.len() >= SHARED_LINES_MIN) {
        *counts.entry(&tool.grants).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.filter(|(_, count)| *count > 1).map(|(grants, _)| grants)
}

fn push_tool(out: &mut String, tool: &PinnedTool, shares_grants: bool) {
    let _ = writeln!(out, "definition_digest = {}", quoted(&tool.definition_digest));
    let _ = writeln!(out, "grants_digest = {}", quoted(&tool.grants_digest));
    if !shares_grants {
        push_lines(out, "grants", &tool.grants);
    }
    let ConfirmationRule { policy, remember_ms } = tool.confirmed;
    if policy != ApprovalPolicy::Never {
        let _ = writeln!(out, "approval = {}", quoted(policy.name()));
    }
    if remember_ms > 0 {
        let _ = writeln!(out, "remember_ms = {remember_ms}");
    }
    let pretty = serde_json::to_string_pretty(&tool.definition).unwrap_or_default();
    // A literal string cannot hold these. The digest covers the value, not its form.
    if pretty.contains("'''") || pretty.contains(|c: char| c.is_control() && c != '\n') {
        let _ = writeln!(out, "definition = {}", quoted(&pretty));
    } else {
        let _ = writeln!(out, "definition = '''\n{pretty}\n'''");
    }
}

fn push_lines(out: &mut String, key: &str, lines: &[String]) {
    if lines.is_empty() {
        let _ = writeln!(out, "{key} = []");
        return;
    }
    let _ = writeln!(out, "{key} = [");
    for line in lines {
        let _ = writeln!(out, "    {},", quoted(line));
    }
    out.push_str("]\n");
}

fn read_component(part: &TomlTable<'_>) -> Result<PinnedComponent, String> {
    let mut tools = BTreeMap::new();
    let shared = if part.has("grants") { Some(part.texts("grants")?) } else { None };
    if let Some(all) = part.table_if("tools")? {
        for (name, tool) in all.tables()? {
            tools.insert(name, read_tool(&tool, shared.as_ref())?);
        }
    }
    Ok(PinnedComponent {
        source: part.text("source")?,
        digest: part.text("digest")?,
        size_bytes: part.number("size_bytes")?,
        signed_by: if part.has("signed_by") { part.texts("signed_by")? } else { Vec::new() },
        trusted_root: part.has("trusted_root").then(|| part.text("trusted_root")).transpose()?,
        contract: part.text("contract")?,
        tools,
    })
}

fn read_tool(part: &TomlTable<'_>, shared: Option<&Vec<String>>) -> Result<PinnedTool, String> {
    let text = part.text("definition")?;
    let definition: Value = serde_json::from_str(&text).map_err(|_| part.wrong("definition", "is not JSON"))?;
    let definition = sorted(definition);
    let definition_digest = part.text("definition_digest")?;
    // One of them was edited by hand, or a merge mixed two versions.
    if digest(&definition) != definition_digest {
        return Err(part.wrong("definition", "does not fit its digest"));
    }
    let grants_digest = part.text("grants_digest")?;
    let grants = match shared {
        Some(shared) if !part.has("grants") => shared.clone(),
        _ => part.texts("grants")?,
    };
    let confirmed = read_confirmed(part)?;
    Ok(PinnedTool { definition_digest, definition, grants_digest, grants, confirmed })
}

/// Without this key, calls need no confirmation.
fn read_confirmed(part: &TomlTable<'_>) -> Result<ConfirmationRule, String> {
    let mut confirmed = ConfirmationRule::default();
    if part.has("approval") {
        let name = part.text("approval")?;
        let named = ApprovalPolicy::ALL.into_iter().find(|policy| policy.name() == name);
        confirmed.policy = named.ok_or_else(|| part.wrong("approval", "is not a kind of approval"))?;
    }
    if part.has("remember_ms") {
        confirmed.remember_ms = part.number("remember_ms")?;
    }
    Ok(confirmed)
}

/// A table of the file and its path.
struct TomlTable<'t> {
    path: String,
    table: &'t DeTable<'t>,
}

impl<'t> TomlTable<'t> {
    fn wrong(&self, key: &str, what: &str) -> String {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        format!("{path} {what}")
    }

    fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn value(&self, key: &str) -> Result<&'t DeValue<'t>, String> {
        self.table.get(key).map(|value| value.get_ref()).ok_or_else(|| self.wrong(key, "is missing"))
    }

    fn text(&self, key: &str) -> Result<String, String> {
        let text = self.value(key)?.as_str().map(str::to_owned);
        text.ok_or_else(|| self.wrong(key, "is not a text"))
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let items = self.value(key)?.as_array().map(|items| items.iter().map(|item| item.get_ref().as_str()));
        let texts = items.and_then(|items| items.map(|item| item.map(str::to_owned)).collect());
        texts.ok_or_else(|| self.wrong(key, "is not a list of texts"))
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        let number = match self.value(key)? {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(key, "is not a number"))
    }

    fn table_if(&self, key: &str) -> Result<Option<TomlTable<'t>>, String> {
        match self.table.get(key).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::Table(table)) => {
                let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
                Ok(Some(TomlTable { path, table }))
            }
            Some(_) => Err(self.wrong(key, "is not a table")),
        }
    }

    /// All entries, which must be tables.
    fn tables(&self) -> Result<Vec<(String, TomlTable<'t>)>, String> {
        let named = self.table.iter().map(|(key, _)| {
            let name = key.get_ref().to_string();
            let part = self.table_if(&name)?.ok_or_else(|| self.wrong(&name, "is missing"))?;
            Ok((name, part))
        });
        named.collect()
    }
}

/// A key: bare if possible, as for names of components and tools, otherwise quoted.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lock(description: &str) -> Lock {
        let definition = sorted(json!({"name": "now", "description": description, "inputSchema": {"type": "object"}}));
        let tool = PinnedTool {
            definition_digest: digest(&definition),
            definition,
            grants_digest: "sha256:b".to_owned(),
            grants: vec!["read /d: d".to_owned(), "variable A = \"\\\"\"".to_owned()],
            confirmed: ConfirmationRule { policy: ApprovalPolicy::Destructive, remember_ms: 600_000 },
        };
        let component = PinnedComponent {
            source: "components/w.wasm".to_owned(),
            digest: "sha256:a".to_owned(),
            size_bytes: 7,
            contract: "1.0.0".to_owned(),
            signed_by: vec!["signature by key sha256:b, in no log".to_owned()],
            trusted_root: Some("sha256:c".to_owned()),
            tools: BTreeMap::from([("now".to_owned(), tool)]),
        };
        Lock { components: BTreeMap::from([("weather".to_owned(), component)]) }
    }

    #[test]
    fn what_is_written_is_read_again_whatever_a_description_says() {
        for description in ["", "plain", "two\nlines", "''' and \"quotes\" \\", "\u{7f}\u{0}\u{202e}é"] {
            let lock = lock(description);
            let text = lock.text("tools.toml");
            assert_eq!(text, lock.text("tools.toml"));
            let manifest = Some("tools.toml".to_owned());
            assert_eq!(Lock::parse(&text).unwrap(), ParsedLock { lock, manifest }, "{text}");
        }
        assert_eq!(Lock::parse(&Lock::default().text("t")).unwrap().lock, Lock::default());
    }

    #[test]
    fn tools_with_the_same_long_list_of_grants_share_it() {
        let mut lock = lock("plain");
        let rules = |count: usize| -> Vec<String> { (0..count).map(|at| format!("http GET https://a/{at}")).collect() };
        let component = lock.components.get_mut("weather").unwrap();
        let tool = component.tools["now"].clone();
        for (name, count) in [("a", 20), ("b", 20), ("c", 21), ("d", 19), ("e", 19)] {
            component.tools.insert(name.to_owned(), PinnedTool { grants: rules(count), ..tool.clone() });
        }
        let text = lock.text("tools.toml");
        // Once for `a` and `b`, and once each for `c`, `d` and `e`.
        assert_eq!(text.matches("https://a/0\"").count(), 4, "{text}");
        assert_eq!(Lock::parse(&text).unwrap().lock, lock);
        // Without it, a tool that names none is broken.
        let broken = text.replacen("grants = [", "others = [", 1);
        assert_eq!(Lock::parse(&broken).unwrap_err(), "components.weather.tools.a.grants is missing");
    }

    #[test]
    fn a_broken_file_is_named_by_its_place() {
        let text = lock("plain").text("tools.toml");
        for (from, to, problem) in [
            ("version = 1", "version = 2", "version is not 1, the only one that this program reads"),
            ("version = 1", "", "version is missing"),
            ("\"tools.toml\"", "7", "manifest is not a text"),
            ("\"plain\"", "\"other\"", "components.weather.tools.now.definition does not fit its digest"),
            ("size_bytes = 7", "size_bytes = \"7\"", "components.weather.size_bytes is not a number"),
            ("contract = \"1.0.0\"\n", "", "components.weather.contract is missing"),
            ("signed_by = [", "signed_by = [1,", "components.weather.signed_by is not a list of texts"),
            ("\"sha256:c\"", "7", "components.weather.trusted_root is not a text"),
            ("\"destructive\"", "\"perhaps\"", "components.weather.tools.now.approval is not a kind of approval"),
            ("grants = [", "grants = [1,", "components.weather.tools.now.grants is not a list of texts"),
        ] {
            let broken = text.replacen(from, to, 1);
            assert_ne!(broken, text, "{from}");
            assert_eq!(Lock::parse(&broken).unwrap_err(), problem);
        }
        assert!(Lock::parse("<<<<<<< HEAD").unwrap_err().starts_with("not TOML"));
    }
}
