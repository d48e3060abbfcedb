//! The methods of skills: their list, one entry, and folders (ext-skills, "Listing Skills",
//! "Getting a Skill", "Reading Directories").

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::ConnectionParts;
use super::dispatch::RequestExchange;
use super::resources::CacheScope;
use crate::declared::{FolderChild, Skill};
use crate::frame::{Object, RpcError, echo, json_text, push_list};
use crate::host::{Host, ServedCatalog as _};
use crate::tool::{ToolList, first_of};

/// Bytes of one page past its first entry. 256 KiB, as of a page of resources. One entry is never
/// split: with 512 files it has about 100 KiB.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// An entry of a list: its address, and its JSON.
type SkillEntry<'e> = (&'e str, &'e str);

/// A page of a list: its entries, and the cursor of the next one.
struct SkillPage {
    places: Range<usize>,
    next_cursor: Option<String>,
}

impl<H: Host> ConnectionParts<H> {
    /// Lists one page of the skills that the caller sees.
    pub(super) fn list_skills(&self, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let seen: Vec<&Skill> = catalog.skills().iter().filter(|skill| skill.is_seen_with(tools)).collect();
        let entries: Vec<SkillEntry<'_>> = seen.iter().map(|skill| (skill.uri.as_str(), skill.json.as_str())).collect();
        let page = self.page_of("skills", &entries, exchange.request.params.cursor())?;
        let scope = CacheScope::of(catalog.tells_callers_apart());
        exchange.send(self.cacheable(exchange.id(), exchange.peer.revision, scope, |result| {
            push_entries(result.key("skills"), entries.get(page.places).unwrap_or_default());
            result.text_if("nextCursor", page.next_cursor.as_deref());
        }))
    }

    pub(super) fn get_skill(&self, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let uri = exchange.request.params.string("uri")?;
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let skill = catalog.skills().iter().find(|skill| skill.uri == uri && skill.is_seen_with(tools));
        let skill = skill.ok_or_else(|| RpcError::params(format!("No skill is served at {}", echo(&uri))))?;
        let scope = CacheScope::of(catalog.tells_callers_apart());
        exchange.send(self.cacheable(exchange.id(), exchange.peer.revision, scope, |result| {
            result.raw("skill", &skill.json);
        }))
    }

    /// Lists the direct entries of a folder, as far as the caller sees them.
    pub(super) fn read_directory(&self, exchange: &RequestExchange<'_, H>) -> Result<(), RpcError> {
        let uri = exchange.request.params.string("uri")?;
        let catalog = exchange.catalog.get(&*self.server.host);
        let view = catalog.view(&self.caller);
        let tools = view.as_deref().unwrap_or_else(|| catalog.tools());
        let children = catalog.folder(&uri, tools);
        let children =
            children.ok_or_else(|| RpcError::params(format!("{} is not a folder that is served", echo(&uri))))?;
        let entries: Vec<String> = children.iter().map(FolderChild::json).collect();
        let uris = children.iter().map(|child| child.uri.as_str());
        let entries: Vec<SkillEntry<'_>> = uris.zip(entries.iter().map(String::as_str)).collect();
        let page = self.page_of("resources", &entries, exchange.request.params.cursor())?;
        let typed = exchange.peer.revision.features().typed_results;
        exchange.send(self.complete_frame(exchange.id(), typed, |result| {
            push_entries(result.key("resources"), entries.get(page.places).unwrap_or_default());
            result.text_if("nextCursor", page.next_cursor.as_deref());
        }))
    }

    /// The page at a cursor, bounded in entries and bytes. Any replica with the same list accepts
    /// the cursor.
    fn page_of(&self, list: &str, entries: &[SkillEntry<'_>], cursor: Option<&str>) -> Result<SkillPage, RpcError> {
        let mut hasher = DefaultHasher::new();
        // Only the order of addresses matters: a changed entry does not invalidate cursors.
        entries.iter().for_each(|(uri, _)| uri.hash(&mut hasher));
        let mark = hasher.finish();
        let first = match cursor {
            Some(cursor) => first_of(cursor, mark, list, entries.len())?,
            None => 0,
        };
        let mut bytes = 0_usize;
        let fits = |(place, (_, json)): &(usize, &SkillEntry<'_>)| {
            bytes = bytes.saturating_add(json.len());
            *place == 0 || (*place < self.server.options.page_size && bytes <= PAGE_BYTES_MAX)
        };
        let taken = entries.iter().skip(first).enumerate().take_while(fits).count();
        let last = first + taken;
        let next_cursor = (last < entries.len()).then(|| format!("{mark:016x}{last:x}"));
        Ok(SkillPage { places: first..last, next_cursor })
    }
}

impl Skill {
    /// True if a caller with these entries sees it.
    fn is_seen_with(&self, tools: &ToolList) -> bool {
        tools.find(&self.entry).is_some()
    }
}

impl FolderChild {
    /// Its entry (2026-07-28, `Resource`).
    fn json(&self) -> String {
        json_text(|out| {
            let mut entry = Object::open(out);
            entry.text("uri", &self.uri);
            entry.text("name", &self.name);
            entry.text_if("description", self.description.as_deref());
            entry.text("mimeType", &self.mime_type);
            if let Some(size) = self.size_bytes {
                entry.json("size", &size);
            }
        })
    }
}

fn push_entries(out: &mut Vec<u8>, entries: &[SkillEntry<'_>]) {
    push_list(out, entries, |out, (_, json)| out.extend_from_slice(json.as_bytes()));
}
