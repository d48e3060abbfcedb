//! The metadata of a component's author, as people see it and `add` takes it into a manifest. A
//! stranger wrote it, so each suggestion is one short line with a prefix.
use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ComponentEntry, ManifestEdit};
use toolcell_policy::{ComponentPolicy, Metadata, Suggested, Suggestion};
use toolcell_sandbox::{carried_metadata, contract};
use toolcell_server::catalog::folder_of;
use toolcell_server::{ManifestFile, shell};

use super::requested_permissions::clipped;
use super::warnings::written_text;

/// Suggestions that are shown: two screens of them.
const SHOWN_MAX: usize = 40;

/// Metadata, or why it cannot be read.
pub type ReadMetadata = Result<Option<Metadata>, String>;

/// A limit that allows more than the manifest's default.
pub struct Beyond {
    pub suggestion: Suggestion,
    /// The default, as in a manifest.
    pub default: String,
}

/// Suggestions, sorted by what `add` does with them.
#[derive(Default)]
pub struct Offer {
    /// Those that become part of the manifest.
    pub taken: Vec<Suggestion>,
    /// Those that need a person's consent.
    pub beyond: Vec<Beyond>,
    /// Tools that the component does not list, without repetition.
    pub other_tools: Vec<String>,
}

/// Finds and reads the metadata of a component. Misleading characters are removed from its texts.
pub fn of_component(bytes: &[u8]) -> ReadMetadata {
    let carried = carried_metadata(bytes).map_err(|damage| format!("the metadata {damage}"))?;
    let Some(text) = carried else { return Ok(None) };
    let read = Metadata::parse(text).map_err(|problems| {
        let first = problems.first().map_or("nothing is known", |problem| problem.message());
        format!("the metadata cannot be read: {first}")
    })?;
    Ok(Some(read.cleaned(|text| sanitize::text(text).into_owned())))
}

/// The entry of a manifest whose source is this file.
pub fn entry_of(edit: &ManifestEdit, manifest: &Path, file: &Path) -> Option<ComponentEntry> {
    let folder = folder_of(manifest);
    let file = file.canonicalize().ok()?;
    let is_its = |source: &str| folder.join(source).canonicalize().is_ok_and(|source| source == file);
    edit.components()
        .into_iter()
        .filter_map(|name| edit.component(&name))
        .find(|entry| entry.text("source").is_some_and(is_its))
}

/// Advice for an author whose manifest has metadata for a file that the file lacks; empty
/// otherwise.
pub fn not_carried(manifest: &ManifestFile, file: &Path, component: &[u8]) -> Option<String> {
    let edit = ManifestEdit::of(manifest.text()).ok()?;
    let said = Metadata::parse(&entry_of(&edit, manifest.path(), file)?.metadata()).ok()?;
    let carried = carried_metadata(component).ok().flatten().unwrap_or_default();
    if said.suggestions().is_empty() || said.text() == carried {
        return None;
    }
    let [file, manifest] = [file, manifest.path()].map(|path| shell::quoted(&sanitize::line(&path.to_string_lossy())));
    Some(format!(
        "it does not carry what the manifest says of its titles, descriptions, hints and limits: \
         `toolcell annotate {file} --metadata {manifest}` puts that in, before a push"
    ))
}

/// The metadata as members of JSON: its suggestions, or why it cannot be read; `null` if there is
/// none.
pub fn json(read: &ReadMetadata) -> [(&'static str, Value); 2] {
    let lines = read.as_ref().ok().and_then(Option::as_ref).map(|metadata| lines(metadata.suggestions()));
    [("metadata", json!(lines)), ("metadata_problem", json!(read.as_ref().err()))]
}

/// All suggestions, a line each; empty if there are none.
pub fn text(read: &ReadMetadata) -> String {
    match read {
        Ok(None) => String::new(),
        Err(problem) => format!("  its author's suggestions are not shown: {}\n", clipped(problem)),
        Ok(Some(metadata)) => shown(&lines(metadata.suggestions())),
    }
}

/// Limits of loading that the author suggests, as advice if a component exceeded others; empty if
/// there are none.
pub fn loading_advice(read: &ReadMetadata) -> String {
    let suggestions = read.iter().flatten().flat_map(Metadata::suggestions);
    let of_loading = suggestions.filter(|suggestion| matches!(suggestion.what(), Suggested::Load(..)));
    let lines: Vec<String> = of_loading.map(ToString::to_string).collect();
    if lines.is_empty() { String::new() } else { format!("; its author suggests {}", lines.join(", ")) }
}

impl Offer {
    /// Sorts the suggestions for a component that lists these tools. `policy` is its entry without
    /// them. A tool's own definition wins over them, and needs no line.
    pub fn of(metadata: &Metadata, tools: &[contract::GuestTool], policy: &ComponentPolicy) -> Self {
        let mut offer = Self::default();
        for suggestion in metadata.suggestions() {
            if let Some(name) = suggestion.tool() {
                let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
                    if offer.other_tools.last().is_none_or(|last| last != name) {
                        offer.other_tools.push(name.to_owned());
                    }
                    continue;
                };
                if is_set(tool, suggestion.what()) {
                    continue;
                }
            }
            match suggestion.default_exceeded(policy.limits(), policy.load()) {
                Some(default) => offer.beyond.push(Beyond { suggestion: suggestion.clone(), default }),
                None => offer.taken.push(suggestion.clone()),
            }
        }
        offer
    }

    /// The applied suggestions and the others, for a person.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.taken.is_empty() {
            text.push_str("  its author suggests this for the manifest; none of it grants anything:\n");
            text.push_str(&shown(&lines(&self.taken)));
        }
        if !self.beyond.is_empty() {
            text.push_str(
                "  its author suggests more than this manifest's defaults, which is not written unless you say so:\n",
            );
            let lines: Vec<String> = self.beyond.iter().map(Beyond::line).collect();
            text.push_str(&shown(&lines));
        }
        if !self.other_tools.is_empty() {
            let names = clipped(&self.other_tools.join(", "));
            text.push_str(&format!("  its author describes tools that it does not list, left out: {names}\n"));
        }
        text
    }

    /// The applied suggestions and the others, as members of JSON.
    pub fn json(&self) -> [(&'static str, Value); 2] {
        let beyond: Vec<String> = self.beyond.iter().map(Beyond::line).collect();
        [("metadata_taken", json!(lines(&self.taken))), ("metadata_beyond_defaults", json!(beyond))]
    }
}

impl Beyond {
    /// The suggestion, followed by the default.
    pub fn line(&self) -> String {
        format!("{} ({} by default)", self.suggestion, self.default)
    }
}

/// True if the component's own definition already has this.
fn is_set(tool: &contract::GuestTool, what: &Suggested) -> bool {
    let hints = tool.hints.as_ref();
    match what {
        Suggested::Title(_) => tool.title.is_some(),
        Suggested::Description(_) => !written_text(&tool.description).trim().is_empty(),
        Suggested::Hint(key, _) => hints.is_some_and(|hints| {
            let own = match *key {
                "read_only" => hints.read_only,
                "destructive" => hints.destructive,
                "idempotent" => hints.idempotent,
                _ => hints.open_world,
            };
            own.is_some()
        }),
        Suggested::Limit(..) | Suggested::Load(..) => false,
    }
}

/// Suggestions as lines, whole.
fn lines(suggestions: &[Suggestion]) -> Vec<String> {
    suggestions.iter().map(|suggestion| sanitize::line(&suggestion.to_string()).into_owned()).collect()
}

fn shown(lines: &[String]) -> String {
    let mut text: String = lines.iter().take(SHOWN_MAX).map(|line| format!("    ? {}\n", clipped(line))).collect();
    if lines.len() > SHOWN_MAX {
        text.push_str(&format!("    and {} more\n", lines.len() - SHOWN_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};
    use toolcell_sandbox::with_metadata;

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn read(text: &str) -> ReadMetadata {
        of_component(&with_metadata(EMPTY, text))
    }

    fn tool(
        name: &str,
        title: Option<&str>,
        description: &str,
        hints: Option<contract::GuestToolHints>,
    ) -> contract::GuestTool {
        contract::GuestTool {
            name: name.to_owned(),
            title: title.map(str::to_owned),
            description: description.to_owned(),
            input_schema_json: "{}".to_owned(),
            output_schema_json: None,
            hints,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    /// The lines of the applied ones, of those beyond the defaults, and other tools.
    fn sorted(metadata: &str, tools: &[contract::GuestTool], defaults: &str) -> [Vec<String>; 3] {
        let manifest = format!("version = 1\n{defaults}\n[components.c]\nsource = \"c.wasm\"\n");
        let manifest = parse(&Source { name: "", text: &manifest }).unwrap().manifest;
        let offer = Offer::of(&read(metadata).unwrap().unwrap(), tools, manifest.component("c").unwrap());
        [lines(&offer.taken), offer.beyond.iter().map(Beyond::line).collect(), offer.other_tools]
    }

    #[test]
    fn what_a_component_says_itself_wins_and_needs_no_line() {
        let hints = contract::GuestToolHints {
            read_only: Some(true),
            destructive: None,
            idempotent: Some(false),
            open_world: None,
        };
        let tools = [
            tool("own", Some("Own"), "Says.", Some(hints)),
            tool("bare", None, "Calls bare of the component.", None),
            tool("empty", None, "", None),
        ];
        let said = "title = \"T\"\ndescription = \"D\"\nread_only = false\nidempotent = true\nopen_world = false\n";
        let text = format!("[tools.own]\n{said}[tools.bare]\n{said}[tools.empty]\ndescription = \"D\"\n");
        let [taken, beyond, other] = sorted(&text, &tools, "");
        let expected = [
            "tools.own.open_world = false",
            "tools.bare.title = \"T\"",
            "tools.bare.description = \"D\"",
            "tools.bare.read_only = false",
            "tools.bare.idempotent = true",
            "tools.bare.open_world = false",
            "tools.empty.description = \"D\"",
        ];
        assert_eq!((taken.as_slice(), beyond, other), (&expected.map(str::to_owned)[..], Vec::new(), Vec::new()));
    }

    #[test]
    fn limits_count_beside_the_defaults_of_this_manifest_and_other_tools_are_left_out() {
        let text = "limits = { deadline = \"10s\", memory = \"1MiB\" }\nload = { compile_time = \"5m\" }\n\
                    [tools.a]\nlimits = { deadline = \"20s\" }\n[tools.b]\ntitle = \"B\"\nread_only = true\n";
        let tools = [tool("a", None, "A.", None)];
        let [taken, beyond, other] = sorted(text, &tools, "");
        assert_eq!(
            taken,
            ["limits.deadline = \"10s\"", "limits.memory = \"1MiB\"", "tools.a.limits.deadline = \"20s\""]
        );
        assert_eq!(
            (beyond.as_slice(), other),
            (&["load.compile_time = \"5m\" (2m by default)".to_owned()][..], vec!["b".to_owned()])
        );
        let defaults = "[defaults]\nlimits = { deadline = \"15s\" }\nload = { compile_time = \"10m\" }\n";
        let [_, beyond, _] = sorted(text, &tools, defaults);
        assert_eq!(beyond, ["tools.a.limits.deadline = \"20s\" (15s by default)"]);
    }

    #[test]
    fn hostile_metadata_stays_short_lines_of_their_own() {
        let hostile = "[tools.a]\ntitle = \"a\\u202eb\"\ndescription = \"x\\n  signed by you\\u200b\"\n";
        let metadata = read(&format!("{hostile}[tools.b]\ndescription = \"{}\"\n", "y".repeat(9_000)));
        let shown = text(&metadata);
        assert!(shown.lines().all(|line| line.starts_with("    ? tools.") && line.chars().count() <= 80), "{shown}");
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.starts_with("    ? tools.a.title = \"ab\"\n"), "{shown}");
        let many: String = (0..900).map(|number| format!("[tools.t{number}]\nread_only = true\n")).collect();
        assert_eq!(text(&read(&many)).lines().count(), SHOWN_MAX + 1);
        let unread = read("\"\\u001b[2J\\nsigned by you\" = 1");
        assert!(unread.as_ref().is_err_and(|problem| problem.starts_with("the metadata cannot be read: unknown key")));
        let shown = text(&unread);
        assert_eq!((shown.lines().count(), shown.contains('\u{1b}')), (1, false), "{shown:?}");
        assert_eq!((text(&Ok(None)), loading_advice(&unread)), (String::new(), String::new()));
    }

    #[test]
    fn limits_of_loading_are_advice_where_a_component_is_not_loaded() {
        let metadata = read("limits = { fuel = 5 }\nload = { compile_time = \"5m\", compile_memory = \"8GiB\" }");
        let advice = "; its author suggests load.compile_time = \"5m\", load.compile_memory = \"8GiB\"";
        assert_eq!(loading_advice(&metadata), advice);
    }
}
