//! What people get without a call: pages of cards, a prompt about a document, and values while they type. Holds no
//! definitions, and nothing of how cards are made.

use std::path::Path;

use crate::bindings::toolcell::mcp::types::Failure;
use crate::card::words;
use crate::shelf::Shelf;
use crate::{address, documents};

/// Most values that are offered at once; clients show a few.
const VALUES_MAX: usize = 100;

/// What the prompt needs: the card of a document, its text, and the request.
pub struct Study {
    pub uri: String,
    pub card: String,
    pub text: String,
    pub request: String,
}

/// The page at an address: the list of all cards, or one of them.
pub fn page(shelf: &impl Shelf, uri: &str) -> Result<String, Failure> {
    let unknown = || Failure::InvalidInput(format!("there is no card at {uri}; {} lists all", address::LIST));
    let path = address::path(uri).ok_or_else(unknown)?;
    if path.is_empty() {
        return list(shelf);
    }
    Ok(shelf.get(&path)?.ok_or_else(unknown)?.page(&path))
}

fn list(shelf: &impl Shelf) -> Result<String, Failure> {
    let cards = shelf.all()?;
    let mut page = "# Library\n\n".to_owned();
    for (path, card) in &cards {
        page.push_str(&format!("- [{}]({}), {}\n", card.title, address::of(path), words(card.words)));
    }
    if cards.is_empty() {
        page.push_str("There are no cards yet: library_index makes them.\n");
    }
    Ok(page)
}

/// All that a prompt about this document says. `reader` is who it is explained to.
pub fn study(root: &Path, shelf: &impl Shelf, path: &str, reader: Option<&str>) -> Result<Study, Failure> {
    let unknown = || Failure::InvalidInput(format!("there is no card of a document {path:?}"));
    // Only what has a card is read: no path leads elsewhere.
    let card = shelf.get(path)?.ok_or_else(unknown)?;
    let gone = || Failure::Failed(format!("the document {path} is gone; library_index brings the cards up to date"));
    let text = documents::read(root, path).ok_or_else(gone)?;
    let reader = reader.filter(|reader| !reader.trim().is_empty()).unwrap_or("somebody who has not read it");
    let request =
        format!("Explain this document to {reader}, and then ask three questions about it, one after the other.");
    Ok(Study { uri: address::of(path), card: card.page(path), text, request })
}

/// Paths that begin as what is typed, or else hold it. Case does not count.
pub fn complete(shelf: &impl Shelf, typed: &str) -> Result<(Vec<String>, usize), Failure> {
    let typed = typed.to_lowercase();
    let paths: Vec<String> = shelf.all()?.into_keys().collect();
    let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<String> {
        paths.iter().filter(|path| fits(&path.to_lowercase())).cloned().collect()
    };
    let mut found = fitting(&|path| path.starts_with(&typed));
    found.extend(fitting(&|path| !path.starts_with(&typed) && path.contains(&typed)));
    let total = found.len();
    found.truncate(VALUES_MAX);
    Ok((found, total))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::{complete, page, study};
    use crate::bindings::toolcell::mcp::types::Failure;
    use crate::index::index;
    use crate::news::Clients;
    use crate::shelf::memory::MemoryShelf;

    fn sample() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../file_search/sample"))
    }

    fn shelf() -> MemoryShelf {
        let mut shelf = MemoryShelf::default();
        index(sample(), &mut shelf, &mut Clients, false).unwrap();
        shelf
    }

    fn said(failure: Failure) -> String {
        match failure {
            Failure::InvalidInput(said) | Failure::Failed(said) => said,
        }
    }

    #[test]
    fn the_list_and_each_card_have_a_page() {
        let shelf = shelf();
        let list = page(&shelf, "library:///").unwrap();
        assert!(list.starts_with("# Library\n\n- [Coffee](library:///coffee.md), "), "{list}");
        let card = page(&shelf, "library:///howto/descale.md").unwrap();
        assert!(card.starts_with("# Descale the kettle\n\nhowto/descale.md, 26 words\n"), "{card}");
        let empty = page(&MemoryShelf::default(), "library:///").unwrap();
        assert!(empty.ends_with("There are no cards yet: library_index makes them.\n"), "{empty}");
        for unknown in ["library:///milk.md", "library:///%", "note:///tea.md"] {
            let told = said(page(&shelf, unknown).unwrap_err());
            assert_eq!(told, format!("there is no card at {unknown}; library:/// lists all"));
        }
    }

    #[test]
    fn a_prompt_has_the_card_the_text_and_a_request() {
        let shelf = shelf();
        let asked = study(sample(), &shelf, "tea.md", Some("a child")).unwrap();
        assert_eq!(asked.uri, "library:///tea.md");
        assert!(asked.text.starts_with("# Tea\n") && asked.card.contains("tea.md, "));
        assert!(asked.request.starts_with("Explain this document to a child, and then"), "{}", asked.request);
        let plain = study(sample(), &shelf, "tea.md", None).unwrap();
        assert!(plain.request.contains("to somebody who has not read it"), "{}", plain.request);
    }

    #[test]
    fn a_prompt_reads_nothing_that_has_no_card() {
        let shelf = shelf();
        for path in ["../Cargo.toml", "/etc/passwd", "howto", ""] {
            let told = said(study(sample(), &shelf, path, None).err().unwrap());
            assert_eq!(told, format!("there is no card of a document {path:?}"));
        }
        let told = said(study(Path::new("/no/such/folder"), &shelf, "tea.md", None).err().unwrap());
        assert!(told.starts_with("the document tea.md is gone"), "{told}");
    }

    #[test]
    fn values_begin_as_what_is_typed_or_hold_it() {
        let shelf = shelf();
        let paths = |typed: &str| complete(&shelf, typed).unwrap().0;
        assert_eq!(paths(""), ["coffee.md", "howto/descale.md", "shopping.txt", "tea.md"]);
        assert_eq!(paths("TE"), ["tea.md"]);
        assert_eq!(paths("d"), ["coffee.md", "howto/descale.md", "tea.md"]);
        assert_eq!(complete(&shelf, "descale").unwrap(), (vec!["howto/descale.md".to_owned()], 1));
        assert!(paths("milk").is_empty());
    }
}
