//! A component's requested permissions, as people see them and may grant them. A stranger wrote
//! them, so each is one short line with a prefix.
use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::RequestedPermissions;
use toolcell_policy::rights::blank;
use toolcell_server::shell;

use crate::args::manifest_words;

/// Requested permissions that are shown: two screens of them.
const SHOWN_MAX: usize = 40;

/// Characters of a requested permission that are shown, so that it stays on one line.
const SHOWN_CHARS_MAX: usize = 70;

/// Requested permissions, or why they cannot be read.
pub type ReadPermissions = Result<Option<RequestedPermissions>, String>;

/// The permission requests as members of JSON: the rights, or why they cannot be read; `null` if
/// there are none.
pub fn json(requested: &ReadPermissions) -> [(&'static str, Value); 2] {
    let rights = requested.as_ref().ok().and_then(Option::as_ref).map(RequestedPermissions::rights);
    [("requested_permissions", json!(rights)), ("requested_permissions_problem", json!(requested.as_ref().err()))]
}

/// The permission requests, a line each, after an introduction; empty if there are none.
pub fn text(requested: &ReadPermissions) -> String {
    let rights = match requested {
        Ok(None) => return String::new(),
        Err(problem) => {
            let problem = problem
                .strip_prefix("the requested permissions")
                .map_or_else(|| problem.clone(), |rest| format!("they{rest}"));
            return format!("  its requests are not shown: {}\n", clipped(&problem));
        }
        Ok(Some(requested)) => requested.rights(),
    };
    if rights.is_empty() {
        return "  it requests no permissions\n".to_owned();
    }
    let mut text = "  it requests, in its own words; nothing is granted unless you say so:\n".to_owned();
    for right in rights.iter().take(SHOWN_MAX) {
        text.push_str(&format!("    ? {}\n", clipped(right)));
    }
    if rights.len() > SHOWN_MAX {
        text.push_str(&format!("    and {} more\n", rights.len() - SHOWN_MAX));
    }
    text
}

/// The commands that grant requested permissions, a line each. Words in capitals are placeholders.
pub fn commands(component: &str, manifest: &Path, requested: &ReadPermissions) -> String {
    let Ok(Some(requested)) = requested else { return String::new() };
    let manifest = manifest_words(manifest);
    let rights = requested.rights();
    let (short, long): (Vec<&String>, Vec<&String>) =
        rights.iter().partition(|right| right.chars().count() <= SHOWN_CHARS_MAX);
    let mut text = String::new();
    for right in short.iter().take(SHOWN_MAX) {
        text.push_str(&format!(
            "  toolcell grant {component}{manifest} {}\n",
            shell::quoted(&sanitize::line(&filled(right)))
        ));
    }
    let left_out = long.len() + short.len().saturating_sub(SHOWN_MAX);
    if left_out > 0 {
        text.push_str(&format!("  {left_out} more: `toolcell inspect --json` shows them whole\n"));
    }
    text
}

/// A right with placeholders for everything that the component cannot know.
fn filled(right: &str) -> String {
    format!("{right}{}", blank(right))
}

/// True if a right has everything that granting it needs. An entry of `private` is added with the
/// rule that needs it.
pub fn is_whole(right: &str) -> bool {
    filled(right) == right && !right.starts_with("private ")
}

/// A text as one short line.
pub fn clipped(text: &str) -> String {
    let text = sanitize::line(text);
    match text.chars().count() > SHOWN_CHARS_MAX {
        true => format!("{}…", text.chars().take(SHOWN_CHARS_MAX - 1).collect::<String>()),
        false => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(text: &str) -> ReadPermissions {
        Ok(Some(RequestedPermissions::parse(text).unwrap()))
    }

    #[test]
    fn each_requested_permission_is_a_line_and_a_command_that_a_shell_takes_as_one_word() {
        let read =
            requested("env = [\"A'$(id)`id`\"]\nkeyvalue = true\nfilesystem = { \"/data\" = {} }\nsecrets = [\"K\"]");
        let said = "  it requests, in its own words; nothing is granted unless you say so:\n";
        assert_eq!(
            text(&read),
            format!("{said}    ? read /data\n    ? env A'$(id)`id`\n    ? keyvalue\n    ? secret K\n")
        );
        assert_eq!(
            commands("a", Path::new("toolcell.toml"), &read),
            "  toolcell grant a 'read /data = FOLDER'\n  toolcell grant a 'env A'\\''$(id)`id` = VALUE'\n  \
             toolcell grant a 'keyvalue'\n  toolcell grant a 'secret K = SOURCE as HEADER: Bearer {} for URL'\n"
        );
        let elsewhere = commands("a", Path::new("b c.toml"), &requested("keyvalue = true"));
        assert_eq!(elsewhere, "  toolcell grant a --manifest 'b c.toml' 'keyvalue'\n");
        assert_eq!((text(&Ok(None)), commands("a", Path::new("x"), &Ok(None))), (String::new(), String::new()));
        assert_eq!(text(&requested("")), "  it requests no permissions\n");
    }

    #[test]
    fn hostile_requested_permissions_stay_short_lines_of_their_own() {
        let long = format!("network = {{ http = [\"https://x.example/{}\"] }}", "a".repeat(150));
        let shown = text(&requested(&long));
        assert!(shown.lines().all(|line| line.chars().count() <= 80) && shown.ends_with("a…\n"), "{shown}");
        let command = commands("a", Path::new("toolcell.toml"), &requested(&long));
        assert_eq!(command, "  1 more: `toolcell inspect --json` shows them whole\n");
        let names: Vec<String> = (0..60).map(|number| format!("\"A{number}\"")).collect();
        let many = requested(&format!("env = [{}]", names.join(",")));
        assert_eq!((text(&many).lines().count(), commands("a", Path::new("x"), &many).lines().count()), (42, 41));
        let damaged = Err(format!(
            "the requested permissions cannot be read: unknown key \"\u{1b}[2J\nsigned by you{}\"",
            "x".repeat(99)
        ));
        let shown = text(&damaged);
        assert_eq!((shown.lines().count(), shown.contains('\u{1b}')), (1, false), "{shown:?}");
    }

    #[test]
    fn rights_that_say_all_are_told_from_others() {
        let whole = ["GET https://a.example/x", "https://a.example", "tcp a.example:1", "keyvalue"];
        assert!(whole.into_iter().all(is_whole));
        let open = ["read /data", "write /data", "env A", "config a", "secret A", "private 127.0.0.1:80"];
        assert!(!open.into_iter().any(is_whole));
    }
}
