//! `toolcell policy suggest`: turns denied attempts of tools into manifest lines that would allow
//! them.
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{ATTEMPTS_MAX, Attempt, Diagnostic, Source, parse, suggest};
use toolcell_server::file::plain;
use toolcell_server::{ManifestFile, VALUE_MISSING};

use crate::args::SuggestArgs;
use crate::edit::{self, apply_or_report};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Bytes of one line: more than an audit record may have.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Failed tries of adding lines. Each parses the whole manifest; this is enough to find sixty bad
/// attempts among a hundred thousand.
const TRIES_MAX: usize = 1_000;

/// Times that the manifest is loaded without the lines that had problems before. Most problems are
/// found at once; calls are checked once there are no others.
const LOADS_MAX: usize = 4;

/// Left out attempts that are named individually.
const LEFT_OUT_SHOWN: usize = 20;

/// Fields of a line of an audit or an observation.
#[derive(Deserialize)]
struct DeniedLine {
    event: Option<String>,
    component: Option<String>,
    asked: Option<String>,
    allow: Option<String>,
}

/// Prints the tables.
pub fn run(args: &SuggestArgs) -> anyhow::Result<Exit> {
    // The command line requires it.
    let Some(file) = &args.file else { return Ok(Exit::Usage) };
    let hint = "name a file that `toolcell serve --observe` or `--audit` wrote";
    let attempts = read(file).map_err(|problem| Failure::at_fault(format!("{} {problem}", file.display()), hint))?;
    if attempts.is_empty() {
        terminal::eprint("nothing was denied: the manifest allows all that was tried\n");
        return Ok(Exit::Done);
    }
    let attempts: Vec<Attempt> = attempts.into_iter().collect();
    if args.apply {
        return apply(args, &attempts);
    }
    terminal::print(&suggest(&attempts))?;
    Ok(Exit::Done)
}

/// Merges the tables into the manifest. Attempts that it cannot express, or that get no table, are
/// left out and reported.
fn apply(args: &SuggestArgs, attempts: &[Attempt]) -> anyhow::Result<Exit> {
    let unfit = |problem| Failure::at_fault(problem, "name the manifest with --manifest, or merge the tables by hand");
    let file = ManifestFile::read(&args.manifest.manifest).map_err(unfit)?;
    let fitting = loading(&file, Fitting::of(&file, attempts).map_err(unfit)?)?;
    let unproposed = suggest(&fitting.taken);
    let remarks = unproposed.lines().filter_map(|line| line.strip_prefix("# "));
    for remark in remarks.filter(|remark| remark.contains(": nothing allows ")) {
        terminal::warning(&format!("not written: {remark}"));
    }
    for (attempt, problem) in fitting.left_out.iter().take(LEFT_OUT_SHOWN) {
        terminal::warning(&format!("not written: {}: {}: {problem}", attempt.component(), attempt.asked()));
    }
    if let Some(more) = fitting.left_out.len().checked_sub(LEFT_OUT_SHOWN).filter(|more| *more > 0) {
        terminal::warning(&format!("not written: {more} more like these"));
    }
    apply_or_report(&file, &fitting.text, args.consent.consent())
}

/// Leaves out attempts whose lines have a problem once the manifest is loaded, such as that no tool
/// has a name or that a folder is missing. What would not load for another reason is refused.
fn loading(file: &ManifestFile, mut fitting: FittingLines) -> anyhow::Result<FittingLines> {
    for _ in 0..LOADS_MAX {
        let mut problems = edit::new_problems(file, &fitting.text)?;
        if problems.is_empty() {
            return Ok(fitting);
        }
        // The server may have the value.
        problems.retain(|problem| problem.code() != VALUE_MISSING);
        if !fitting.leave_out(&problems) {
            break;
        }
        let again = Fitting::of(file, &fitting.taken).map_err(|problem| Failure::at_fault(problem, ""))?;
        fitting.text = again.text;
    }
    edit::loads(file, &fitting.text)?;
    Ok(fitting)
}

/// Sorts attempts by whether the manifest can have their lines.
struct Fitting<'a> {
    original: &'a ManifestFile,
    taken: Vec<Attempt>,
    /// The manifest with these lines.
    text: String,
    left_out: Vec<(Attempt, String)>,
    tries: usize,
}

impl<'a> Fitting<'a> {
    fn of(original: &'a ManifestFile, attempts: &[Attempt]) -> Result<FittingLines, String> {
        let text = original.text();
        let mut edit = ManifestEdit::of(text).map_err(|problem| format!("{}: {problem}", original.name()))?;
        if parse(&Source { name: original.name(), text }).is_err() {
            // Problems of the manifest itself are shown with the result.
            edit.merge(&suggest(attempts))?;
            return Ok(FittingLines { taken: attempts.to_vec(), text: edit.text(), left_out: Vec::new() });
        }
        let text = text.to_owned();
        let mut fitting = Fitting { original, taken: Vec::new(), text, left_out: Vec::new(), tries: 0 };
        fitting.take(attempts);
        let Fitting { taken, text, left_out, .. } = fitting;
        Ok(FittingLines { taken, text, left_out })
    }

    /// Adds these attempts: all of them, or else those of each half that fit.
    fn take(&mut self, attempts: &[Attempt]) {
        let problem = match self.with(attempts) {
            Ok(text) => {
                self.text = text;
                self.taken.extend_from_slice(attempts);
                return;
            }
            Err(problem) => problem,
        };
        self.tries += 1;
        match attempts {
            [] => {}
            _ if self.tries > TRIES_MAX => {
                self.left_out.extend(attempts.iter().map(|attempt| (attempt.clone(), problem.clone())));
            }
            [attempt] => self.left_out.push((attempt.clone(), problem)),
            many => {
                let (first, second) = many.split_at(many.len() / 2);
                self.take(first);
                self.take(second);
            }
        }
    }

    /// The manifest with the lines added so far, and with these.
    fn with(&self, attempts: &[Attempt]) -> Result<String, String> {
        let all = [&self.taken, attempts].concat();
        let mut edit = ManifestEdit::of(self.original.text())?;
        edit.merge(&suggest(&all))?;
        let text = edit.text();
        match parse(&Source { name: self.original.name(), text: &text }) {
            Ok(_) => Ok(text),
            Err(problems) => {
                let problem = problems.first().map(|problem| problem.message().to_owned());
                Err(problem.unwrap_or_else(|| "the result would not be a manifest".to_owned()))
            }
        }
    }
}

/// The outcome of [`Fitting`].
struct FittingLines {
    taken: Vec<Attempt>,
    text: String,
    left_out: Vec<(Attempt, String)>,
}

impl FittingLines {
    /// Leaves out attempts whose lines have the text that one of these problems is about. False if
    /// there are none.
    fn leave_out(&mut self, problems: &[Diagnostic]) -> bool {
        let before = self.left_out.len();
        let mut kept = Vec::new();
        for attempt in std::mem::take(&mut self.taken) {
            let lines = suggest(std::slice::from_ref(&attempt));
            let of_its_lines = |problem: &&Diagnostic| {
                let text = problem.span().and_then(|span| self.text.get(span.clone())).unwrap_or_default();
                let text = text.trim_matches(['"', '\'']);
                !text.is_empty() && lines.contains(&format!("\"{text}\""))
            };
            match problems.iter().find(of_its_lines).map(|problem| problem.message().to_owned()) {
                Some(problem) => self.left_out.push((attempt, problem)),
                None => kept.push(attempt),
            }
        }
        self.taken = kept;
        self.left_out.len() > before
    }
}

/// Denied attempts, each once and sorted, so that the same file gives the same suggestion.
fn read(path: &Path) -> Result<BTreeSet<Attempt>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {}", plain(&error));
    let mut reader = BufReader::new(std::fs::File::open(path).map_err(cannot)?);
    let mut attempts = BTreeSet::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(cannot)?;
        if read == 0 || attempts.len() >= ATTEMPTS_MAX {
            break;
        }
        // A line without its end was cut off by a crash.
        if line.last() != Some(&b'\n') && read as u64 != LINE_BYTES_MAX {
            break;
        }
        let record: DeniedLine =
            serde_json::from_slice(&line).map_err(|_| format!("is not JSON Lines: look at line {number}"))?;
        let DeniedLine { event: Some(event), component: Some(component), asked: Some(asked), allow } = record else {
            continue;
        };
        if event == "call.denied" {
            attempts.insert(Attempt::new(&component, &asked, allow.as_deref()));
        }
    }
    Ok(attempts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_whose_lines_have_a_problem_is_left_out_with_the_reason() {
        let text = "version = 1\n[components.a]\ncalls = [\"one\", 'two']\n";
        let attempts = ["call one", "call two", "env TWO"].map(|asked| Attempt::new("a", asked, None));
        let mut fitting = FittingLines { taken: attempts.to_vec(), text: text.to_owned(), left_out: Vec::new() };
        let at = text.find("'two'").unwrap();
        let problem = Diagnostic::error("calls::unknown_tool", "there is no tool \"two\"").at(at..at + 5);
        assert!(fitting.leave_out(&[problem]));
        let asked: Vec<&str> = fitting.taken.iter().map(Attempt::asked).collect();
        assert_eq!(asked, ["call one", "env TWO"]);
        assert_eq!(fitting.left_out, [(attempts[1].clone(), "there is no tool \"two\"".to_owned())]);
        assert!(!fitting.leave_out(&[Diagnostic::error("calls::circle", "elsewhere")]));
    }
}
