//! Which denials of a call are offered as the cause of its failure.
//!
//! Runtimes of languages look for files that they can do without: sources while they print a stack,
//! time zones, settings of a home. Such a denial is recorded like any other, but it did not make
//! the tool fail. So a denied file is a cause only where nothing else answered, or where the answer
//! speaks of it. Whatever else is denied is something that the tool's own code asked for.
use toolcell_mcp::{CallResult, ContentKind, ResultContent};
use toolcell_policy::{Capability, Denial};
use toolcell_sandbox::{CallFailure, Captured};

/// Words by which languages say that a file was not opened, in lower case: of `strerror`, of names
/// of exceptions, and of WASI's own codes.
const FILE_WORDS: [&str; 21] = [
    "no such file",
    "file not found",
    "filenotfound",
    "file does not exist",
    "entity not found",
    "permission denied",
    "permissiondenied",
    "access denied",
    "accessdenied",
    "not permitted",
    "not-permitted",
    "read-only",
    "no-entry",
    "\"access\"",
    "capabilities insufficient",
    "pre-opened",
    "os error",
    "errno",
    "enoent",
    "eacces",
    "eperm",
];

/// Words by which tools say that a variable is missing, in lower case.
const ENV_WORDS: [&str; 3] = ["environ", "variable", "getenv"];

/// What a guest itself said: its answer, and what it printed.
pub(super) struct OwnWords {
    /// As said, without lines of stacks.
    text: String,
    is_error: bool,
}

impl OwnWords {
    /// Of a call that the host ended, or that ended without an answer.
    pub(super) fn of_failure(failure: &CallFailure, printed: &Captured) -> Self {
        let said = match failure {
            // The host's words for the end of a guest that says nothing.
            CallFailure::Trapped { .. } | CallFailure::Exited { .. } => String::new(),
            other => other.to_string(),
        };
        Self { text: without_stacks(&[&said, &printed.text]), is_error: true }
    }

    /// Of an answer. The first line of a failed program's is the host's.
    pub(super) fn of_answer(result: &CallResult, printed: &Captured, is_program: bool) -> Self {
        let text = |content: &ResultContent| match &content.kind {
            ContentKind::Text(text) if is_program && result.is_error => {
                text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
            }
            ContentKind::Text(text) => text.clone(),
            _ => String::new(),
        };
        let content: String = result.content.iter().map(text).flat_map(|text| [text, "\n".to_owned()]).collect();
        let structured = result.structured.as_ref().map_or("", |value| value.get());
        Self { text: without_stacks(&[&content, structured, &printed.text]), is_error: result.is_error }
    }

    /// True if the call's answer may come of this denial.
    pub(super) fn may_come_of(&self, denial: &Denial) -> bool {
        let is_silent = self.is_error && self.text.trim().is_empty();
        match denial.capability() {
            Capability::Filesystem => is_silent || self.speaks_of_file(denial),
            Capability::Env => is_silent || (self.is_error && self.speaks_of_variable()),
            _ => true,
        }
    }

    /// True if it names the file, or says in general that one was not opened.
    fn speaks_of_file(&self, denial: &Denial) -> bool {
        let lower = self.text.to_lowercase();
        if FILE_WORDS.iter().any(|words| lower.contains(words)) {
            return true;
        }
        let name = denial.asked().rsplit('/').next().unwrap_or_default();
        !name.is_empty() && self.text.contains(name)
    }

    /// True if it speaks of variables, or has a word that looks like the name of one.
    fn speaks_of_variable(&self) -> bool {
        let lower = self.text.to_lowercase();
        let is_name = |word: &str| {
            let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
            begins && word.bytes().all(is_plain) && word.trim_end_matches('_').contains('_')
        };
        let mut names = self.text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        ENV_WORDS.iter().any(|words| lower.contains(words)) || names.any(is_name)
    }
}

/// The texts without the lines of stacks, which name files whatever went wrong.
fn without_stacks(texts: &[&str]) -> String {
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter(|line| !is_of_stack(line)).flat_map(|line| [line, "\n"]).collect()
}

/// True for a line as Python (`File "a.py", line 3`), JavaScript and Rust (`at a.js:3:4`), or
/// SpiderMonkey (`name@a.js:3:4`) print them.
fn is_of_stack(line: &str) -> bool {
    let line = line.trim_start();
    let has_place = line.trim_end_matches(')').rsplit(':').take(2).all(|part| part.parse::<u32>().is_ok());
    (line.starts_with("File \"") && line.contains("\", line "))
        || (line.contains(':') && has_place && (line.starts_with("at ") || line.contains('@')))
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{FileAccess, Grants};

    use super::*;

    fn file(path: &str) -> Denial {
        Grants::sealed("tool", Some("tool")).file(FileAccess::Read, path).unwrap_err()
    }

    fn printed(text: &str) -> Captured {
        Captured { text: text.to_owned(), dropped_bytes: 0 }
    }

    fn trapped(said: &str) -> OwnWords {
        let failure = CallFailure::Trapped { reason: "unreachable".to_owned(), detail: String::new() };
        OwnWords::of_failure(&failure, &printed(said))
    }

    fn answered(text: &str, is_error: bool) -> OwnWords {
        let result = CallResult { is_error, ..CallResult::error(text) };
        OwnWords::of_answer(&result, &printed(""), false)
    }

    #[test]
    fn a_denied_file_is_a_cause_where_nothing_else_answered_or_the_answer_speaks_of_it() {
        let source = file("/python/app.py");
        let python = "Traceback (most recent call last):\n  File \"/python/app.py\", line 3, in run\n    1 / 0\n\
                      ZeroDivisionError: division by zero\n";
        let javascript = "TypeError: city is undefined\n    at run (/src/app.js:3:4)\nrun@/src/app.js:3:4\n";
        for (words, denial, is_cause) in [
            (trapped(""), &source, true),
            (trapped(python), &source, false),
            (trapped(javascript), &file("/src/app.js"), false),
            (answered("{\"error\":\"expected a number\"}", true), &source, false),
            (answered("FileNotFoundError: [Errno 44] '/data/a.txt'", true), &file("/data/a.txt"), true),
            (answered("cannot open a.txt", true), &file("/data/a.txt"), true),
            (answered("unknown time zone Europe/Berlin", true), &file("/usr/share/zoneinfo/Europe/Berlin"), true),
            (answered("{\"error\":\"no-entry\"}", false), &file("/data/a.txt"), true),
            (answered("0 files found", false), &file("/data"), false),
            (answered("it is noon", false), &file("/etc/localtime"), false),
            (answered("", true), &file("/"), true),
            (answered("anything", true), &file("/"), false),
        ] {
            assert_eq!(words.may_come_of(denial), is_cause, "{:?}: {denial}", words.text);
        }
    }

    #[test]
    fn what_the_host_says_of_a_failed_program_is_not_its_own() {
        let of = |text: &str| OwnWords::of_answer(&CallResult::error(text), &printed(""), true);
        let denial = file("/data/a.txt");
        assert!(of("the program ended with exit code 1").may_come_of(&denial));
        assert!(!of("the program ended with exit code 1\n\nstandard error:\nbad flag").may_come_of(&denial));
        assert!(of("the program ended with exit code 1\n\nstandard error:\na.txt?").may_come_of(&denial));
    }

    #[test]
    fn an_empty_environment_is_a_cause_where_the_error_may_speak_of_a_variable() {
        let denial = Grants::sealed("tool", Some("tool")).no_environment();
        for (words, is_cause) in [
            (trapped(""), true),
            (trapped("KeyError: 'API_KEY'"), true),
            (answered("environment variable not found", true), true),
            (answered("3_4 is no number, X_ neither", true), false),
            (answered("division by zero", true), false),
            (answered("API_KEY", false), false),
        ] {
            assert_eq!(words.may_come_of(&denial), is_cause, "{:?}", words.text);
        }
    }

    #[test]
    fn what_only_a_tools_own_code_asks_for_is_always_a_cause() {
        let grants = Grants::sealed("fetch", Some("fetch"));
        let denial = grants.network().http_request("GET", "https", "example.com", "/x").unwrap_err();
        assert!(answered("no answer", true).may_come_of(&denial) && answered("fine", false).may_come_of(&denial));
    }
}
