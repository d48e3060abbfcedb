//! Bringing the cards up to date with the folder, one document after another. Holds nothing of the contract.

use std::path::Path;

use serde::Serialize;

use crate::bindings::toolcell::mcp::types::Failure;
use crate::card::Card;
use crate::news::News;
use crate::shelf::Shelf;
use crate::{address, documents};

/// What an index found.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub documents: usize,
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub skipped: usize,
}

impl Outcome {
    /// It in a sentence.
    pub fn sentence(&self) -> String {
        let Self { documents, added, changed, removed, skipped } = self;
        let added = added.len();
        let changed = changed.len();
        let removed = removed.len();
        let skipped = if *skipped == 0 { String::new() } else { format!(" Left out: {skipped}.") };
        format!("{documents} documents have a card: {added} added, {changed} changed, {removed} removed.{skipped}")
    }
}

/// Writes the cards of new and changed documents, and forgets those whose document is gone. Each is told at once, so that
/// anyone who watches reads it while the index goes on. With `again`, unchanged ones are written as well.
pub fn index(root: &Path, shelf: &mut impl Shelf, news: &mut impl News, again: bool) -> Result<Outcome, Failure> {
    let mut known = shelf.all()?;
    let (paths, skipped) = documents::paths(root);
    let mut outcome = Outcome { skipped, ..Outcome::default() };
    for (place, path) in paths.iter().enumerate() {
        news.looks_at(place + 1, paths.len(), path);
        let Some(text) = documents::read(root, path) else {
            outcome.skipped += 1;
            continue;
        };
        outcome.documents += 1;
        let card = Card::of(path, &text);
        let before = known.remove(path);
        if before.as_ref() == Some(&card) && !again {
            continue;
        }
        shelf.put(path, &card)?;
        news.updated(&address::of(path));
        let kind = if before.is_some() { &mut outcome.changed } else { &mut outcome.added };
        kind.push(path.clone());
    }
    for path in known.into_keys() {
        shelf.remove(&path)?;
        news.updated(&address::of(&path));
        outcome.removed.push(path);
    }
    if [&outcome.added, &outcome.changed, &outcome.removed].iter().any(|paths| !paths.is_empty()) {
        news.updated(address::LIST);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::path::PathBuf;

    use super::{Outcome, index};
    use crate::news::News;
    use crate::shelf::memory::MemoryShelf;

    /// A folder of a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("toolcell-library-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("howto")).unwrap();
            Self(path)
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            fs::write(self.0.join(path), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[derive(Default)]
    struct Heard {
        steps: Vec<String>,
        updated: Vec<String>,
    }

    impl News for Heard {
        fn looks_at(&mut self, number: usize, of: usize, path: &str) {
            self.steps.push(format!("{number}/{of} {path}"));
        }

        fn updated(&mut self, uri: &str) {
            self.updated.push(uri.to_owned());
        }
    }

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn what_is_new_changed_and_gone_is_written_and_told_and_nothing_else() {
        let folder = Folder::new("told");
        let mut shelf = MemoryShelf::default();
        folder.write("tea.md", "# Tea\n");
        folder.write("howto/descale it.md", "# Descale\n");
        folder.write("picture.png", b"\x89PNG");
        folder.write(".hidden.md", "# Hidden\n");
        folder.write("broken.txt", b"\xff\xfe");
        let mut heard = Heard::default();
        let first = index(&folder.0, &mut shelf, &mut heard, false).unwrap();
        let added = paths(&["howto/descale it.md", "tea.md"]);
        assert_eq!(first, Outcome { documents: 2, added, skipped: 1, ..Outcome::default() });
        assert_eq!(heard.steps, ["1/3 broken.txt", "2/3 howto/descale it.md", "3/3 tea.md"]);
        assert_eq!(heard.updated, ["library:///howto/descale%20it.md", "library:///tea.md", "library:///"]);
        assert_eq!(first.sentence(), "2 documents have a card: 2 added, 0 changed, 0 removed. Left out: 1.");

        let mut heard = Heard::default();
        let again = index(&folder.0, &mut shelf, &mut heard, false).unwrap();
        assert_eq!((again.documents, heard.updated.len()), (2, 0), "nothing has changed");

        folder.write("tea.md", "# Green tea\n");
        fs::remove_file(folder.0.join("howto/descale it.md")).unwrap();
        let mut heard = Heard::default();
        let third = index(&folder.0, &mut shelf, &mut heard, false).unwrap();
        assert_eq!((third.changed, third.removed), (paths(&["tea.md"]), paths(&["howto/descale it.md"])));
        assert_eq!(heard.updated, ["library:///tea.md", "library:///howto/descale%20it.md", "library:///"]);
        assert_eq!(shelf.0.keys().collect::<Vec<_>>(), ["tea.md"]);

        let mut heard = Heard::default();
        let all = index(&folder.0, &mut shelf, &mut heard, true).unwrap();
        assert_eq!((all.changed, heard.updated.len()), (paths(&["tea.md"]), 2));
    }

    #[test]
    fn a_folder_that_is_empty_has_no_cards() {
        let folder = Folder::new("empty");
        let mut shelf = MemoryShelf::default();
        let outcome = index(&folder.0, &mut shelf, &mut Heard::default(), false).unwrap();
        assert_eq!(outcome, Outcome::default());
    }
}
