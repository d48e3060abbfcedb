//! Denials of a call, for the person who made it: the command and the lines that would allow each.
//! Must not hold: decisions.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use toolcell_mcp::sanitize;
use toolcell_policy::{Ask, Capability, Denial, FileAccess};
use toolcell_server::shell;

/// The manifest that commands take by themselves.
const MANIFEST_DEFAULT: &str = "toolcell.toml";

/// The hints on what was denied; `""` if nothing was. A failed call is also told that its
/// environment was empty, if nothing else was denied.
pub fn hints(denials: &[Denial], manifest: &Path, failed: bool) -> String {
    let named: Vec<&Denial> = denials.iter().filter(|denial| denial.capability() != Capability::Env).collect();
    let of_env = denials.iter().filter(|denial| failed && named.is_empty() && denial.capability() == Capability::Env);
    let mut told = BTreeSet::new();
    let mut text = String::new();
    // The rule for a connection allows the look-up before it.
    let is_covered = |denial: &Denial| {
        let name = denial.asked().strip_prefix("lookup ").unwrap_or_default();
        let connects = |other: &&Denial| {
            let socket = matches!(other.capability(), Capability::Tcp | Capability::Udp);
            socket && other.asked().split([' ', ':']).nth(1) == Some(name)
        };
        denial.capability() == Capability::Lookup && named.iter().any(connects)
    };
    for denial in named.iter().copied().filter(|denial| !is_covered(denial)).chain(of_env) {
        let hint = hint(denial, manifest);
        if told.insert(hint.clone()) {
            text.push_str(&hint);
        }
    }
    text
}

/// An answer's text without the denials that the hints after it name again.
pub fn untold(text: &str, hints: &str) -> String {
    let told: BTreeSet<&str> = hints.lines().filter(|line| line.starts_with("denied: ")).collect();
    text.lines().filter(|line| !told.contains(line)).flat_map(|line| [line, "\n"]).collect()
}

fn hint(denial: &Denial, manifest: &Path) -> String {
    let mut text = format!("\n{}\n", sanitize::line(&denial.to_string()));
    if let Some(command) = command(denial, manifest) {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "hint: {command}");
    }
    for allow in denial.allows() {
        let _ = writeln!(text, "hint: add to [{}]: {}", allow.section(), sanitize::line(allow.line()));
    }
    text
}

/// The command that grants it; none where a tool's own table takes it away, or a shell would read
/// the text as something else.
fn command(denial: &Denial, manifest: &Path) -> Option<String> {
    let tables = denial.allows();
    if tables.is_empty() || tables.iter().any(|allow| allow.section().contains(".tools.")) {
        return None;
    }
    let right = match Ask::parse(denial.asked()).ok()? {
        Ask::File { want, path } => {
            let verb = if want == FileAccess::Read { "read" } else { "write" };
            let folder = path.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty());
            let guest = folder.unwrap_or(&path);
            format!("{verb} {guest} = .{guest}")
        }
        Ask::Config(key) => format!("config {key} = VALUE"),
        Ask::Lookup(name) => format!("tcp {name}:PORT"),
        Ask::Secret(_) | Ask::Env(_) => return None,
        Ask::Http(_) | Ask::Tcp(..) | Ask::Udp(..) | Ask::KeyValue => denial.asked().to_owned(),
    };
    let path = manifest.to_str()?;
    // A guest made up what it asked for, and quotes in it are there to mislead who reads it.
    if right.contains('\'') || !sanitize::is_plain_line(&right) || !sanitize::is_plain_line(path) {
        return None;
    }
    let manifest = if path == MANIFEST_DEFAULT { String::new() } else { format!(" -m {}", shell::word(path)) };
    Some(format!("toolcell grant {}{manifest} {}", denial.subject().component(), shell::word(&right)))
}

#[cfg(test)]
mod tests {
    use toolcell_policy::Grants;

    use super::*;

    fn denied(url: &str) -> Denial {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let (scheme, rest) = url.split_once("://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        grants.network().http_request("GET", scheme, host, &format!("/{path}")).unwrap_err()
    }

    #[test]
    fn each_denial_is_told_once_with_the_command_and_every_line() {
        let twice = [denied("http://127.0.0.1:8080/x"), denied("http://127.0.0.1:8080/x")];
        let expected = "
denied: GET http://127.0.0.1:8080/x — no rule of tool \"fetch\" allows it
hint: toolcell grant fetch 'GET http://127.0.0.1:8080/x'
hint: add to [components.fetch.network]: http = [\"GET http://127.0.0.1:8080/x\"]
hint: add to [components.fetch.network]: private = [\"127.0.0.1:8080\"]
";
        assert_eq!(hints(&twice, Path::new("toolcell.toml"), false), expected);
        let answer = format!("no answer\n{}\ndenied: lookup example.com\n", twice[0]);
        assert_eq!(untold(&answer, expected), "no answer\ndenied: lookup example.com\n");
        let other = hints(&twice, Path::new("my tools.toml"), false);
        assert!(other.contains("toolcell grant fetch -m 'my tools.toml' 'GET "), "{other}");
        let quoted = hints(&twice, Path::new("it's a clone/toolcell.toml"), false);
        assert!(quoted.contains(r"toolcell grant fetch -m 'it'\''s a clone/toolcell.toml' 'GET "), "{quoted}");
    }

    #[test]
    fn a_text_that_a_shell_would_read_as_something_else_is_in_no_command() {
        let denial = denied("https://example.com/'$(reboot)'");
        let told = hints(&[denial], Path::new("toolcell.toml"), false);
        assert!(!told.contains("toolcell grant"), "{told}");
        assert!(told.contains("add to [components.fetch.network]"), "{told}");
    }

    #[test]
    fn an_empty_environment_is_told_after_a_failure_without_other_denials() {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let (env, file) = (grants.no_environment(), grants.file(FileAccess::Read, "/data/a.txt").unwrap_err());
        assert_eq!(hints(std::slice::from_ref(&env), Path::new("toolcell.toml"), false), "");
        assert!(hints(std::slice::from_ref(&env), Path::new("toolcell.toml"), true).contains("fetch.env]: NAME = "));
        let told = hints(&[env, file], Path::new("toolcell.toml"), true);
        assert!(told.contains("toolcell grant fetch 'read /data = ./data'"), "{told}");
        assert!(!told.contains("NAME"), "{told}");
    }
}
