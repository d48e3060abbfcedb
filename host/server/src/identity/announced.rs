//! The lines of the tokens' file that other replicas know of, kept over restarts.
//!
//! A replica that starts compares its file with them. A line that went meanwhile is revoked
//! everywhere, and one that came meanwhile makes its token valid again. All others were there
//! before, so they say nothing about what other replicas revoked since.
//!
//! | line | kept here |
//! |---|---|
//! | as before | as one that is known |
//! | went | as one that went, until its token is known to be revoked |
//! | came | as one that is known, once its token is not revoked |
//!
//! The file lies in the folder of states. It has hashes, and no tokens.
use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::files::file::{absolute, read_bounded, write_private};

/// The file, in the folder of states.
const FILE: &str = "tokens.json";

/// Longest file, in bytes: the hashes of a full file of tokens, and of lines that went, are some
/// 1.5 MiB.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Lines that went and wait to be known as revoked: twice what replicas can know.
const WENT_MAX: usize = 8_192;

/// The lines that other replicas know of.
pub(super) struct AnnouncedLines {
    path: PathBuf,
    lines: Mutex<KeptLines>,
    /// Held while the file is written.
    writing: Mutex<()>,
}

struct KeptLines {
    content: AnnouncedFile,
    /// True if the file lacks a change.
    is_changed: bool,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnnouncedFile {
    /// The tokens' file. Lines of another file are not compared with these.
    tokens: String,
    /// Lines that other replicas know of.
    hashes: HashSet<String>,
    /// Lines that went, and whose tokens may not be known as revoked.
    went: HashSet<String>,
}

/// What replicas have yet to know.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unannounced {
    /// Hashes of lines that went.
    pub went: Vec<String>,
    /// Hashes of lines that came, and whose tokens are revoked.
    pub came: Vec<String>,
}

impl AnnouncedLines {
    /// What is kept in this folder of states about this tokens' file. Without it, the present lines
    /// count as known.
    pub(super) fn open(state: &Path, tokens: &Path, present: &HashSet<String>) -> Self {
        let path = state.join(FILE);
        let tokens = absolute(tokens).to_string_lossy().into_owned();
        let kept = read(&path).unwrap_or_else(|problem| {
            tracing::warn!("tokens revoked while no process served here may be valid at other replicas: {problem}");
            None
        });
        let kept = kept.filter(|kept| kept.tokens == tokens);
        let is_changed = kept.is_none();
        let content = kept.unwrap_or_else(|| AnnouncedFile { tokens, hashes: present.clone(), went: HashSet::new() });
        Self { path, lines: Mutex::new(KeptLines { content, is_changed }), writing: Mutex::default() }
    }

    /// Notes lines that went.
    pub(super) fn note_gone(&self, present: &HashSet<String>) {
        let mut lines = self.lines.lock();
        let AnnouncedFile { hashes, went, .. } = &mut lines.content;
        let gone: Vec<String> = hashes.extract_if(|hash| !present.contains(hash)).collect();
        if gone.is_empty() {
            return;
        }
        let dropped = gone.len().saturating_sub(WENT_MAX.saturating_sub(went.len()));
        went.extend(gone.into_iter().skip(dropped));
        lines.is_changed = true;
        if dropped > 0 {
            tracing::warn!("{dropped} revoked tokens may stay valid at other replicas: too many wait");
        }
    }

    /// Compares with the present lines, and with the tokens that replicas know as revoked.
    pub(super) fn compare(&self, present: &HashSet<String>, is_revoked: impl Fn(&str) -> bool) -> Unannounced {
        self.note_gone(present);
        let mut lines = self.lines.lock();
        let KeptLines { content: AnnouncedFile { hashes, went, .. }, is_changed } = &mut *lines;
        let before = went.len();
        went.retain(|hash| !present.contains(hash) && !is_revoked(hash));
        *is_changed |= went.len() != before;
        let unknown = present.iter().filter(|hash| !hashes.contains(*hash)).cloned();
        let (came, valid) = unknown.partition::<Vec<String>, _>(|hash| is_revoked(hash));
        *is_changed |= !valid.is_empty();
        hashes.extend(valid);
        Unannounced { went: went.iter().cloned().collect(), came }
    }

    /// Writes what changed. Blocks for as long as the disk takes.
    pub(super) fn write(&self) {
        let _alone = self.writing.lock();
        let content = {
            let mut lines = self.lines.lock();
            if !std::mem::take(&mut lines.is_changed) {
                return;
            }
            lines.content.clone()
        };
        if let Err(problem) = write(&self.path, &content) {
            self.lines.lock().is_changed = true;
            let shown = self.path.display();
            tracing::warn!(
                "a restart forgets which tokens other replicas know of: {shown} cannot be written: {problem}"
            );
        }
    }
}

/// The content of the file; `None` if there is none.
fn read(path: &Path) -> Result<Option<AnnouncedFile>, String> {
    if path.try_exists().is_ok_and(|exists| !exists) {
        return Ok(None);
    }
    let shown = path.display();
    let bytes = read_bounded(path, FILE_BYTES_MAX).map_err(|problem| format!("{shown} {problem}"))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("{shown} is damaged: {error}"))
}

fn write(path: &Path, content: &AnnouncedFile) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(content)?;
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    write_private(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(hashes: &[&str]) -> HashSet<String> {
        hashes.iter().map(|hash| (*hash).to_owned()).collect()
    }

    #[test]
    fn what_went_and_what_came_is_found_after_a_restart_until_replicas_know_it() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("made/when/needed");
        let tokens = Path::new("tokens.jsonl");
        let start = |present: &[&str]| AnnouncedLines::open(&folder, tokens, &set(present));
        let compared = |lines: &AnnouncedLines, present: &[&str], revoked: &[&str]| {
            let found = lines.compare(&set(present), |hash| revoked.contains(&hash));
            lines.write();
            (found.went.join(" "), found.came.join(" "))
        };
        let texts = |went: &str, came: &str| (went.to_owned(), came.to_owned());
        // Present at the first start, revoked elsewhere: its line has not come.
        let first = start(&["ann", "eve"]);
        assert_eq!(compared(&first, &["ann", "eve"], &["eve"]), texts("", ""));
        // A new line says nothing about others, in this process and the next.
        assert_eq!(compared(&first, &["ann", "eve", "frank"], &["eve"]), texts("", ""));
        assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve"]), texts("", ""));
        // A line goes while no process runs, and the state is away for several starts.
        for _ in 0..3 {
            assert_eq!(compared(&start(&[]), &["eve", "frank"], &["eve"]), texts("ann", ""));
        }
        assert_eq!(compared(&start(&[]), &["eve", "frank"], &["eve", "ann"]), texts("", ""));
        assert_eq!(compared(&start(&[]), &["eve", "frank"], &["eve"]), texts("", ""), "it is known, and forgotten");
        // It comes back, and counts as such until it is valid.
        for _ in 0..3 {
            assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve", "ann"]), texts("", "ann"));
        }
        assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve"]), texts("", ""));
        assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve", "ann"]), texts("", ""), "revoked anew");
        // One comes back before it was known here whether its revocation was written.
        let last = start(&[]);
        last.note_gone(&set(&["eve", "frank"]));
        last.write();
        assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve", "ann"]), texts("", "ann"));
        assert_eq!(compared(&start(&[]), &["ann", "eve", "frank"], &["eve"]), texts("", ""));
    }

    #[test]
    fn lines_of_another_file_and_a_damaged_record_revoke_nothing() {
        let state = tempfile::tempdir().unwrap();
        let open = |tokens: &str| AnnouncedLines::open(state.path(), Path::new(tokens), &set(&["bob"]));
        let first = open("one.jsonl");
        first.compare(&set(&["ann", "bob"]), |_| false);
        first.write();
        assert_eq!(open("one.jsonl").compare(&set(&["bob"]), |_| false).went, ["ann"]);
        assert_eq!(open("other.jsonl").compare(&set(&["bob"]), |_| false), Unannounced::default());
        std::fs::write(state.path().join(FILE), "damaged").unwrap();
        let damaged = open("one.jsonl");
        assert_eq!(damaged.compare(&set(&["bob"]), |_| false), Unannounced::default());
        damaged.write();
        assert_eq!(open("one.jsonl").compare(&set(&[]), |_| false).went, ["bob"], "it is written anew");
    }

    #[test]
    fn lines_that_went_are_bounded_and_fit_the_file() {
        let state = tempfile::tempdir().unwrap();
        // Longer than any line of a tokens' file of 1 MiB has room for.
        let hash = |number: usize| format!("sha256:{number:064}");
        let all: HashSet<String> = (0..20_000).map(hash).collect();
        let open = || AnnouncedLines::open(state.path(), Path::new("tokens.jsonl"), &all);
        let lines = open();
        lines.write();
        assert_eq!(open().compare(&all, |_| false), Unannounced::default(), "all of it is read again");
        assert_eq!(lines.compare(&set(&[]), |_| false).went.len(), WENT_MAX);
        assert_eq!(lines.compare(&set(&[]), |_| false).went.len(), WENT_MAX);
    }
}
