//! Programs that print secrets: their table and how it is read. Must not hold: when one runs.

use std::time::Duration;

use super::super::values::name_problem;
use crate::diagnostic::Diagnostic;
use crate::grants::SecretProgram;
use crate::limits::{Spec, spec};
use crate::quantity::{DAY, MINUTE, SECOND};
use crate::read::{Entry, Problems};
use crate::table::table;

table! {
    /// A program that prints a secret, and how long its value holds.
    pub(super) SECRET_PROGRAM "SecretProgram" {
        /// The program, by its absolute path, and its arguments. No shell reads them.
        "exec" required: List(&Text), {"minItems": 1, "maxItems": WORDS_MAX,
            "examples": [["/usr/bin/vault", "kv", "get", "-field=key", "secret/weather"]]};
        /// The time for which a value holds. The first request after it runs the program again.
        "ttl": Limit(&TTL), {"examples": ["15m"]};
        /// The time after `ttl` for which the last value serves while the program fails; as long as
        /// `ttl` by default.
        "stale": Optional(&STALE), {"examples": ["1h"]};
        /// The time that one run may take.
        "timeout": Limit(&TIMEOUT), {"examples": ["30s"]};
        /// Variables that the program gets. Besides these it has `HOME`, `PATH` and `LANG` alone.
        "env": Named(&Text), {"maxProperties": VARIABLES_MAX, "examples": [{"VAULT_ADDR": "https://vault.example.com"}]};
        /// Variables of the host that the program gets as well, by their names.
        "inherit": List(&Text), {"maxItems": VARIABLES_MAX, "examples": [["OP_SERVICE_ACCOUNT_TOKEN"]]};
    }
    other names {
        "command" => "exec", "program" => "exec", "args" => "exec", "refresh" => "ttl", "environment" => "env",
        "grace" => "stale", "deadline" => "timeout",
    }
}

/// Words of a program's command.
const WORDS_MAX: usize = 64;

/// The longest of them, in bytes.
const WORD_BYTES_MAX: usize = 4_096;

/// Variables of a program.
const VARIABLES_MAX: usize = 64;

const TTL: Spec = spec! {
    "ttl" Millis { min: SECOND, default: 5 * MINUTE, max: DAY },
    "A key that is replaced is in use within minutes, and a vault is asked a dozen times an hour."
};

const STALE: Spec = spec! {
    "stale" Millis { min: 0, default: 5 * MINUTE, max: 7 * DAY }, "A vault that restarts takes no tool along."
};

const TIMEOUT: Spec = spec! {
    "timeout" Millis { min: 100, default: 10 * SECOND, max: MINUTE },
    "A program that asks a server takes a second; one that waits for a person is not meant."
};

/// The program of this table.
pub(super) fn program(from: &Entry<'_>, problems: &mut Problems) -> Option<SecretProgram> {
    let section = from.table(&SECRET_PROGRAM, problems)?;
    let command = match section.get("exec") {
        Some(entry) => command(&entry, problems),
        None => {
            let problem = from.key_error("manifest::missing", "the program is missing");
            problems.refuse(problem.hint("add exec = [\"/usr/bin/PROGRAM\", \"ARGUMENT\"]"))
        }
    };
    let duration =
        |spec: &'static Spec, problems: &mut Problems| section.number(spec, problems).map(Duration::from_millis);
    let ttl = duration(&TTL, problems).unwrap_or(Duration::from_millis(TTL.default));
    let stale = duration(&STALE, problems).unwrap_or(ttl);
    let timeout = duration(&TIMEOUT, problems).unwrap_or(Duration::from_millis(TIMEOUT.default));
    let entries = section.get("env").map(|entry| entry.entries(VARIABLES_MAX, "grants::too_many", "entries", problems));
    let env = entries.unwrap_or_default().iter().filter_map(|entry| variable(entry, problems)).collect();
    let inherit = section.get("inherit").and_then(|entry| entry.strings(VARIABLES_MAX, problems)).unwrap_or_default();
    for (name, span) in &inherit {
        if let Some(wrong) = name_problem(name) {
            problems.add(Diagnostic::error("grants::name", format!("the name {name:?} {wrong}")).at(span.clone()));
        }
    }
    let inherit = inherit.into_iter().map(|(name, _)| name.to_owned()).collect();
    Some(SecretProgram { command: command?, ttl, stale, timeout, env, inherit })
}

fn command(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let words = entry.strings(WORDS_MAX, problems)?;
    let wrong = |word: &str| word.len() > WORD_BYTES_MAX || word.contains('\0');
    if let Some((_, span)) = words.iter().find(|(word, _)| wrong(word)) {
        let message = format!("a word of exec is longer than {WORD_BYTES_MAX} bytes, or has a zero byte");
        return problems.refuse(Diagnostic::error("grants::source", message).at(span.clone()));
    }
    if !words.first().is_some_and(|(program, _)| program.starts_with('/') && !program.ends_with('/')) {
        let problem = entry.error("grants::source", "exec must begin with the absolute path of a program");
        return problems.refuse(problem.hint("write exec = [\"/usr/bin/PROGRAM\", \"ARGUMENT\"]; no shell reads it"));
    }
    Some(words.into_iter().map(|(word, _)| word.to_owned()).collect())
}

fn variable(entry: &Entry<'_>, problems: &mut Problems) -> Option<(String, String)> {
    if let Some(wrong) = name_problem(entry.key) {
        return problems.refuse(entry.key_error("grants::name", format!("the name {:?} {wrong}", entry.key)));
    }
    let value = entry.string(problems)?;
    if value.len() > WORD_BYTES_MAX || value.contains('\0') {
        let message = format!("{} is longer than {WORD_BYTES_MAX} bytes, or has a zero byte", entry.key);
        return problems.refuse(entry.error("grants::value", message));
    }
    Some((entry.key.to_owned(), value.to_owned()))
}
