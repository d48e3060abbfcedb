//! Which denials are shown as the possible cause of a call's failure.
//!
//! Language runtimes look for optional files: sources for a stack trace, time zones, settings in a
//! home folder. Such a denial is recorded like any other, but it did not make the tool fail. So a
//! denied file counts as a cause only if the tool gave no answer of its own, or if the answer
//! mentions the file. Any other denial is of something that the tool's own code asked for.
use toolcell_mcp::{CallResult, ContentKind, ResultContent};
use toolcell_policy::{Capability, Denial};
use toolcell_sandbox::{CallFailure, Captured};

/// Phrases in lower case with which languages report that a file was not opened: from `strerror`,
/// exception names and WASI error codes.
const FILE_WORDS: [&str; 23] = [
    "no such file",
    "file not found",
    "filenotfound",
    "\"notfound\"",
    "kind: notfound",
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

/// Words in lower case with which tools report a missing variable.
const ENV_WORDS: [&str; 3] = ["environ", "variable", "getenv"];

/// Bytes of an answer, and of what was printed, that are searched. An error message is shorter.
const WORDS_BYTES_MAX: usize = 64 << 10;

/// The guest's own words: its answer, and what it printed.
pub(super) struct OwnWords {
    /// Without stack traces.
    text: String,
    is_error: bool,
    /// True if the text reports that some file was not opened.
    names_files: bool,
    /// True if it mentions variables, or has a word that looks like the name of one.
    names_variables: bool,
}

impl OwnWords {
    /// For a call that the host ended, or that ended without an answer.
    pub(super) fn of_failure(failure: &CallFailure, printed: &Captured) -> Self {
        let said = match failure {
            // The host's words for a guest that ended without a message.
            CallFailure::Trapped { .. } | CallFailure::Exited { .. } => String::new(),
            other => other.to_string(),
        };
        Self::new(&[&said, &printed.text], true)
    }

    /// For an answer. The first line of a failed program's answer is the host's.
    pub(super) fn of_answer(result: &CallResult, printed: &Captured, is_program: bool) -> Self {
        let text = |content: &ResultContent| match &content.kind {
            ContentKind::Text(text) => text.clone(),
            _ => String::new(),
        };
        let content: String = result.content.iter().map(text).flat_map(|text| [text, "\n".to_owned()]).collect();
        let content = match content.split_once('\n') {
            Some((_, rest)) if is_program && result.is_error => rest,
            _ => content.as_str(),
        };
        let structured = result.structured.as_ref().map_or("", |value| value.get());
        Self::new(&[content, structured, &printed.text], result.is_error)
    }

    fn new(texts: &[&str], is_error: bool) -> Self {
        let cut = texts.iter().map(|text| text.get(..text.floor_char_boundary(WORDS_BYTES_MAX)).unwrap_or_default());
        let lines = cut.flat_map(str::lines).filter(|line| !is_of_stack(line) && !is_of_panic(line));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let lower = text.to_lowercase();
        let mut names = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        Self {
            names_files: FILE_WORDS.iter().any(|words| lower.contains(words)),
            names_variables: ENV_WORDS.iter().any(|words| lower.contains(words)) || names.any(is_variable),
            text,
            is_error,
        }
    }

    /// True if this denial may have caused the call's answer.
    pub(super) fn may_come_of(&self, denial: &Denial) -> bool {
        let is_silent = self.is_error && self.text.trim().is_empty();
        match denial.capability() {
            Capability::Filesystem => is_silent || self.names_files || self.names(denial),
            Capability::Env => is_silent || (self.is_error && self.names_variables),
            _ => true,
        }
    }

    /// True if the text mentions the denied file.
    fn names(&self, denial: &Denial) -> bool {
        let name = denial.asked().rsplit('/').next().unwrap_or_default();
        !name.is_empty() && self.text.contains(name)
    }
}

/// True for a word such as `API_KEY`.
fn is_variable(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    begins && word.bytes().all(is_plain) && word.trim_end_matches('_').contains('_')
}

/// True for a line of a stack trace, as Python (`File "a.py", line 3`), JavaScript and Rust (`at
/// a.js:3:4`), or SpiderMonkey (`name@a.js:3:4`) print it.
fn is_of_stack(line: &str) -> bool {
    let line = line.trim_start();
    let has_place = line.trim_end_matches(')').rsplit(':').take(2).all(|part| part.parse::<u32>().is_ok());
    (line.starts_with("File \"") && line.contains("\", line "))
        || (line.contains(':') && has_place && (line.starts_with("at ") || line.contains('@')))
}

/// True for the note under a panic of Rust, which names a variable in each.
fn is_of_panic(line: &str) -> bool {
    line.starts_with("note: run with `RUST_BACKTRACE=1` environment variable")
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
            (answered("{\"error\":\"NotFound\"}", false), &file("/data/a.txt"), true),
            (answered("ModuleNotFoundError: No module named 'b'", true), &file("/python/a.py"), false),
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
            (
                trapped("panicked at a.rs:1:2:\nnone\nnote: run with `RUST_BACKTRACE=1` environment variable to …"),
                false,
            ),
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
