//! Words of commands in hints, ready to paste into a POSIX shell, and the manifest that they are
//! about.
use std::borrow::Cow;

use crate::diagnostic::visible;

/// The manifest that commands use where none is named.
pub const MANIFEST: &str = "toolcell.toml";

/// The name of a manifest that is not in a file.
pub const COMMAND_LINE: &str = "(command line)";

/// The commands that take `--manifest`, in the order of the alphabet.
pub const COMMANDS_OF_MANIFEST: &[&str] = &[
    "add",
    "approve",
    "audit show",
    "audit tail",
    "audit verify",
    "bench",
    "bundle",
    "calibrate",
    "call",
    "check",
    "client-config",
    "compile",
    "console",
    "dev",
    "diff",
    "grant",
    "inspect",
    "list",
    "lock",
    "log-level",
    "logins list",
    "logins revoke",
    "logins set",
    "outdated",
    "policy explain",
    "policy fuzz",
    "policy suggest",
    "policy test",
    "pull",
    "push",
    "reload",
    "remove",
    "rename",
    "replay",
    "revoke",
    "search",
    "secret list",
    "secret login",
    "secret logout",
    "secret remove",
    "secret set",
    "serve",
    "status",
    "store export",
    "store gc",
    "store import",
    "store ls",
    "store verify",
    "token list",
    "token new",
    "token revoke",
    "top",
    "update",
    "usage",
];

/// The program, as hints write it.
const PROGRAM: &str = "toolcell ";

/// Precedes a command that is the rest of the text.
const RUN: &str = "run: ";

/// Options of a command that says itself what it is about.
const SAYS_ITSELF: [&str; 3] = [" --manifest", " -m ", " --help"];

/// One word of a shell command: unchanged if possible, otherwise quoted.
#[must_use]
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@%+,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Quotes a text, so that a shell takes it as one word.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// ` --manifest FILE` for a command that a person is told to type; empty where commands use that
/// file anyway, or where it is not a file.
#[must_use]
pub fn manifest_words(manifest: &str) -> String {
    match ["", MANIFEST, COMMAND_LINE].contains(&manifest) {
        true => String::new(),
        false => format!(" --manifest {}", quoted(&visible(manifest))),
    }
}

/// A text for people, in which each command names this manifest that takes one and names none. A
/// command is what stands in back quotes, or what follows `run: ` up to the end.
///
/// ```
/// use toolcell_policy::shell::of_manifest;
///
/// let hint = of_manifest("`toolcell pull` fetches it", "../team/tools.toml");
/// assert_eq!(hint, "`toolcell pull --manifest '../team/tools.toml'` fetches it");
/// ```
#[must_use]
pub fn of_manifest<'t>(text: &'t str, manifest: &str) -> Cow<'t, str> {
    let words = manifest_words(manifest);
    if words.is_empty() || !text.contains(PROGRAM) {
        return Cow::Borrowed(text);
    }
    if text.contains('`') {
        let parts = text.split('`').enumerate().map(|(place, part)| match place % 2 == 1 && lacks_manifest(part) {
            true => Cow::Owned(format!("{part}{words}")),
            false => Cow::Borrowed(part),
        });
        return Cow::Owned(parts.collect::<Vec<_>>().join("`"));
    }
    match text.rsplit_once(RUN).is_some_and(|(_, command)| lacks_manifest(command)) {
        true => Cow::Owned(format!("{text}{words}")),
        false => Cow::Borrowed(text),
    }
}

/// True for a command that takes a manifest, and names none.
fn lacks_manifest(command: &str) -> bool {
    let Some(rest) = command.strip_prefix(PROGRAM) else { return false };
    let takes =
        |known: &&str| rest.strip_prefix(*known).is_some_and(|after| after.is_empty() || after.starts_with(' '));
    COMMANDS_OF_MANIFEST.iter().any(takes) && !SAYS_ITSELF.iter().any(|option| rest.contains(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_names_a_manifest_that_it_would_not_find() {
        let named = |text: &str| of_manifest(text, "../it's a/t.toml").into_owned();
        let words = r" --manifest '../it'\''s a/t.toml'";
        for (text, expected) in [
            ("`toolcell lock` writes it", format!("`toolcell lock{words}` writes it")),
            (
                "`toolcell diff`, `toolcell approve NAME`",
                format!("`toolcell diff{words}`, `toolcell approve NAME{words}`"),
            ),
            ("`toolcell token new NAME`", format!("`toolcell token new NAME{words}`")),
            (
                "nobody: is logged in; run: toolcell secret login a",
                format!("nobody: is logged in; run: toolcell secret login a{words}"),
            ),
        ] {
            assert_eq!(named(text), expected);
            assert_eq!(named(&expected), expected, "once is enough");
            for found in [MANIFEST, COMMAND_LINE, ""] {
                assert_eq!(of_manifest(text, found), text);
            }
        }
        for text in [
            "`toolcell new words` writes one",
            "toolcell inspect shows what a component imports",
            "`toolcell lock -m x.toml`",
            "`toolcell locks`",
            "toolcell token",
            "the toolcell lock",
            "name a file of tables, run: toolcell policy test --help",
        ] {
            assert_eq!(named(text), text);
        }
    }

    #[test]
    fn a_shell_reads_each_word_as_the_text_that_it_was() {
        for (text, written) in [
            ("/srv/tools/toolcell.toml", "/srv/tools/toolcell.toml"),
            ("it's a clone", r"'it'\''s a clone'"),
            ("$(id)`id`\"\\", "'$(id)`id`\"\\'"),
            ("~/tools", "'~/tools'"),
            ("größe", "'größe'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), written);
            for word in [word(text), quoted(text)] {
                let printed = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
                assert_eq!(String::from_utf8(printed.unwrap().stdout).unwrap(), text, "{word}");
            }
        }
    }
}
