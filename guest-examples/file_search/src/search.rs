//! Walking a folder and matching the lines of its text files. Holds nothing of how it is shown.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toolkit::Failure;

use crate::pattern::{Pattern, is_meant};

/// The largest file that is read, in bytes: a log of a day, and a tenth of the memory that the manifest gives.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The most files that are looked at in one call: a large project, some seconds.
const FILES_MAX: usize = 20_000;

/// The longest line that is shown, in characters; what is longer is generated, and cut.
const LINE_CHARS_MAX: usize = 400;

/// What to look for, and how much to show.
pub struct Search<'a> {
    pub pattern: Pattern,
    pub name: &'a str,
    pub context: usize,
    pub limit: usize,
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    pub matches: Vec<Hit>,
    /// Files that were read to their end, or until the limit.
    pub files_searched: usize,
    /// Files that are not text, too large, or cannot be read.
    pub files_skipped: usize,
    /// Whether there is more than is shown.
    pub truncated: bool,
}

/// A line that matches, with the lines around it.
#[derive(Debug, Serialize)]
pub struct Hit {
    pub path: String,
    /// From 1.
    pub line: usize,
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

impl Found {
    /// Whether any match comes with lines around it.
    pub fn has_context(&self) -> bool {
        self.matches.iter().any(|hit| !hit.before.is_empty() || !hit.after.is_empty())
    }

    /// How much was found, in a sentence or two.
    pub fn summary(&self) -> String {
        let mut paths: Vec<&str> = self.matches.iter().map(|hit| hit.path.as_str()).collect();
        paths.dedup();
        let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let files = plural(self.files_searched, "file", "files");
        let mut said = match self.matches.len() {
            0 => format!("No match in {files}."),
            count => format!("{} in {} of {files}.", plural(count, "match", "matches"), paths.len()),
        };
        if self.files_skipped > 0 {
            said.push_str(&format!(
                " {} not searched: no text, or too large.",
                plural(self.files_skipped, "file", "files")
            ));
        }
        if self.truncated {
            said.push_str(" There are more: narrow it down, or raise the limit.");
        }
        said
    }
}

impl Search<'_> {
    /// Searches the file or folder at `path`, relative to the root.
    pub fn below(&self, root: &Path, path: &str) -> Result<Found, Failure> {
        let path = path.trim_matches('/');
        if path.split('/').any(|part| part == "..") {
            return Err(Failure::invalid(format!("the path {path:?} must not lead upwards")));
        }
        let start = root.join(path);
        if !start.exists() {
            return Err(Failure::invalid(format!("there is no {path:?} in the folder")));
        }
        let mut found = Found::default();
        for file in files(start) {
            if found.truncated {
                break;
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if is_meant(self.name, &name) {
                self.file(root, &file, &mut found);
            }
        }
        Ok(found)
    }

    fn file(&self, root: &Path, file: &Path, found: &mut Found) {
        let Some(text) = text_of(file) else {
            found.files_skipped += 1;
            return;
        };
        found.files_searched += 1;
        let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| self.pattern.is_in(line)) {
            if found.matches.len() >= self.limit {
                found.truncated = true;
                return;
            }
            let around = |from: usize, to: usize| {
                lines.get(from..to.min(lines.len())).unwrap_or_default().iter().map(|line| cut(line)).collect()
            };
            found.matches.push(Hit {
                path: path.clone(),
                line: number + 1,
                text: cut(line),
                before: around(number.saturating_sub(self.context), number),
                after: around(number + 1, number + 1 + self.context),
            });
        }
    }
}

/// The files below a place, folder by folder, each in the order of names.
fn files(start: PathBuf) -> impl Iterator<Item = PathBuf> {
    let mut waiting = vec![start];
    let mut seen = 0;
    std::iter::from_fn(move || {
        loop {
            let next = waiting.pop()?;
            seen += 1;
            if seen > FILES_MAX {
                return None;
            }
            // A symlink to a folder may lead around in a circle: it is not entered.
            let Ok(about) = fs::symlink_metadata(&next) else { continue };
            if about.is_file() {
                return Some(next);
            }
            if about.is_dir() {
                let mut inside: Vec<PathBuf> =
                    fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
                inside.sort_by(|one, other| other.cmp(one));
                waiting.extend(inside);
            }
        }
    })
}

/// The text of a file, if it is one and not too large.
fn text_of(file: &Path) -> Option<String> {
    let is_small = fs::metadata(file).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
    let bytes = if is_small { fs::read(file).ok()? } else { return None };
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}
