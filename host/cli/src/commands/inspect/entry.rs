//! A minimal manifest entry that serves a component, with further grants as comments. Must not
//! hold: the keys of a manifest.
use std::path::Path;

/// A grant that a component may need.
pub struct Need {
    /// Imports that indicate it.
    imports: &'static [&'static str],
    /// Its meaning.
    pub what: &'static str,
    /// An example in a manifest.
    grant: &'static str,
    /// An example for `toolcell grant`.
    pub right: &'static str,
}

const GRANTS: [Need; 6] = [
    Need {
        imports: &["wasi:filesystem/"],
        what: "files",
        grant: "filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }",
        right: "read /data = ./data",
    },
    Need {
        imports: &["wasi:http/outgoing-handler@"],
        what: "HTTP requests",
        grant: "network.http = [\"GET https://api.example.com/*\"]",
        right: "GET https://api.example.com/*",
    },
    Need {
        imports: &["wasi:sockets/tcp", "wasi:sockets/udp"],
        what: "sockets",
        grant: "network.tcp = [\"db.example.com:5432\"]",
        right: "tcp db.example.com:5432",
    },
    Need {
        imports: &["wasi:cli/environment@"],
        what: "environment variables",
        grant: "env = { NAME = \"value\" }",
        right: "env NAME = value",
    },
    Need {
        imports: &["wasi:config/"],
        what: "settings",
        grant: "config = { name = \"value\" }",
        right: "config name = value",
    },
    Need { imports: &["wasi:keyvalue/"], what: "state between calls", grant: "keyvalue = {}", right: "keyvalue" },
];

/// Grants that a component with these imports may need.
pub fn needs(imports: &[String]) -> impl Iterator<Item = &'static Need> {
    GRANTS
        .iter()
        .filter(|need| imports.iter().any(|import| need.imports.iter().any(|prefix| import.starts_with(prefix))))
}

/// Longest name of a component in a manifest.
const NAME_CHARS_MAX: usize = 64;

/// The component of an entry.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    /// Its file, or its place in a registry.
    pub file: &'a Path,
    pub imports: &'a [String],
    /// Some of its functions cannot be tools.
    pub skips: bool,
    /// It is a program, of which the manifest makes tools.
    pub is_program: bool,
}

/// The entry, to paste.
pub fn entry(component: Described<'_>) -> String {
    let Described { file, imports, skips, is_program } = component;
    let name = name(file);
    let mut text = format!("[components.{name}]\nsource = {}\n", quoted(&file.display().to_string()));
    if skips {
        text.push_str("skip_unsupported = true\n");
    }
    for need in needs(imports) {
        text.push_str(&format!("# {}:\n# {}\n", need.what, need.grant));
    }
    if is_program {
        text.push_str(&format!("[components.{name}.tools.{name}]\ndescription = \"What it does.\"\n"));
    }
    text
}

/// A valid name made from the file's.
pub fn name(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let letters = stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let name: String = letters.skip_while(|letter| *letter == '_').take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "component".to_owned() } else { name }
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
        let imports = ["wasi:filesystem/types@0.2.3".to_owned(), "wasi:io/poll@0.2.3".to_owned()];
        let units =
            Described { file: Path::new("out/My Units.wasm"), imports: &imports, skips: true, is_program: false };
        assert_eq!(
            entry(units),
            "[components.my_units]\nsource = \"out/My Units.wasm\"\nskip_unsupported = true\n\
             # files:\n# filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }\n"
        );
        let program = Described { file: Path::new("_.wasm"), imports: &[], skips: false, is_program: true };
        assert_eq!(
            entry(program),
            "[components.component]\nsource = \"_.wasm\"\n[components.component.tools.component]\n\
             description = \"What it does.\"\n"
        );
    }
}
