//! The documents of a folder: which there are, and what they say. Holds nothing of cards.

use std::path::{Path, PathBuf};

/// Most documents: what an index takes a minute for.
const DOCUMENTS_MAX: usize = 2_000;

/// The largest document that is read, in bytes: a long book.
const DOCUMENT_BYTES_MAX: u64 = 2 << 20;

/// The deepest folder that is looked into, counted from the mount.
const DEPTH_MAX: usize = 12;

/// The longest path, in bytes: that of a key of the host's store.
const PATH_BYTES_MAX: usize = 512;

/// The ends of names that documents have.
const ENDS: [&str; 2] = [".md", ".txt"];

/// The paths of all documents, in order, and how many were left out.
pub fn paths(root: &Path) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut skipped = 0;
    let mut folders: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 1)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            }
            if !kind.is_file() || !ENDS.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
            match path.filter(|path| path.len() <= PATH_BYTES_MAX && found.len() < DOCUMENTS_MAX) {
                Some(path) => found.push(path),
                None => skipped += 1,
            }
        }
    }
    found.sort();
    (found, skipped)
}

/// The text of a document. `None` where it is not text, too large, or gone.
pub fn read(root: &Path, path: &str) -> Option<String> {
    let file = root.join(path);
    if std::fs::metadata(&file).ok()?.len() > DOCUMENT_BYTES_MAX {
        return None;
    }
    std::fs::read_to_string(file).ok()
}
