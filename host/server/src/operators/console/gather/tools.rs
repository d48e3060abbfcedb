//! The views of all tools and of one, and the result of a call from the console.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcell_console::model::{Content, Place, Reach, ReachKind, ToolPage, ToolRow, Tools};
use toolcell_mcp::{CallResult, ContentKind, ResourceBody, Revision, ServedCatalog as _};
use toolcell_policy::quantity::show_millis;
use toolcell_policy::{Approval, Capability, Grants, ReachRow, Ungranted};

use super::Sources;
use super::limits::{ToolLimits, median_time};
use super::written::WrittenManifest;
use crate::catalog::{CALLED_BY, ToolOffer};
use crate::operators::console::spoken::clipped;

/// Tools on one page of the list.
const PAGE_TOOLS: usize = 50;

/// Characters of a description in the list.
const SUMMARY_CHARS: usize = 200;

impl Sources {
    /// The view of all tools that match.
    pub fn tools(&self, query: &str, page: u64) -> Tools {
        let catalog = self.catalog();
        let quarantined = self.current.journal.quarantined();
        let wanted = query.trim().to_lowercase();
        let offers: Vec<ToolOffer<'_>> = catalog.offers().filter(|offer| offer.tool().is_tool()).collect();
        let is_match = |offer: &&ToolOffer<'_>| {
            let definition = offer.tool().definition();
            let texts = [definition.name.as_str(), offer.component().name(), &definition.description];
            texts.iter().any(|text| text.to_lowercase().contains(&wanted))
        };
        let matching: Vec<&ToolOffer<'_>> = offers.iter().filter(is_match).collect();
        let pages = matching.len().div_ceil(PAGE_TOOLS).max(1);
        let page = usize::try_from(page).unwrap_or(1).clamp(1, pages);
        let row = |offer: &&ToolOffer<'_>| {
            let is_held = quarantined.iter().any(|held| held.component == offer.component().name());
            ToolRow { recording: self.is_recording(offer), ..tool_row(offer, is_held) }
        };
        Tools {
            query: query.to_owned(),
            tools: matching.iter().skip((page - 1) * PAGE_TOOLS).take(PAGE_TOOLS).map(row).collect(),
            matching: matching.len() as u64,
            total: offers.len() as u64,
            page: page as u64,
            pages: pages as u64,
        }
    }

    /// The view of one tool; `None` if it is unknown.
    pub fn tool(&self, name: &str) -> Option<ToolPage> {
        let catalog = self.catalog();
        let offer = catalog.offers().find(|offer| offer.tool().definition().name == name && offer.tool().is_tool())?;
        let index = catalog.tools().tools().iter().position(|tool| tool.definition().name == name)?;
        let (component, limits) = catalog.tool_source(index)?;
        let written = self.written();
        let definition = offer.tool().definition();
        let place = written.as_ref().and_then(|written| Some((written, written.grants(&offer)?)));
        let place = place.as_ref().map(|(written, grants)| (*written, grants.as_ref()));
        let called_by = offer.called_by().map_or_else(|| "everybody".to_owned(), |called_by| callers(&called_by));
        let limits = ToolLimits::of(&offer, limits, written.as_ref());
        Some(ToolPage {
            name: definition.name.clone(),
            title: definition.title.clone().unwrap_or_default(),
            description: definition.description.clone(),
            component: component.name().to_owned(),
            source: component.policy().source().to_string(),
            digest: component.digest().to_owned(),
            signer: (!component.signed().by.is_empty()).then(|| component.signed().by.join(", ")),
            facts: vec![
                ("Approval".to_owned(), confirmed(offer.approval())),
                ("Called by".to_owned(), called_by),
                ("Shape".to_owned(), component.shape().as_str().to_owned()),
            ],
            reach: reach(offer.grants(), place),
            limits: limits.rows(),
            measured: limits.measured(),
            proposal: limits.proposal(),
            has_table: limits.has_table(),
            definition: Revision::V2026_07_28.definition_json(offer.tool().served()),
            input_schema: definition.input_schema.to_string(),
            recording: self.recording_of(&offer),
            can_try: catalog.settings.console.decide,
            ..ToolPage::default()
        })
    }

    /// The current manifest file; `None` if it cannot be read, or has problems.
    pub(super) fn written(&self) -> Option<WrittenManifest> {
        WrittenManifest::read(&self.manifest)
    }
}

/// Who may call a tool, without the words that begin each line.
fn callers(lines: &[String]) -> String {
    let names: Vec<&str> = lines.iter().map(|line| line.strip_prefix(CALLED_BY).unwrap_or(line)).collect();
    names.join("; ")
}

/// Which calls a person confirms, in words.
fn confirmed(approval: Option<Approval>) -> String {
    match approval.map(|approval| approval.remember()) {
        None => "none".to_owned(),
        Some(None) => "a person confirms each call".to_owned(),
        Some(Some(time)) => {
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            format!("a person confirms calls; an answer holds for {}", show_millis(millis))
        }
    }
}

/// Everything that these grants allow, with the places of those that the manifest file also has.
pub fn reach(grants: &Grants, written: Option<(&WrittenManifest, &Grants)>) -> Vec<Reach> {
    let places = written.map(|(file, grants)| (file, grants.reach()));
    let row = |row: ReachRow| {
        let place = places.as_ref().and_then(|(file, rows)| {
            let same = |other: &&ReachRow| other.capability() == row.capability() && other.text() == row.text();
            let span = rows.iter().find(same)?.span()?;
            Some(Place { key: row.capability().name().to_owned(), ..file.place(span) })
        });
        let kind = match row.capability() {
            Capability::Http | Capability::Tcp | Capability::Udp | Capability::Lookup | Capability::Private => {
                ReachKind::Host
            }
            Capability::Filesystem => ReachKind::Folder,
            Capability::Secret => ReachKind::Secret,
            Capability::KeyValue => ReachKind::State,
            Capability::Env | Capability::Config => ReachKind::Setting,
            _ => ReachKind::Other,
        };
        Reach { kind, target: row.text().to_owned(), detail: row.capability().name().to_owned(), place }
    };
    let asked = (grants.ungranted() == Ungranted::Ask).then(|| asking(written));
    grants.reach().into_iter().map(row).chain(asked).collect()
}

/// Requests without a rule about which a person is asked.
fn asking(written: Option<(&WrittenManifest, &Grants)>) -> Reach {
    let place = written.filter(|(_, grants)| grants.ungranted() == Ungranted::Ask);
    Reach {
        kind: ReachKind::Asking,
        target: "hosts that no rule names".to_owned(),
        detail: "a person is asked".to_owned(),
        place: place.and_then(|(file, grants)| {
            Some(Place { key: "ungranted".to_owned(), ..file.place(grants.ungranted_span()?) })
        }),
    }
}

fn tool_row(offer: &ToolOffer<'_>, quarantined: bool) -> ToolRow {
    let definition = offer.tool().definition();
    let outcomes: Vec<_> = offer.meters().outcomes.read().collect();
    let calls: u64 = outcomes.iter().map(|(_, count)| count).sum();
    let errors: u64 = outcomes.iter().filter(|(outcome, _)| outcome.is_error()).map(|(_, count)| count).sum();
    ToolRow {
        name: definition.name.clone(),
        summary: clipped(&definition.description, SUMMARY_CHARS),
        component: offer.component().name().to_owned(),
        reach: counted(&reach(offer.grants(), None)),
        calls,
        errors,
        p50: median_time(&offer.meters().used()),
        quarantined,
        recording: false,
    }
}

/// Counts of things of each kind: `2 hosts, 1 secret`.
fn counted(reach: &[Reach]) -> String {
    let kinds = [
        (ReachKind::Host, "host", "hosts"),
        (ReachKind::Folder, "folder", "folders"),
        (ReachKind::Secret, "secret", "secrets"),
        (ReachKind::State, "state", "state"),
        (ReachKind::Setting, "setting", "settings"),
        (ReachKind::Asking, "question", "questions"),
        (ReachKind::Other, "other", "others"),
    ];
    let count = |kind| reach.iter().filter(|one| one.kind == kind).count();
    let words = kinds.into_iter().map(|(kind, one, many)| match count(kind) {
        0 => String::new(),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The pieces of a result.
pub fn as_content(result: &CallResult) -> Vec<Content> {
    let piece = |content: &toolcell_mcp::ResultContent| match &content.kind {
        ContentKind::Text(text) => Content::Text(text.clone()),
        ContentKind::Image { data, mime_type } => {
            Content::Picture { media_type: mime_type.clone(), base64: STANDARD.encode(data) }
        }
        ContentKind::Audio { data, mime_type } => Content::Other(format!("{mime_type}, {} bytes", data.len())),
        ContentKind::ResourceLink(link) => Content::Resource { uri: link.uri.clone(), text: None },
        ContentKind::EmbeddedResource { uri, body, .. } => Content::Resource {
            uri: uri.clone(),
            text: match body {
                ResourceBody::Text(text) => Some(text.clone()),
                ResourceBody::Blob(_) => None,
            },
        },
    };
    result.content.iter().map(piece).collect()
}
