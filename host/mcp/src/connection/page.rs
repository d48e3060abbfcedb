//! One page of `resources/list`: bounded in entries and bytes, with the start of the next one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::declared::{DeclaredResource, ResourceEntry};
use crate::frame::{RpcError, scan};
use crate::resources::KeptResource;
use crate::revision::{Revision, push_declared, push_entry, push_resource};

/// Bytes of one page past its first entry. 256 KiB: sixteen of the longest entries, and thousands
/// of common ones.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// Hexadecimal digits of the fingerprint at the start of every cursor.
const MARK_DIGITS: usize = 16;

/// Where a page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PageStart {
    /// At this declared resource.
    Declared(usize),
    /// After this address, among those below this template.
    Below(usize, String),
    /// After the kept resource of this number. Keeping or dropping other resources does not affect
    /// it.
    Kept(u64),
}

/// A page while it is filled.
pub(super) struct ResourcePage {
    /// Fingerprint of the declared resources. A cursor is valid only for the list it came from.
    mark: u64,
    begins: PageStart,
    entries_max: usize,
    entries: usize,
    json: Vec<u8>,
    next: Option<PageStart>,
}

impl ResourcePage {
    /// An empty page that begins at the cursor (its JSON text), or at the start without one.
    ///
    /// # Errors
    /// The cursor is not one of this list.
    pub(super) fn from(
        cursor: Option<&str>,
        declared: &[&DeclaredResource],
        folders: &[&DeclaredResource],
        entries_max: usize,
    ) -> Result<Self, RpcError> {
        let mark = mark_of(declared.iter().chain(folders));
        let begins = match cursor {
            Some(cursor) => PageStart::read(cursor, mark, declared.len(), folders.len())?,
            None => PageStart::Declared(0),
        };
        Ok(Self { mark, begins, entries_max: entries_max.max(1), entries: 0, json: Vec::new(), next: None })
    }

    /// Adds declared resources while there is room.
    pub(super) fn take_declared(&mut self, declared: &[&DeclaredResource], revision: Revision) {
        let PageStart::Declared(first) = &self.begins else { return };
        for (place, declared) in declared.iter().enumerate().skip(*first) {
            if !self.push(|out| push_declared(out, declared, revision.features())) {
                self.next = Some(PageStart::Declared(place));
                return;
            }
        }
    }

    /// Adds resources below these templates while there is room. `below` returns at most the given
    /// number of those after an address.
    pub(super) fn take_entries(
        &mut self,
        folders: &[&DeclaredResource],
        below: impl Fn(&DeclaredResource, Option<&str>, usize) -> Vec<ResourceEntry>,
    ) {
        let (first, mut after) = match (&self.next, &self.begins) {
            (Some(_), _) | (None, PageStart::Kept(_)) => return,
            (None, PageStart::Declared(_)) => (0, None),
            (None, PageStart::Below(place, after)) => (*place, Some(after.clone())),
        };
        for (place, folder) in folders.iter().enumerate().skip(first) {
            // One more than fits shows that there is a next page.
            let most = self.entries_max.saturating_sub(self.entries).saturating_add(1);
            for entry in below(folder, after.as_deref(), most) {
                if !self.push(|out| push_entry(out, &entry)) {
                    self.next = Some(PageStart::Below(place, after.unwrap_or_default()));
                    return;
                }
                after = Some(entry.uri);
            }
            after = None;
        }
    }

    /// The number after which kept resources follow; `None` if the page is full.
    pub(super) const fn kept_after(&self) -> Option<u64> {
        match (&self.next, &self.begins) {
            (Some(_), _) => None,
            (None, PageStart::Declared(_) | PageStart::Below(..)) => Some(0),
            (None, PageStart::Kept(number)) => Some(*number),
        }
    }

    /// The largest number of entries of the page.
    pub(super) const fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Adds kept resources that are not declared, while there is room. `after` returns those kept
    /// after a number.
    pub(super) fn take_kept(
        &mut self,
        is_declared: impl Fn(&str) -> bool,
        after: impl FnOnce(u64) -> Vec<Arc<KeptResource>>,
        revision: Revision,
    ) {
        let Some(first) = self.kept_after() else { return };
        for kept in after(first).iter().filter(|kept| !is_declared(&kept.uri)) {
            if !self.push(|out| push_resource(out, kept, revision.features())) {
                self.next = Some(PageStart::Kept(kept.number.saturating_sub(1)));
                return;
            }
        }
    }

    /// Its entries, separated by commas.
    pub(super) fn json(&self) -> &[u8] {
        &self.json
    }

    /// The cursor of the next page, if there is one.
    pub(super) fn next_cursor(&self) -> Option<String> {
        let mark = self.mark;
        self.next.as_ref().map(|next| match next {
            PageStart::Declared(place) => format!("{mark:016x}d{place:x}"),
            PageStart::Below(place, after) => format!("{mark:016x}b{place:x}:{after}"),
            PageStart::Kept(number) => format!("{mark:016x}k{number:x}"),
        })
    }

    /// Appends an entry. Returns false, and appends nothing, if the page is full. The first entry
    /// always fits.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.entries >= self.entries_max {
            return false;
        }
        let before = self.json.len();
        if before > 0 {
            self.json.push(b',');
        }
        write(&mut self.json);
        if before > 0 && self.json.len() > PAGE_BYTES_MAX {
            self.json.truncate(before);
            return false;
        }
        self.entries += 1;
        true
    }
}

impl PageStart {
    fn read(cursor: &str, mark: u64, declared: usize, folders: usize) -> Result<Self, RpcError> {
        let unknown = || RpcError::params("params.cursor is not one that this server gave out");
        let text = scan::string(cursor).ok_or_else(unknown)?;
        let (known, place) = text.split_at_checked(MARK_DIGITS).ok_or_else(unknown)?;
        let (kind, place) = place.split_at_checked(1).ok_or_else(unknown)?;
        let (place, after) = match place.split_once(':').filter(|_| kind == "b") {
            Some((place, after)) => (place, after),
            None => (place, ""),
        };
        let known = scan::hex(known).ok_or_else(unknown)?;
        let place = scan::hex(place).ok_or_else(unknown)?;
        let place = match kind {
            "b" => Self::Below(usize::try_from(place).map_err(|_| unknown())?, after.to_owned()),
            "d" => Self::Declared(usize::try_from(place).map_err(|_| unknown())?),
            "k" => Self::Kept(place),
            _ => return Err(unknown()),
        };
        if known != mark {
            return Err(RpcError::params(
                "params.cursor is stale: the list of resources has changed; list again without a cursor",
            ));
        }
        match place {
            Self::Declared(place) if place == 0 || place >= declared => Err(unknown()),
            Self::Below(place, _) if place >= folders => Err(unknown()),
            place => Ok(place),
        }
    }
}

fn mark_of<'d>(declared: impl Iterator<Item = &'d &'d DeclaredResource>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for declared in declared {
        (declared.is_template, &declared.uri, &declared.reader).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::{ResourceMore, ResourceReader};

    fn declared(count: usize) -> Vec<DeclaredResource> {
        let one = |place: usize| DeclaredResource {
            uri: format!("a:/{place}"),
            is_template: false,
            name: "name".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            reader: ResourceReader::Tool { tool: "tool".to_owned(), argument: "uri".to_owned() },
            variables: Vec::new(),
            more: ResourceMore::default(),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn pages_follow_one_another_to_the_end() {
        let all = declared(7);
        let all: Vec<&DeclaredResource> = all.iter().collect();
        let mut cursor = None::<String>;
        let mut sizes = Vec::new();
        loop {
            let mut page = ResourcePage::from(cursor.as_deref(), &all, &[], 3).unwrap();
            page.take_declared(&all, Revision::V2026_07_28);
            sizes.push(page.entries);
            let Some(next) = page.next_cursor() else { break };
            cursor = Some(format!("{next:?}"));
        }
        assert_eq!(sizes, [3, 3, 1]);
    }

    #[test]
    fn resources_below_templates_follow_and_each_page_goes_on_behind_the_last_address() {
        let all = declared(2);
        let all: Vec<&DeclaredResource> = all.iter().collect();
        let folders = declared(2);
        let folders: Vec<&DeclaredResource> = folders.iter().collect();
        let below = |folder: &DeclaredResource, after: Option<&str>, most: usize| {
            let entry = |number: usize| ResourceEntry {
                uri: format!("{}/{number}", folder.uri),
                name: number.to_string(),
                mime_type: None,
                size_bytes: 0,
            };
            let behind = |entry: &ResourceEntry| after.is_none_or(|after| entry.uri.as_str() > after);
            (0..4).map(entry).filter(behind).take(most).collect()
        };
        let mut cursor = None::<String>;
        let mut listed = Vec::new();
        loop {
            let mut page = ResourcePage::from(cursor.as_deref(), &all, &folders, 3).unwrap();
            page.take_declared(&all, Revision::V2026_07_28);
            page.take_entries(&folders, below);
            let json = format!("[{}]", String::from_utf8(page.json().to_vec()).unwrap());
            let entries: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
            assert!(entries.len() <= 3);
            listed.extend(entries.into_iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()));
            let Some(next) = page.next_cursor() else { break };
            cursor = Some(serde_json::to_string(&next).unwrap());
        }
        let mut expected = vec!["a:/0".to_owned(), "a:/1".to_owned()];
        expected.extend((0..8).map(|place| format!("a:/{}/{}", place / 4, place % 4)));
        assert_eq!(listed, expected);
    }

    #[test]
    fn a_page_ends_where_its_bytes_do_and_has_one_entry_at_the_least() {
        let mut page = ResourcePage::from(None, &[], &[], 100).unwrap();
        assert!(page.push(|out| out.extend(vec![b'x'; 2 * PAGE_BYTES_MAX])));
        assert!(!page.push(|out| out.push(b'x')));
        assert_eq!(page.json().len(), 2 * PAGE_BYTES_MAX);
    }

    #[test]
    fn a_cursor_of_no_page_is_refused_and_one_of_another_list_is_stale() {
        let all = declared(7);
        let all: Vec<&DeclaredResource> = all.iter().collect();
        let mark = mark_of(all.iter());
        for cursor in [
            "7".to_owned(),
            "\"x\"".to_owned(),
            "\"\"".to_owned(),
            format!("\"{mark:016x}\""),
            format!("\"{mark:016x}d\""),
            format!("\"{mark:016x}d0\""),
            format!("\"{mark:016x}d7\""),
            format!("\"{mark:016x}d+1\""),
            format!("\"{mark:016x}x1\""),
            format!("\"{mark:016x}k1g\""),
            format!("\"{mark:016x}b0:a:/\""),
            format!("\"{mark:016x}k1:a\""),
            format!("\"{mark:016x}k{}\"", "f".repeat(17)),
            "\"+123456789abcdefk1\"".to_owned(),
            "\"ääääääääk1\"".to_owned(),
        ] {
            let error = ResourcePage::from(Some(&cursor), &all, &[], 3).err().unwrap();
            assert_eq!(error.message, "params.cursor is not one that this server gave out", "{cursor}");
        }
        let stale = ResourcePage::from(Some(&format!("\"{:016x}k1\"", mark ^ 1)), &all, &[], 3).err().unwrap();
        assert!(stale.message.contains("stale"), "{}", stale.message);
    }
}
