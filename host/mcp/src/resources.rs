//! Resources that tools embedded in their results. They are kept for the client that got them, so
//! that it may read them again.
//!
//! The kept resources are bounded in number, bytes and time. They exist in this process only. If
//! several replicas answer a client, a [shelf](toolcell_shared::Shelf) keeps them instead.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use toolcell_shared::Shelved;

use crate::content::{CallResult, ContentAnnotations, ContentKind, ResourceBody, Role};
use crate::frame::{base64, decode_base64};
use crate::lock::lock;
use crate::revision::{Revision, push_resource};

/// Resources that one holder has of one origin. Nobody reads a longer list. Each origin has its own
/// bound, so none displaces another's.
const HOLDER_COUNT_MAX: usize = 256;

/// Most bytes of the resources that one holder has of one origin. 8 MiB: eight results of the
/// default limit `output`.
const HOLDER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Resources of all holders: searching them takes microseconds.
const COUNT_MAX: usize = 4_096;

/// Most bytes of all holders' resources together. 64 MiB: the default memory of one call.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest time that a resource is kept for a caller without a session. 30 min: as long as a
/// session may be idle.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Most bytes of one entry of a list. 16 KiB: twice the longest kind of address in use. A resource
/// with a longer entry is not kept.
const LISTED_BYTES_MAX: usize = 16 * 1024;

/// Memory of a resource besides its parts, in bytes: its entry here, and its allocations.
const ENTRY_BYTES: usize = 256;

/// Memory of a part besides its content, in bytes.
const PART_BYTES: usize = size_of::<Part>() + 64;

/// The holder of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A session, or a process's one client: until it ends.
    Connection(u64),
    /// A recognised caller, over any connection: for a time.
    Caller(Box<str>),
}

/// The holder of a resource, by the names under which the shared store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreHolder {
    /// The caller, whose resources are counted together.
    pub(crate) caller: String,
    /// The caller itself, or one of its sessions: nobody else reads them.
    pub(crate) holder: String,
}

impl StoreHolder {
    /// A session of this caller.
    pub(crate) fn session(caller: &str, session: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("session\n{session}") }
    }

    /// A recognised caller, over any connection.
    pub(crate) fn caller(caller: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("caller\n{caller}") }
    }
}

/// One resource.
#[derive(Debug)]
pub(crate) struct KeptResource {
    holder: Holder,
    /// The component that made it: see [`origin`](crate::ServedCatalog::origin).
    origin: Box<str>,
    pub(crate) uri: String,
    /// The parts of it in one result; most have one.
    pub(crate) parts: Vec<Part>,
    since: Instant,
    /// A number in the order of keeping, by which lists are ordered.
    pub(crate) number: u64,
    /// The size of its content, in bytes, if the content itself is elsewhere.
    listed_bytes: Option<usize>,
}

/// The part of a stored resource that lists need.
#[derive(Serialize, Deserialize)]
struct StoredLabel {
    #[serde(rename = "u")]
    uri: String,
    #[serde(rename = "m")]
    mime_type: Option<String>,
    #[serde(rename = "a")]
    annotations: Option<ContentAnnotations>,
    #[serde(rename = "s")]
    size_bytes: usize,
}

/// A part of a stored resource, as it is read.
#[derive(Serialize, Deserialize)]
struct StoredPart {
    #[serde(rename = "m")]
    mime_type: Option<String>,
    #[serde(rename = "t")]
    text: Option<String>,
    #[serde(rename = "b")]
    base64: Option<String>,
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    meta: Option<String>,
}

/// One piece of a resource.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) mime_type: Option<String>,
    pub(crate) body: ResourceBody,
    pub(crate) annotations: Option<ContentAnnotations>,
    /// Its `_meta`, a JSON object.
    pub(crate) meta: Option<String>,
}

impl KeptResource {
    /// The form in which it is stored.
    pub(crate) fn stored(&self) -> Option<Shelved<'_>> {
        let first = self.parts.first()?;
        let label = StoredLabel {
            uri: self.uri.clone(),
            mime_type: first.mime_type.clone(),
            annotations: first.annotations.clone(),
            size_bytes: self.size_bytes(),
        };
        let parts: Vec<StoredPart> = self.parts.iter().map(Part::stored).collect();
        let label = serde_json::to_vec(&label).ok()?;
        let body = serde_json::to_vec(&parts).ok()?;
        Some(Shelved { origin: &self.origin, uri: &self.uri, label, body })
    }

    /// A stored resource, as far as its label tells.
    pub(crate) fn of_label(number: u64, label: &[u8]) -> Option<Self> {
        let StoredLabel { uri, mime_type, annotations, size_bytes } = serde_json::from_slice(label).ok()?;
        let part = Part { mime_type, body: ResourceBody::Text(String::new()), annotations, meta: None };
        let holder = Holder::Caller(Box::default());
        let origin = Box::default();
        let listed_bytes = Some(size_bytes);
        Some(Self { holder, origin, uri, parts: vec![part], since: Instant::now(), number, listed_bytes })
    }

    /// The size of its content, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        if let Some(bytes) = self.listed_bytes {
            return bytes;
        }
        self.parts.iter().map(|part| part.body.bytes()).sum()
    }

    /// A name for people: the last part of its address.
    pub(crate) fn name(&self) -> &str {
        let end = self.uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if end.is_empty() { &self.uri } else { end }
    }

    /// The total memory, in bytes. The address counts for every part, since each is answered with
    /// it.
    fn cost_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(|part| part.cost_bytes() + self.uri.len()).sum();
        ENTRY_BYTES + self.holder.cost_bytes() + self.origin.len() + self.uri.len() + parts
    }

    /// True if it fits as an entry of a list in any revision.
    fn can_be_listed(&self) -> bool {
        let longest = self.uri.len().max(self.parts.first().map_or(0, Part::label_bytes));
        if longest > LISTED_BYTES_MAX {
            return false;
        }
        let mut entry = Vec::new();
        push_resource(&mut entry, self, Revision::V2026_07_28.features());
        entry.len() <= LISTED_BYTES_MAX
    }

    fn is_over(&self, now: Instant) -> bool {
        matches!(self.holder, Holder::Caller(_)) && now.saturating_duration_since(self.since) > TIME_MAX
    }
}

impl Holder {
    fn cost_bytes(&self) -> usize {
        match self {
            Self::Connection(_) => 0,
            Self::Caller(name) => name.len(),
        }
    }
}

impl Part {
    fn stored(&self) -> StoredPart {
        let mime_type = self.mime_type.clone();
        let meta = self.meta.clone();
        match &self.body {
            ResourceBody::Text(text) => StoredPart { mime_type, text: Some(text.clone()), base64: None, meta },
            ResourceBody::Blob(bytes) => StoredPart { mime_type, text: None, base64: Some(base64(bytes)), meta },
        }
    }

    /// The parts of a stored resource.
    pub(crate) fn all_of_body(body: &[u8]) -> Option<Vec<Self>> {
        let parts: Vec<StoredPart> = serde_json::from_slice(body).ok()?;
        let part = |StoredPart { mime_type, text, base64, meta }| {
            let body = match (text, base64) {
                (Some(text), _) => ResourceBody::Text(text),
                (None, Some(base64)) => ResourceBody::Blob(decode_base64(&base64)?),
                (None, None) => return None,
            };
            Some(Self { mime_type, body, annotations: None, meta })
        };
        parts.into_iter().map(part).collect()
    }

    /// The total memory, in bytes.
    fn cost_bytes(&self) -> usize {
        PART_BYTES + self.body.bytes() + self.label_bytes() + self.meta.as_ref().map_or(0, String::len)
    }

    /// The size of its labels, in bytes.
    fn label_bytes(&self) -> usize {
        let mime_type = self.mime_type.as_ref().map_or(0, String::len);
        let annotations = self.annotations.as_ref().map_or(0, |annotations| {
            let last_modified = annotations.last_modified.as_ref().map_or(0, String::len);
            last_modified + annotations.audience.len() * size_of::<Role>()
        });
        mime_type + annotations
    }
}

/// Annotations in the form that is kept: each audience once.
fn kept(annotations: &ContentAnnotations) -> ContentAnnotations {
    let named = |role: &Role| annotations.audience.contains(role);
    ContentAnnotations {
        audience: [Role::User, Role::Assistant].into_iter().filter(named).collect(),
        priority: annotations.priority,
        last_modified: annotations.last_modified.clone(),
    }
}

/// The kept resources, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct KeptResources(Mutex<HeldResources>);

#[derive(Debug, Default)]
struct HeldResources {
    all: VecDeque<Arc<KeptResource>>,
    bytes: usize,
    /// The number of the newest one.
    last: u64,
}

impl KeptResource {
    /// The resources that a result of this origin embeds or lays aside, as far as they can be kept.
    pub(crate) fn all_of(holder: &Holder, origin: &str, result: &CallResult) -> VecDeque<Self> {
        let now = Instant::now();
        let (mut found, mut places): (Vec<KeptResource>, HashMap<&str, usize>) = Default::default();
        for content in result.content.iter().chain(&result.aside) {
            let ContentKind::EmbeddedResource { uri, mime_type, body } = &content.kind else { continue };
            let mime_type = mime_type.clone();
            let body = body.clone();
            let annotations = content.annotations.as_ref().map(kept);
            let part = Part { mime_type, body, annotations, meta: content.meta_json(uri) };
            match places.get(uri.as_str()).and_then(|place| found.get_mut(*place)) {
                Some(kept) => kept.parts.push(part),
                None => {
                    places.insert(uri, found.len());
                    let holder = holder.clone();
                    let origin = origin.into();
                    let uri = uri.clone();
                    let parts = vec![part];
                    let listed_bytes = None;
                    found.push(Self { holder, origin, uri, parts, since: now, number: 0, listed_bytes });
                }
            }
        }
        // Keeps only the last ones that fit, since earlier ones would be dropped at once.
        let fitting = found.into_iter().filter(|kept| kept.cost_bytes() <= HOLDER_BYTES_MAX && kept.can_be_listed());
        let mut fitting: VecDeque<KeptResource> = fitting.collect();
        fitting.drain(..fitting.len().saturating_sub(HOLDER_COUNT_MAX));
        fitting
    }
}

impl KeptResources {
    /// Keeps the resources that a result of this origin embeds. Each replaces the one that the same
    /// origin embedded under the same address, and none of another origin. Returns true if the set
    /// of the holder's addresses has changed.
    pub(crate) fn keep(&self, holder: &Holder, origin: &str, result: &CallResult) -> bool {
        let before = self.addresses(holder);
        for kept in KeptResource::all_of(holder, origin, result) {
            lock(&self.0).put(kept, Instant::now());
        }
        self.addresses(holder) != before
    }

    fn addresses(&self, holder: &Holder) -> BTreeSet<String> {
        self.after(holder, 0).iter().map(|kept| kept.uri.clone()).collect()
    }

    /// The holder's resources kept after the one of this number, the oldest first; after 0: all.
    /// Addresses with two origins are left out, as in [`find`](Self::find).
    pub(crate) fn after(&self, holder: &Holder, number: u64) -> Vec<Arc<KeptResource>> {
        let mut held = lock(&self.0);
        held.expire(Instant::now());
        let own = || held.all.iter().filter(|kept| kept.holder == *holder);
        let mut origins: HashMap<&str, usize> = HashMap::new();
        own().for_each(|kept| *origins.entry(&kept.uri).or_default() += 1);
        own().filter(|kept| kept.number > number && origins.get(&*kept.uri) == Some(&1)).cloned().collect()
    }

    /// The holder's resource of this address. `None` if two origins embedded one, since the address
    /// is then ambiguous.
    pub(crate) fn find(&self, holder: &Holder, uri: &str) -> Option<Arc<KeptResource>> {
        let mut held = lock(&self.0);
        held.expire(Instant::now());
        let mut found = held.all.iter().filter(|kept| kept.holder == *holder && kept.uri == uri);
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// The holder is gone.
    pub(crate) fn forget(&self, holder: &Holder) {
        lock(&self.0).remove(|kept| kept.holder == *holder);
    }
}

impl HeldResources {
    fn put(&mut self, mut kept: KeptResource, now: Instant) {
        self.expire(now);
        self.last += 1;
        kept.number = self.last;
        self.remove(|other| other.holder == kept.holder && other.uri == kept.uri && other.origin == kept.origin);
        let kept = Arc::new(kept);
        self.bytes += kept.cost_bytes();
        self.all.push_back(Arc::clone(&kept));
        let own = |other: &&Arc<KeptResource>| other.holder == kept.holder && other.origin == kept.origin;
        let mut count = self.all.iter().filter(own).count();
        let mut bytes: usize = self.all.iter().filter(own).map(|kept| kept.cost_bytes()).sum();
        while count > HOLDER_COUNT_MAX || bytes > HOLDER_BYTES_MAX {
            let Some(place) = self.all.iter().position(|other| own(&other)) else { break };
            let cost = self.drop_at(place);
            (count, bytes) = (count - 1, bytes.saturating_sub(cost));
        }
        while self.all.len() > COUNT_MAX || self.bytes > BYTES_MAX {
            self.drop_at(0);
        }
    }

    fn drop_at(&mut self, place: usize) -> usize {
        let cost = self.all.remove(place).map_or(0, |kept| kept.cost_bytes());
        self.bytes = self.bytes.saturating_sub(cost);
        cost
    }

    fn remove(&mut self, is_it: impl Fn(&KeptResource) -> bool) {
        self.all.retain(|kept| !is_it(kept));
        self.bytes = self.all.iter().map(|kept| kept.cost_bytes()).sum();
    }

    fn expire(&mut self, now: Instant) {
        if self.all.iter().any(|kept| kept.is_over(now)) {
            self.remove(|kept| kept.is_over(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ResultContent;

    const ORIGIN: &str = "notes";

    fn embedding(uri: &str, text: String) -> CallResult {
        let body = ResourceBody::Text(text);
        let kind = ContentKind::EmbeddedResource { uri: uri.to_owned(), mime_type: None, body };
        CallResult { content: vec![ResultContent::new(kind)], ..CallResult::default() }
    }

    fn uris(resources: &KeptResources, holder: &Holder) -> Vec<String> {
        resources.after(holder, 0).iter().map(|kept| kept.uri.clone()).collect()
    }

    #[test]
    fn each_holder_has_its_own_and_the_newest_of_an_address() {
        let resources = KeptResources::default();
        let one = Holder::Connection(1);
        let two = Holder::Caller("ann".into());
        resources.keep(&one, ORIGIN, &embedding("a:/x", "old".to_owned()));
        resources.keep(&one, ORIGIN, &embedding("a:/y", "y".to_owned()));
        resources.keep(&two, ORIGIN, &embedding("a:/x", "hers".to_owned()));
        resources.keep(&one, ORIGIN, &embedding("a:/x", "new".to_owned()));
        assert_eq!(uris(&resources, &one), ["a:/y", "a:/x"]);
        assert_eq!(resources.find(&one, "a:/x").unwrap().parts[0].body, ResourceBody::Text("new".to_owned()));
        assert_eq!(resources.find(&two, "a:/x").unwrap().parts[0].body, ResourceBody::Text("hers".to_owned()));
        assert!(resources.find(&two, "a:/y").is_none());
        resources.forget(&one);
        assert_eq!((uris(&resources, &one).len(), uris(&resources, &two).len()), (0, 1));
        resources.forget(&two);
        assert_eq!(lock(&resources.0).bytes, 0);
    }

    #[test]
    fn an_address_of_two_origins_is_neithers_until_one_is_gone() {
        let resources = KeptResources::default();
        let one = Holder::Connection(1);
        let two = Holder::Connection(2);
        resources.keep(&one, "notes", &embedding("a:/x", "true".to_owned()));
        resources.keep(&one, "forger", &embedding("a:/y", "y".to_owned()));
        resources.keep(&two, "forger", &embedding("a:/x", "another holder's".to_owned()));
        assert_eq!(resources.find(&one, "a:/x").unwrap().parts[0].body, ResourceBody::Text("true".to_owned()));
        resources.keep(&one, "forger", &embedding("a:/x", "forged".to_owned()));
        assert!(resources.find(&one, "a:/x").is_none());
        assert_eq!(uris(&resources, &one), ["a:/y"]);
        resources.keep(&one, "notes", &embedding("a:/x", "true, again".to_owned()));
        assert!(resources.find(&one, "a:/x").is_none(), "who comes last has no more right to it");
        // Once the forger's first resource was displaced by its others, the address is unambiguous
        // again.
        let mut many = CallResult::default();
        (0..HOLDER_COUNT_MAX).for_each(|n| many.content.extend(embedding(&format!("b:/{n}"), String::new()).content));
        resources.keep(&one, "forger", &many);
        assert_eq!(resources.find(&one, "a:/x").unwrap().parts[0].body, ResourceBody::Text("true, again".to_owned()));
    }

    #[test]
    fn the_oldest_of_a_holder_makes_room() {
        let resources = KeptResources::default();
        let one = Holder::Connection(1);
        let two = Holder::Connection(2);
        resources.keep(&two, ORIGIN, &embedding("a:/two", "x".to_owned()));
        for number in 0..=HOLDER_COUNT_MAX {
            resources.keep(&one, ORIGIN, &embedding(&format!("a:/{number}"), "x".to_owned()));
        }
        let kept = uris(&resources, &one);
        assert_eq!((kept.len(), kept.first().unwrap().as_str()), (HOLDER_COUNT_MAX, "a:/1"));
        resources.keep(&one, ORIGIN, &embedding("a:/large", "x".repeat(HOLDER_BYTES_MAX - 1_000)));
        assert_eq!(uris(&resources, &one).last().unwrap(), "a:/large");
        assert!(uris(&resources, &one).len() < 5, "its small ones made room");
        resources.keep(&one, ORIGIN, &embedding("a:/larger", "x".repeat(HOLDER_BYTES_MAX)));
        assert!(resources.find(&one, "a:/larger").is_none(), "what is too large is not kept");
        assert_eq!(uris(&resources, &two), ["a:/two"], "nobody else's does");
    }

    /// A result with one resource, whose labels have these lengths.
    fn saying(uri: &str, mime_type: usize, last_modified: usize, roles: usize) -> CallResult {
        let mut result = embedding(uri, String::new());
        let content = result.content.first_mut().unwrap();
        let annotations = ContentAnnotations {
            audience: vec![Role::Assistant; roles],
            priority: None,
            last_modified: Some("9".repeat(last_modified)),
        };
        content.annotations = Some(annotations);
        if let ContentKind::EmbeddedResource { mime_type: said, .. } = &mut content.kind {
            *said = Some("m".repeat(mime_type));
        }
        result
    }

    #[test]
    fn what_no_list_could_say_is_not_kept_whichever_member_is_long() {
        let resources = KeptResources::default();
        let one = Holder::Connection(1);
        let long = LISTED_BYTES_MAX;
        resources.keep(&one, ORIGIN, &saying("a:/mime", long, 0, 0));
        resources.keep(&one, ORIGIN, &saying("a:/modified", 0, long, 0));
        resources.keep(&one, ORIGIN, &saying("a:/both", long / 2, long / 2, 0));
        resources.keep(&one, ORIGIN, &saying(&format!("a:/{}", "u".repeat(long / 2)), 0, 0, 0));
        // Each character takes six bytes when encoded.
        resources.keep(&one, ORIGIN, &saying(&format!("a:{}", "\u{1}".repeat(long / 10)), 0, 0, 0));
        assert_eq!(uris(&resources, &one), [""; 0]);
        assert_eq!(lock(&resources.0).bytes, 0);
        resources.keep(&one, ORIGIN, &saying("a:/roles", long / 4, long / 4, 1_000_000));
        let kept = resources.find(&one, "a:/roles").unwrap();
        assert_eq!(kept.parts[0].annotations.as_ref().unwrap().audience, [Role::Assistant], "said once");
        assert!(lock(&resources.0).bytes >= long / 2);
    }

    #[test]
    fn everything_that_is_kept_counts_also_of_parts_that_no_list_shows() {
        let resources = KeptResources::default();
        let one = Holder::Caller("n".repeat(1_000).into());
        let parts = |mime_type: usize, count: usize| {
            let mut result = embedding("a:/x", String::new());
            for _ in 0..count {
                result.content.extend(saying("a:/x", mime_type, 0, 0).content);
            }
            result
        };
        resources.keep(&one, ORIGIN, &parts(1_000, 100));
        let bytes = lock(&resources.0).bytes;
        assert!((100_000 + 1_000..200_000).contains(&bytes), "{bytes}");
        resources.keep(&one, ORIGIN, &parts(HOLDER_BYTES_MAX / 10, 10));
        assert_eq!(lock(&resources.0).bytes, bytes, "too large in all: what was there stays");
        // Empty parts count as well: their entries take memory.
        resources.keep(&one, ORIGIN, &parts(0, HOLDER_BYTES_MAX / PART_BYTES));
        assert_eq!(lock(&resources.0).bytes, bytes);
        let long = format!("a:/{}", "u".repeat(4_000));
        let mut many = embedding(&long, String::new());
        many.content = vec![many.content[0].clone(); HOLDER_BYTES_MAX / 4_000];
        resources.keep(&one, ORIGIN, &many);
        assert!(resources.find(&one, &long).is_none(), "each part is answered with the address");
    }

    #[test]
    fn what_a_store_keeps_is_listed_and_read_as_it_was() {
        let mut result = saying("a:/x", 9, 9, 3);
        let blob = ResourceBody::Blob(vec![0, 255, 10]);
        for (uri, body) in [("a:/x", blob.clone()), ("a:/y", ResourceBody::Text("é\0\"".to_owned()))] {
            let kind = ContentKind::EmbeddedResource { uri: uri.to_owned(), mime_type: None, body };
            result.content.push(ResultContent::new(kind));
        }
        let all = KeptResource::all_of(&Holder::Connection(1), ORIGIN, &result);
        assert_eq!(all.len(), 2);
        for kept in &all {
            let Shelved { origin, uri, label, body } = kept.stored().unwrap();
            assert_eq!((origin, uri), (ORIGIN, kept.uri.as_str()));
            let listed = KeptResource::of_label(7, &label).unwrap();
            let entry = |kept: &KeptResource| {
                let mut entry = Vec::new();
                push_resource(&mut entry, kept, Revision::V2026_07_28.features());
                String::from_utf8(entry).unwrap()
            };
            assert_eq!((listed.number, entry(&listed)), (7, entry(kept)));
            let parts = Part::all_of_body(&body).unwrap();
            let read = |parts: &[Part]| {
                parts.iter().map(|part| (part.mime_type.clone(), part.body.clone())).collect::<Vec<_>>()
            };
            assert_eq!(read(&parts), read(&kept.parts));
        }
        for wrong in [&b""[..], b"{}", b"[{}]", b"[{\"b\": \"?\"}]", b"7"] {
            assert!(KeptResource::of_label(1, wrong).is_none() && Part::all_of_body(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn of_a_result_with_many_the_last_are_kept() {
        let resources = KeptResources::default();
        let one = Holder::Connection(1);
        let mut result = CallResult::default();
        (0..5_000).for_each(|number| result.content.extend(embedding(&format!("a:/{number}"), String::new()).content));
        resources.keep(&one, ORIGIN, &result);
        let kept = uris(&resources, &one);
        assert_eq!((kept.len(), kept[0].as_str(), kept[255].as_str()), (HOLDER_COUNT_MAX, "a:/4744", "a:/4999"));
        let numbers: Vec<u64> = resources.after(&one, 254).iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, [255, 256]);
    }

    #[test]
    fn all_together_are_bounded() {
        let resources = KeptResources::default();
        for number in 0..12 {
            resources.keep(
                &Holder::Connection(number),
                ORIGIN,
                &embedding("a:/x", "x".repeat(HOLDER_BYTES_MAX - 1_000)),
            );
        }
        assert!(lock(&resources.0).bytes <= BYTES_MAX);
        assert!(uris(&resources, &Holder::Connection(0)).is_empty(), "the oldest made room");
        assert_eq!(uris(&resources, &Holder::Connection(11)), ["a:/x"]);
    }

    #[test]
    fn what_a_caller_holds_is_kept_for_a_time_and_what_a_session_holds_for_its_life() {
        let resources = KeptResources::default();
        let session = Holder::Connection(1);
        let caller = Holder::Caller("ann".into());
        let began = Instant::now();
        resources.keep(&session, ORIGIN, &embedding("a:/x", "x".to_owned()));
        resources.keep(&caller, ORIGIN, &embedding("a:/x", "x".to_owned()));
        let mut held = lock(&resources.0);
        held.expire(began + TIME_MAX);
        assert_eq!(held.all.len(), 2);
        held.expire(Instant::now() + TIME_MAX + Duration::from_secs(60));
        assert_eq!(held.all.iter().map(|kept| &kept.holder).collect::<Vec<_>>(), [&session]);
    }

    #[test]
    fn the_last_part_of_an_address_is_its_name() {
        for (uri, name) in
            [("note:///disk-full", "disk-full"), ("a:/x/", "x"), ("urn:x", "urn:x"), ("/", "/"), ("", "")]
        {
            let resources = KeptResources::default();
            resources.keep(&Holder::Connection(1), ORIGIN, &embedding(uri, String::new()));
            assert_eq!(resources.after(&Holder::Connection(1), 0).first().unwrap().name(), name);
        }
    }
}
