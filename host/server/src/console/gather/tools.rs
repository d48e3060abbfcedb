//! The views of all tools and of one, and the result of a call from the console.
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcell_console::model::{
    Content, LimitRow, LimitUse, Place, Reach, ReachKind, ToolPage, ToolRow, Tools, Unit as ShownUnit,
};
use toolcell_mcp::{CallResult, Catalog as _, ContentKind, ResourceBody, Revision};
use toolcell_policy::{Capability, Grants, Limit, Manifest, ReachRow, Source, Unit, parse};

use super::Sources;
use crate::catalog::Offer;
use crate::catalog::meters::Histogram;
use crate::file::read_bounded;

/// Tools on one page of the list.
const PAGE_TOOLS: usize = 50;

/// Characters of a description in the list.
const SUMMARY_CHARS: usize = 200;

/// The manifest's file as it is now, for the places of grants.
pub struct WrittenManifest {
    name: String,
    text: String,
    manifest: Manifest,
}

impl Sources {
    /// The view of all tools that match.
    pub fn tools(&self, query: &str, page: u64) -> Tools {
        let catalog = self.catalog();
        let quarantined = self.journal.quarantined();
        let wanted = query.trim().to_lowercase();
        let offers: Vec<Offer<'_>> = catalog.offers().filter(|offer| offer.tool().is_tool()).collect();
        let is_match = |offer: &&Offer<'_>| {
            let definition = offer.tool().definition();
            let texts = [definition.name.as_str(), offer.component().name(), &definition.description];
            texts.iter().any(|text| text.to_lowercase().contains(&wanted))
        };
        let matching: Vec<&Offer<'_>> = offers.iter().filter(is_match).collect();
        let pages = matching.len().div_ceil(PAGE_TOOLS).max(1);
        let page = usize::try_from(page).unwrap_or(1).clamp(1, pages);
        let row = |offer: &&Offer<'_>| {
            let is_held = quarantined.iter().any(|held| held.component == offer.component().name());
            tool_row(offer, is_held)
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

    /// The view of one tool; `None` if there is none of this name.
    pub fn tool(&self, name: &str) -> Option<ToolPage> {
        let catalog = self.catalog();
        let offer = catalog.offers().find(|offer| offer.tool().definition().name == name && offer.tool().is_tool())?;
        let index = catalog.tools().tools().iter().position(|tool| tool.definition().name == name)?;
        let (component, limits) = catalog.tool_source(index)?;
        let written = self.written();
        let definition = offer.tool().definition();
        let place = written.as_ref().and_then(|written| {
            let policy = written.manifest.component(component.name())?;
            Some((written, policy.tool_grants(offer.own_name())))
        });
        let confirmed = if offer.is_confirmed() { "a person confirms each call" } else { "none" };
        let called_by = offer.called_by().map_or_else(|| "everybody".to_owned(), |words| words.join("; "));
        let durations = offer.meters().durations();
        Some(ToolPage {
            name: definition.name.clone(),
            title: definition.title.clone().unwrap_or_default(),
            description: definition.description.clone(),
            component: component.name().to_owned(),
            source: component.policy().source().to_string(),
            digest: component.digest().to_owned(),
            signer: (!component.signed().by.is_empty()).then(|| component.signed().by.join(", ")),
            facts: vec![
                ("approval".to_owned(), confirmed.to_owned()),
                ("callers".to_owned(), called_by),
                ("shape".to_owned(), component.shape().as_str().to_owned()),
            ],
            reach: reach(offer.grants(), place.as_ref().map(|(written, grants)| (*written, grants.as_ref()))),
            limits: Limit::ALL.map(|limit| limit_row(limit, limits.get(limit), &offer)).into(),
            measured_calls: durations.read().0.iter().map(|(_, count)| count).sum(),
            proposal: None,
            definition: Revision::V2026_07_28.definition_json(definition),
            input_schema: definition.input_schema.to_string(),
            can_try: self.decide,
            ..ToolPage::default()
        })
    }

    /// The manifest as it is written now; `None` if it cannot be read, or has problems.
    fn written(&self) -> Option<WrittenManifest> {
        let name = self.manifest.display().to_string();
        let bytes = read_bounded(&self.manifest, toolcell_policy::MANIFEST_BYTES_MAX as u64).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let manifest = parse(&Source { name: &name, text: &text }).ok()?.manifest;
        Some(WrittenManifest { name, text, manifest })
    }
}

/// All that these grants reach, with the places of those that the manifest's file has as well.
pub fn reach(grants: &Grants, written: Option<(&WrittenManifest, &Grants)>) -> Vec<Reach> {
    let places = written.map(|(file, grants)| (file, grants.reach()));
    let row = |row: ReachRow| {
        let place = places.as_ref().and_then(|(file, rows)| {
            let same = |other: &&ReachRow| other.capability() == row.capability() && other.text() == row.text();
            let span = rows.iter().find(same)?.span()?;
            let position = Source { name: &file.name, text: &file.text }.position(span.start);
            Some(Place { file: file.name.clone(), line: position.line as u64, key: row.capability().name().to_owned() })
        });
        let kind = match row.capability() {
            Capability::Http | Capability::Tcp | Capability::Udp | Capability::Lookup | Capability::Private => {
                ReachKind::Host
            }
            Capability::Filesystem => ReachKind::Folder,
            Capability::Secret => ReachKind::Secret,
            Capability::KeyValue => ReachKind::State,
            Capability::Env | Capability::Config => ReachKind::Setting,
            Capability::Args | Capability::Stdin => ReachKind::Other,
        };
        Reach { kind, target: row.text().to_owned(), detail: row.capability().name().to_owned(), place }
    };
    grants.reach().into_iter().map(row).collect()
}

fn tool_row(offer: &Offer<'_>, quarantined: bool) -> ToolRow {
    let definition = offer.tool().definition();
    let outcomes: Vec<_> = offer.meters().outcomes().collect();
    let calls: u64 = outcomes.iter().map(|(_, count)| count).sum();
    let good: u64 =
        outcomes.iter().filter(|(outcome, _)| *outcome == toolcell_audit::Outcome::Ok).map(|(_, count)| count).sum();
    ToolRow {
        name: definition.name.clone(),
        summary: definition.description.chars().take(SUMMARY_CHARS).collect(),
        component: offer.component().name().to_owned(),
        reach: counted(&reach(offer.grants(), None)),
        calls,
        errors: calls.saturating_sub(good),
        p50: usage(offer.meters().durations()).map(|used| Duration::from_nanos(used.p50)),
        quarantined,
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

fn limit_row(limit: Limit, value: u64, offer: &Offer<'_>) -> LimitRow {
    let (unit, factor) = match (limit, limit.spec().unit) {
        (Limit::Fuel, _) => (ShownUnit::Fuel, 1),
        (_, Unit::Bytes) => (ShownUnit::Bytes, 1),
        (_, Unit::Millis) => (ShownUnit::Microseconds, 1_000),
        (_, Unit::Count | Unit::Rate) => (ShownUnit::Count, 1),
    };
    let micros = |used: LimitUse| LimitUse { p50: used.p50 / 1_000, p99: used.p99 / 1_000, max: used.max / 1_000 };
    let used = match limit {
        Limit::Deadline => usage(offer.meters().durations()).map(micros),
        Limit::QueueWait => usage(offer.meters().waits()).map(micros),
        Limit::Memory => usage(offer.meters().memory()),
        _ => None,
    };
    let limit_value = if limit.spec().unit == Unit::Rate { offer_rate(value) } else { value.saturating_mul(factor) };
    LimitRow { key: limit.spec().key.to_owned(), unit, limit: limit_value, used, proposed: None, place: None }
}

/// Calls a minute of a rate's number.
fn offer_rate(number: u64) -> u64 {
    let rate = toolcell_policy::quantity::Rate::of_number(number);
    rate.count
}

/// Quantiles of what calls used: the upper bounds of their ranges.
fn usage<const BOUNDS: usize>(histogram: &Histogram<BOUNDS>) -> Option<LimitUse> {
    let (ranges, _) = histogram.read();
    let all: u64 = ranges.iter().map(|(_, count)| count).sum();
    let last = ranges.iter().filter_map(|(bound, _)| *bound).max().unwrap_or_default();
    let at = |percent: u64| {
        let wanted = all.saturating_mul(percent).div_ceil(100);
        let mut seen = 0;
        let reached = ranges.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.and_then(|(bound, _)| *bound).unwrap_or(last)
    };
    (all > 0).then(|| LimitUse { p50: at(50), p99: at(99), max: at(100) })
}

/// The pieces of a result.
pub fn as_content(result: &CallResult) -> Vec<Content> {
    let piece = |content: &toolcell_mcp::Content| match &content.kind {
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
