//! A minimal manifest entry that serves a component, with further grants as comments.
use std::path::Path;

use toolcell_policy::rights::{Example, Importer, examples};

use crate::naming::component_name;

/// Grants that a component may need, by its imports.
#[derive(Default)]
pub struct Needs {
    /// Those that its own code needs.
    pub asked: Vec<&'static Example>,
    /// Those that its language's runtime imports, whether the tool uses them or not.
    pub brought: Vec<&'static Example>,
}

impl Needs {
    /// For a component with these imports, with or without a JavaScript engine.
    pub fn of(imports: &[String], carries_javascript: bool) -> Self {
        let is_imported =
            |need: &&Example| imports.iter().any(|import| need.imports.iter().any(|prefix| import.starts_with(prefix)));
        let is_asked = |need: &&Example| match need.importer {
            Importer::Tool => true,
            Importer::ToolOrEngine => !carries_javascript,
            Importer::Library => false,
        };
        let (asked, brought) = examples().filter(is_imported).partition(is_asked);
        Self { asked, brought }
    }

    /// Both, a line each.
    pub fn text(&self) -> String {
        let named = |needs: &[&Example]| needs.iter().map(|need| need.what).collect::<Vec<_>>().join(", ");
        let mut text = String::new();
        if self.asked.is_empty() && self.brought.is_empty() {
            text.push_str("  asks for nothing that a manifest grants\n");
        }
        if !self.asked.is_empty() {
            text.push_str(&format!("  can ask for {}; none of it is granted\n", named(&self.asked)));
        }
        if !self.brought.is_empty() {
            let brought = named(&self.brought);
            text.push_str(&format!("  can use, if you grant it: {brought}; its language brings that along\n"));
        }
        text
    }
}

/// The component of an entry.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    /// Its file, or its place in a registry.
    pub file: &'a Path,
    pub needs: &'a Needs,
    /// True if some of its functions cannot be tools.
    pub skips: bool,
    /// True if it is a program, and the manifest makes tools of it.
    pub is_program: bool,
    /// True if it needs WASI 0.3.
    pub is_later_wasi: bool,
}

/// The entry, to paste.
pub fn entry(component: Described<'_>) -> String {
    let Described { file, needs, skips, is_program, is_later_wasi } = component;
    let name = component_name(file);
    let mut text = format!("[components.{name}]\nsource = {}\n", quoted(&file.display().to_string()));
    if is_later_wasi {
        text.push_str("wasi = \"0.3\"\n");
    }
    if skips {
        text.push_str("skip_unsupported = true\n");
    }
    for need in &needs.asked {
        text.push_str(&format!("# {}:\n# {}\n", need.what, need.grant));
    }
    for need in &needs.brought {
        text.push_str(&format!("# {}, which its language brings along:\n# {}\n", need.what, need.grant));
    }
    if is_program {
        text.push_str(&format!("[components.{name}.tools.{name}]\ndescription = \"What it does.\"\n"));
    }
    text
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_short_as_will_do_and_names_what_can_be_granted() {
        let imports = ["wasi:filesystem/types@0.2.3", "wasi:io/poll@0.2.3", "wasi:keyvalue/store@0.2.0-draft"];
        let needs = Needs::of(&imports.map(str::to_owned), false);
        let units = Described {
            file: Path::new("out/My Units.wasm"),
            needs: &needs,
            skips: true,
            is_program: false,
            is_later_wasi: false,
        };
        assert_eq!(
            entry(units),
            "[components.my_units]\nsource = \"out/My Units.wasm\"\nskip_unsupported = true\n\
             # state between calls:\n# keyvalue = {}\n\
             # files, which its language brings along:\n\
             # filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }\n"
        );
        let none = Needs::default();
        let program =
            Described { file: Path::new("_.wasm"), needs: &none, skips: false, is_program: true, is_later_wasi: true };
        assert_eq!(
            entry(program),
            "[components.component]\nsource = \"_.wasm\"\nwasi = \"0.3\"\n[components.component.tools.component]\n\
             description = \"What it does.\"\n"
        );
    }
    #[test]
    fn what_a_language_brings_along_is_no_need_of_the_tool() {
        let library = ["wasi:filesystem/types@0.2.3", "wasi:sockets/tcp@0.2.3", "wasi:cli/environment@0.2.3"];
        let http = "wasi:http/outgoing-handler@0.2.3";
        let own = ["wasi:config/store@0.2.0-rc.1", "wasi:keyvalue/store@0.2.0-draft"];
        let said = |imports: &[&str], carries_javascript| {
            Needs::of(&imports.iter().map(|import| (*import).to_owned()).collect::<Vec<_>>(), carries_javascript).text()
        };
        assert_eq!(said(&["wasi:io/poll@0.2.3"], true), "  asks for nothing that a manifest grants\n");
        assert_eq!(
            said(&library, false),
            "  can use, if you grant it: files, sockets, environment variables; its language brings that along\n"
        );
        assert_eq!(
            said(&[own[0], http, own[1]], false),
            "  can ask for HTTP requests, settings, state between calls; none of it is granted\n"
        );
        assert_eq!(said(&[http], true), "  can use, if you grant it: HTTP requests; its language brings that along\n");
        assert_eq!(
            said(&[http, library[0], own[1]], true),
            "  can ask for state between calls; none of it is granted\n  \
             can use, if you grant it: files, HTTP requests; its language brings that along\n"
        );
    }
}
