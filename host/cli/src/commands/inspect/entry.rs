//! A minimal manifest entry that serves a component, with further grants as comments. Must not
//! hold: the keys of a manifest.
use std::path::Path;

/// Grants that a component may need: the imports that indicate one, its meaning, and an example.
const GRANTS: [(&[&str], &str, &str); 6] = [
    (&["wasi:filesystem/"], "files", "filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }"),
    (&["wasi:http/outgoing-handler@"], "HTTP requests", "network = { http = [\"GET https://api.example.com/*\"] }"),
    (&["wasi:sockets/tcp", "wasi:sockets/udp"], "sockets", "network = { tcp = [\"db.example.com:5432\"] }"),
    (&["wasi:cli/environment@"], "environment variables", "env = { NAME = \"value\" }"),
    (&["wasi:config/"], "settings", "config = { name = \"value\" }"),
    (&["wasi:keyvalue/"], "state between calls", "keyvalue = {}"),
];

/// Longest name of a component in a manifest.
const NAME_CHARS_MAX: usize = 64;

/// The entry, to paste. `skips`: some functions of the component cannot be tools.
pub fn entry(file: &Path, imports: &[String], skips: bool) -> String {
    let mut text = format!("[components.{}]\nsource = {}\n", name(file), quoted(&file.display().to_string()));
    if skips {
        text.push_str("skip_unsupported = true\n");
    }
    for (wanted, what, grant) in GRANTS {
        if imports.iter().any(|import| wanted.iter().any(|prefix| import.starts_with(prefix))) {
            text.push_str(&format!("# It can ask for {what}: {grant}\n"));
        }
    }
    text
}

/// A valid name made from the file's.
fn name(file: &Path) -> String {
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
        assert_eq!(
            entry(Path::new("out/My Units.wasm"), &imports, true),
            "[components.my_units]\nsource = \"out/My Units.wasm\"\nskip_unsupported = true\n\
             # It can ask for files: filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }\n"
        );
        assert_eq!(entry(Path::new("_.wasm"), &[], false), "[components.component]\nsource = \"_.wasm\"\n");
    }
}
