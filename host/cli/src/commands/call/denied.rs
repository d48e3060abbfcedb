//! Denials of a call, for the person who made it: the command or option that would allow each, and
//! the lines of a manifest.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ManifestEdit, ManifestEntry};
use toolcell_policy::{ANY_FOLDER, Ask, Capability, Denial, Reason, Source, parse};
use toolcell_server::catalog::folder_of;
use toolcell_server::{ManifestFile, shell};

use crate::args::{MANIFEST, manifest_words};
use crate::commands::grant::grant;
use crate::edit::rights;
use crate::sketch;

/// Begins the name of a prompt, where people name what they call.
const PROMPT: &str = "prompt/";

/// Where the rights of a call are defined.
pub enum RightsPlace<'a> {
    /// A manifest, with its current text.
    Manifest { path: &'a Path, text: String },
    /// The command line, which names a component instead of a manifest.
    CommandLine,
}

impl<'a> RightsPlace<'a> {
    /// The place that `--manifest` names.
    pub fn of(path: &'a Path) -> Self {
        if sketch::is_component(path) {
            return Self::CommandLine;
        }
        // Without a text, no command can be checked, so none is shown.
        let text = ManifestFile::read(path).map(|file| file.text().to_owned()).unwrap_or_default();
        Self::Manifest { path, text }
    }
}

/// The hints on what was denied; `""` if nothing was. For a failed call they also mention an empty
/// environment, if nothing else was denied.
pub fn hints(denials: &[Denial], place: &RightsPlace<'_>, failed: bool) -> String {
    let named: Vec<&Denial> = denials.iter().filter(|denial| denial.capability() != Capability::Env).collect();
    let of_env = denials.iter().filter(|denial| failed && named.is_empty() && denial.capability() == Capability::Env);
    let mut told = BTreeSet::new();
    let mut text = String::new();
    // The rule for a connection also allows the lookup before it.
    let is_covered = |denial: &Denial| {
        let name = denial.asked().strip_prefix("lookup ").unwrap_or_default();
        let connects = |other: &&Denial| {
            let socket = matches!(other.capability(), Capability::Tcp | Capability::Udp);
            socket && other.asked().split([' ', ':']).nth(1) == Some(name)
        };
        denial.capability() == Capability::Lookup && named.iter().any(connects)
    };
    for denial in named.iter().copied().filter(|denial| !is_covered(denial)).chain(of_env) {
        let hint = hint(denial, place);
        if told.insert(hint.clone()) {
            text.push_str(&hint);
        }
    }
    text
}

/// A footnote on denials that did not make the tool fail, or that its error does not mention; `""`
/// if there are none. `policy explain` names the line that would allow each.
pub fn footnote(denials: &[Denial], place: &RightsPlace<'_>, tool: &str) -> String {
    let named = denials.iter().filter(|denial| denial.capability() != Capability::Env);
    let asked: BTreeSet<String> = named.map(|denial| sanitize::line(denial.asked()).into_owned()).collect();
    let Some(first) = asked.first() else { return String::new() };
    let more = if asked.len() > 1 { format!(" and {} more", asked.len() - 1) } else { String::new() };
    let explain = match place {
        RightsPlace::Manifest { path, .. } => {
            let tool = explained(denials, tool);
            format!("; see `toolcell policy explain {tool} {}{}`", shell::word(first), manifest_words(path))
        }
        RightsPlace::CommandLine => String::new(),
    };
    format!("\nnote: also denied, and the answer does not speak of it: {first}{more}{explain}\n")
}

/// The name by which `policy explain` finds the tool: prompts have one of their component.
fn explained(denials: &[Denial], tool: &str) -> String {
    let subject = denials.first().map(Denial::subject).filter(|_| tool.starts_with(PROMPT));
    let own = subject.and_then(|subject| Some(format!("{}/{}", subject.component(), subject.tool()?)));
    shell::word(&own.unwrap_or_else(|| tool.to_owned()))
}

/// An answer's text without the denials that the hints repeat.
pub fn untold(text: &str, hints: &str) -> String {
    let told: BTreeSet<&str> = hints.lines().filter(|line| line.starts_with("denied: ")).collect();
    text.lines().filter(|line| !told.contains(line)).flat_map(|line| [line, "\n"]).collect()
}

fn hint(denial: &Denial, place: &RightsPlace<'_>) -> String {
    let mut text = format!("\n{}\n", sanitize::line(&denial.to_string()));
    let advice = match place {
        RightsPlace::Manifest { path, text } => command(denial, path, text),
        RightsPlace::CommandLine => option(denial).map(|option| format!("call it with {option}")),
    };
    if let Some(advice) = &advice {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "hint: {advice}");
    }
    // Without a manifest, its lines only help if no option does the same.
    if advice.is_none() || matches!(place, RightsPlace::Manifest { .. }) {
        for allow in denial.allows() {
            let _ = writeln!(text, "hint: add to [{}]: {}", allow.section(), sanitize::line(allow.line()));
        }
    }
    text
}

/// The right that would allow it, in the form of the command line.
struct WantedRight {
    right: String,
    /// Set if it is a mount, which has its own option.
    mount: Option<WantedMount>,
}

/// The mount that would allow it.
struct WantedMount {
    guest: String,
    /// Relative to the manifest.
    host: String,
    writes: bool,
    /// True if the guest's path is a file: a folder cannot replace it.
    is_file: bool,
}

/// The right; `None` if the tool's own table removes it, if the name or port is unknown, or if a
/// shell would interpret the text.
fn wanted(denial: &Denial) -> Option<WantedRight> {
    let tables = denial.allows();
    if tables.is_empty() || tables.iter().any(|allow| allow.section().contains(".tools.")) {
        return None;
    }
    let mut mount = None;
    let right = match Ask::parse(denial.asked()).ok()? {
        Ask::File { path, .. } => {
            let wanted = wanted_mount(denial, &path)?;
            let verb = if wanted.writes { "write" } else { "read" };
            let right = format!("{verb} {} = {}", wanted.guest, wanted.host);
            mount = Some(wanted);
            right
        }
        Ask::Named(Capability::Config, key) => format!("config {key} = VALUE"),
        Ask::Call(_) | Ask::Named(Capability::Lookup | Capability::Secret | Capability::Env, _) => return None,
        Ask::Http(_) | Ask::Socket(..) | Ask::Named(..) => denial.asked().to_owned(),
    };
    // A guest chose the text, and quotes in it could mislead the reader.
    let is_plain = !right.contains('\'') && sanitize::is_plain_line(&right);
    is_plain.then_some(WantedRight { right, mount })
}

/// The existing read-only mount, or a new one.
fn wanted_mount(denial: &Denial, asked: &str) -> Option<WantedMount> {
    let entry = ManifestEntry::of_line("filesystem", denial.allow()?.line())?;
    let host = entry.text("path")?;
    let host = if host == ANY_FOLDER { format!(".{}", entry.key) } else { host.to_owned() };
    let writes = entry.text("access") == Some("write");
    let is_file = entry.key == asked;
    Some(WantedMount { guest: entry.key, host, writes, is_file })
}

impl WantedMount {
    /// The command that creates the folder of the host, if it is missing; `None` for a missing
    /// file, which no command creates.
    fn made_in(&self, base: &Path) -> Option<String> {
        let host = if base == Path::new(".") { PathBuf::from(&self.host) } else { base.join(&self.host) };
        if host.exists() {
            return Some(String::new());
        }
        let host = host.to_str().filter(|host| !self.is_file && sanitize::is_plain_line(host))?;
        Some(format!("mkdir -p {}", shell::word(host)))
    }
}

/// The command that grants it, if the manifest then has no errors.
fn command(denial: &Denial, path: &Path, text: &str) -> Option<String> {
    let wanted = wanted(denial)?;
    let component = denial.subject().component();
    let entry = rights::read(&wanted.right).ok()?;
    let mut edit = ManifestEdit::of(text).ok()?;
    grant(&mut edit, component, &wanted.right, &entry).ok()?;
    let name = path.to_str().filter(|path| sanitize::is_plain_line(path))?;
    let edited = edit.text();
    parse(&Source { name, text: &edited }).ok()?;
    let make = wanted.mount.as_ref().map_or(Some(String::new()), |mount| mount.made_in(&folder_of(path)))?;
    let make = if make.is_empty() { make } else { format!("{make} && ") };
    let manifest = if name == MANIFEST { String::new() } else { format!(" -m {}", shell::word(name)) };
    Some(format!("{make}toolcell grant {component}{manifest} {}", shell::word(&wanted.right)))
}

/// The option that gives the right to a component on the command line.
fn option(denial: &Denial) -> Option<String> {
    if denial.capability() == Capability::Env {
        return Some("--env NAME=VALUE".to_owned());
    }
    let wanted = wanted(denial)?;
    let Some(mount) = wanted.mount else { return Some(format!("--allow {}", shell::word(&wanted.right))) };
    let make = mount.made_in(Path::new("."))?;
    let make = if make.is_empty() { make } else { format!(" (before: {make})") };
    let given = format!("{}={}", mount.guest, mount.host);
    let access = if mount.writes { ":rw" } else { "" };
    let option = format!("--mount {}{make}", shell::word(&format!("{given}{access}")));
    // Two options for one path are an error.
    let is_there = *denial.reason() == Reason::ReadOnly;
    Some(if is_there { format!("{option} in place of --mount {}", shell::word(&given)) } else { option })
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{FileAccess, Grants};

    use super::*;

    const MANIFEST: &str = "version = 1\n[components.fetch]\nsource = \"fetch.wasm\"\n";

    fn manifest(path: &str) -> RightsPlace<'_> {
        RightsPlace::Manifest { path: Path::new(path), text: MANIFEST.to_owned() }
    }

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
        assert_eq!(hints(&twice, &manifest("toolcell.toml"), false), expected);
        let answer = format!("no answer\n{}\ndenied: lookup example.com\n", twice[0]);
        assert_eq!(untold(&answer, expected), "no answer\ndenied: lookup example.com\n");
        let other = hints(&twice, &manifest("my tools.toml"), false);
        assert!(other.contains("toolcell grant fetch -m 'my tools.toml' 'GET "), "{other}");
        let quoted = hints(&twice, &manifest("it's a clone/toolcell.toml"), false);
        assert!(quoted.contains(r"toolcell grant fetch -m 'it'\''s a clone/toolcell.toml' 'GET "), "{quoted}");
    }

    #[test]
    fn who_has_no_manifest_is_told_the_option_and_no_lines() {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let file = grants.file(FileAccess::Write, "/no such folder/a.txt").unwrap_err();
        let text = hints(&[denied("http://127.0.0.1:8080/x"), file], &RightsPlace::CommandLine, false);
        let advice: Vec<&str> = text.lines().filter(|line| line.starts_with("hint: ")).collect();
        let mount = "'/no such folder=./no such folder:rw' (before: mkdir -p './no such folder')";
        let expected = [
            "hint: call it with --allow 'GET http://127.0.0.1:8080/x'".to_owned(),
            format!("hint: call it with --mount {mount}"),
        ];
        assert_eq!(advice, expected);
        let env = hints(&[grants.no_environment()], &RightsPlace::CommandLine, true);
        assert!(env.ends_with("\nhint: call it with --env NAME=VALUE\n"), "{env}");
        // No command creates a missing file.
        let file = grants.file(FileAccess::Read, "/no-such-file.txt").unwrap_err();
        let text = hints(&[file], &RightsPlace::CommandLine, false);
        assert!(text.contains("hint: add to [") && !text.contains("--mount"), "{text}");
    }

    #[test]
    fn a_text_that_a_shell_would_read_as_something_else_is_in_no_command() {
        for place in [manifest("toolcell.toml"), RightsPlace::CommandLine] {
            let told = hints(&[denied("https://example.com/'$(reboot)'")], &place, false);
            assert!(!told.contains("toolcell grant") && !told.contains("--allow"), "{told}");
            assert!(told.contains("add to [components.fetch.network]"), "{told}");
        }
    }

    #[test]
    fn a_command_that_would_not_work_is_not_told() {
        let denial = [denied("https://example.com/x")];
        for text in ["", "not = toml = 1", "version = 1\n[components.fetch]\nsource = \"f.wasm\"\nnetwork = 1\n"] {
            let place = RightsPlace::Manifest { path: Path::new("toolcell.toml"), text: text.to_owned() };
            let told = hints(&denial, &place, false);
            assert!(!told.contains("toolcell grant") && told.contains("add to ["), "{told}");
        }
    }

    #[test]
    fn what_the_tool_got_along_without_is_one_line_without_a_hint() {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let file = |path: &str| grants.file(FileAccess::Read, path).unwrap_err();
        let place = manifest("toolcell.toml");
        assert_eq!(footnote(&[grants.no_environment()], &place, "fetch"), "");
        let denials = [grants.no_environment(), file("/b"), file("/a"), file("/b"), file("/c")];
        let text = "\nnote: also denied, and the answer does not speak of it: read /a and 2 more";
        let explain = "; see `toolcell policy explain fetch 'read /a'`";
        assert_eq!(footnote(&denials, &place, "fetch"), format!("{text}{explain}\n"));
        assert_eq!(footnote(&denials, &RightsPlace::CommandLine, "fetch"), format!("{text}\n"));
        let explain = "; see `toolcell policy explain fetch 'read /a' --manifest '../a b/c.toml'`";
        assert_eq!(footnote(&denials, &manifest("../a b/c.toml"), "fetch"), format!("{text}{explain}\n"));
        // A prompt has another name for `policy explain`.
        let review = Grants::sealed("fetch", Some("prompt/review"));
        let denial = [review.file(FileAccess::Read, "/a").unwrap_err()];
        assert!(footnote(&denial, &place, "prompt/review").contains("explain fetch/prompt/review 'read /a'`"));
    }

    #[test]
    fn an_empty_environment_is_told_after_a_failure_without_other_denials() {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let env = grants.no_environment();
        let file = grants.file(FileAccess::Read, "/data/a.txt").unwrap_err();
        let place = manifest("toolcell.toml");
        assert_eq!(hints(std::slice::from_ref(&env), &place, false), "");
        assert!(hints(std::slice::from_ref(&env), &place, true).contains("fetch.env]: NAME = "));
        let told = hints(&[env, file], &place, true);
        assert!(told.contains("hint: mkdir -p ./data && toolcell grant fetch 'read /data = ./data'"), "{told}");
        assert!(!told.contains("NAME"), "{told}");
    }
}
