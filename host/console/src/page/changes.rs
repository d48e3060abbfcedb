//! The view of changes.

use maud::{Markup, html};

use crate::bounds::{CELL_ITEMS, DIFFERENCES_BYTES, HIDDEN_BYTES, REACH_ROWS, ROWS};
use crate::diff::{self, Effort};
use crate::figure::moment;
use crate::frame::{form, id};
use crate::model::{
    Changes, DefinitionChange, Frame, Generation, GenerationOutcome, Quarantined, RecordedCalls, SourceState,
};
use crate::routes;
use crate::table::{Row, beyond, column, figures, table};
use crate::text::{block, line, name};

/// Ids of the parts that events replace.
const QUARANTINE: &str = "changes-quarantine";
const GENERATIONS: &str = "changes-generations";

pub fn view(frame: &Frame, changes: &Changes) -> Markup {
    html! {
        h1 { "Changes" }
        (quarantine(frame, changes))
        (generations(changes))
    }
}

/// The space that is left for the differences of one page.
struct PageRoom {
    bytes: usize,
    effort: Effort,
}

impl PageRoom {
    /// The markup, if it fits.
    fn holds(&mut self, markup: Markup) -> Option<Markup> {
        let rest = self.bytes.checked_sub(markup.0.len());
        self.bytes = rest.unwrap_or(0);
        rest.map(|_| markup)
    }
}

pub fn quarantine(frame: &Frame, changes: &Changes) -> Markup {
    let mut room = PageRoom { bytes: DIFFERENCES_BYTES, effort: Effort::default() };
    html! {
        section #(QUARANTINE) aria-label="Quarantine" {
            @if changes.quarantined.is_empty() {
                p.empty {
                    @if changes.locked { "Nothing is in quarantine: all that is served is pinned." }
                    @else {
                        "Nothing is in quarantine. Without " code { "--locked" }
                        ", changes are served at once, unless others signed than are pinned."
                    }
                }
            }
            @for component in changes.quarantined.iter().take(ROWS) { (card(frame, component, &mut room)) }
            (beyond(changes.quarantined.len()))
        }
    }
}

pub fn generations(changes: &Changes) -> Markup {
    let columns = [figures("Generation"), column("Time (UTC)"), column("Outcome"), column("Summary")];
    html! {
        section #(GENERATIONS) aria-label="Generations" {
            (table("Generations", &columns, changes.generations.iter().map(generation), "None is known."))
        }
    }
}

fn generation(generation: &Generation) -> Row {
    let (class, name) = match generation.outcome {
        GenerationOutcome::Started => ("off", "started"),
        GenerationOutcome::Replaced => ("good", "replaced"),
        GenerationOutcome::Refused => ("bad", "refused"),
        GenerationOutcome::Approved => ("good", "approved"),
        GenerationOutcome::Quarantined => ("ask", "quarantined"),
    };
    Row::of(vec![
        html! { (generation.number) },
        moment(generation.at),
        html! { span class={ "chip " (class) } { (name) } },
        html! {
            ul.plain { @for text in generation.summary.iter().take(CELL_ITEMS) { li { (line(text)) } } }
            @if generation.summary.len() > CELL_ITEMS { span.more { (generation.summary.len() - CELL_ITEMS) " more" } }
        },
    ])
}

fn card(frame: &Frame, waiting: &Quarantined, room: &mut PageRoom) -> Markup {
    html! {
        article.card id=(id("quarantined", &waiting.component)) {
            h2 { span.chip.ask { "quarantined" } " " (name(&waiting.component)) }
            p.dim {
                "Since " (moment(waiting.since)) " UTC. "
                @if waiting.old.is_some() { "The old version serves on." } @else { "None of it serves." }
            }
            (bytes(waiting))
            (differences(waiting, room))
            (read(frame, waiting))
            (recorded(frame, waiting, room))
            (approve(frame, waiting))
        }
    }
}

/// Everything that differs, as far as the page has room for it.
fn differences(waiting: &Quarantined, room: &mut PageRoom) -> Markup {
    if room.bytes == 0 {
        return full();
    }
    let lists = html! {
        @if !waiting.grants.is_empty() { (grants(waiting)) }
        @if !waiting.other.is_empty() {
            h3 { "Also" }
            ul { @for text in waiting.other.iter().take(REACH_ROWS) { li { (line(text)) } } }
            (left(waiting.other.len(), waiting.beyond.other))
        }
    };
    let Some(lists) = room.holds(lists) else { return full() };
    let shown = waiting.definitions.iter().take(REACH_ROWS).map_while(|change| {
        let shown = definition(change, &mut room.effort);
        room.holds(shown)
    });
    let shown: Vec<Markup> = shown.collect();
    let more = waiting.definitions.len() - shown.len() + waiting.beyond.definitions;
    html! {
        (lists)
        @if !shown.is_empty() || more > 0 {
            h3 { "Definitions" }
            @for change in &shown { (change) }
            (left(REACH_ROWS, more))
        }
    }
}

fn full() -> Markup {
    html! { p.warn { "The page is full. Use " code { "toolcell diff" } " for what differs here." } }
}

fn bytes(waiting: &Quarantined) -> Markup {
    let old = waiting.old.as_ref();
    let new = &waiting.new;
    let row = |what: &str, state: &SourceState| {
        Row::of(vec![html! { (what) }, html! { span.mono { (line(&state.digest)) } }, signed(&state.signed)])
    };
    let columns = [column("Version"), column("Digest"), column("Signed by")];
    html! {
        (table("Bytes and signers", &columns, old.map(|old| row("serves", old)).into_iter().chain([row("waits", new)]), ""))
        @if waiting.other_signers { p.warn { "It is not signed as the lock pins it." } }
        @if old.is_some_and(|old| old.digest == new.digest) { p.dim { "The bytes are the same." } }
    }
}

fn signed(lines: &[String]) -> Markup {
    html! {
        @if lines.is_empty() { span.dim { "no verified signer" } }
        @else { ul.plain { @for text in lines.iter().take(CELL_ITEMS) { li { (line(text)) } } } }
        @if lines.len() > CELL_ITEMS { span.more { (lines.len() - CELL_ITEMS) " more" } }
    }
}

fn grants(waiting: &Quarantined) -> Markup {
    html! {
        h3 { "Grants" }
        ul.grants {
            @for grant in waiting.grants.iter().take(REACH_ROWS) {
                li {
                    @if grant.added { ins { span.sign { "+ " span.hidden { "more: " } } (line(&grant.text)) } }
                    @else { del { span.sign { "− " span.hidden { "less: " } } (line(&grant.text)) } }
                }
            }
        }
        (left(waiting.grants.len(), waiting.beyond.grants))
    }
}

fn definition(change: &DefinitionChange, effort: &mut Effort) -> Markup {
    let what = match (change.old.is_empty(), change.new.is_empty()) {
        (true, false) => "new",
        (false, true) => "gone",
        _ => "changed",
    };
    html! {
        h4 { (name(&change.tool)) ", " (name(&change.part)) " " span.chip.off { (what) } }
        (diff::block(&change.old, &change.new, change.bytes_left, "Difference of the definition", effort))
    }
}

/// The fields that name a version; `None` if nothing can be decided about it here.
fn version<'w>(frame: &Frame, waiting: &'w Quarantined) -> Option<[(&'static str, &'w str); 2]> {
    let hidden = [(routes::COMPONENT, waiting.component.as_str()), (routes::DIGEST, waiting.new.digest.as_str())];
    let is_decided = frame.decide && hidden.iter().all(|(_, value)| value.len() <= HIDDEN_BYTES);
    is_decided.then_some(hidden)
}

fn read(frame: &Frame, waiting: &Quarantined) -> Markup {
    let hidden = version(frame, waiting).filter(|_| waiting.is_unread);
    let button = html! {
        button id=(id("read", &waiting.component)) { "Read it" span.hidden { " " (name(&waiting.component)) } }
    };
    html! {
        @if let Some(hidden) = hidden {
            (form(frame, routes::READ, &hidden, &button))
            p.dim { "Reading compiles the waiting version, to show its tools and grants next to the pinned ones. None of it serves." }
        }
    }
}

/// How recorded calls end with the version that waits, or the button that runs them.
fn recorded(frame: &Frame, waiting: &Quarantined, room: &mut PageRoom) -> Markup {
    let hidden = version(frame, waiting);
    let button = html! {
        button id=(id("hold", &waiting.component)) {
            "Hold against recorded calls" span.hidden { " of " (name(&waiting.component)) }
        }
    };
    let offered = html! {
        @if let Some(hidden) = hidden {
            (form(frame, routes::HOLD, &hidden, &button))
            p.dim {
                "This runs the last recorded calls with the waiting version, 200 at most and for some 20 seconds. "
                "It reaches nothing but the recordings."
            }
        }
    };
    html! {
        @match &waiting.recorded {
            RecordedCalls::Unavailable => {}
            RecordedCalls::Offered => { (offered) }
            RecordedCalls::Running => { h3 { "Recorded calls" } p role="status" { "They are being run." } }
            RecordedCalls::Ran { lines, at } => {
                h3 { "Recorded calls" }
                p.dim { "Run at " (moment(*at)) " UTC with the waiting version." }
                @match room.holds(outcome(lines)) { Some(shown) => (shown), None => (full()) }
            }
            RecordedCalls::Failed { problem } => {
                h3 { "Recorded calls" }
                p.warn { "They were not run: " (line(problem)) }
                (offered)
            }
        }
    }
}

fn outcome(lines: &str) -> Markup {
    html! {
        pre.block tabindex="0" role="region" aria-label="Recorded calls with the waiting version" { (block(lines)) }
    }
}

fn approve(frame: &Frame, waiting: &Quarantined) -> Markup {
    let hidden = version(frame, waiting);
    let fields = html! {
        @if waiting.other_signers { (other_signers(waiting)) }
        button.main { "Approve this digest" }
    };
    html! {
        @if let Some(hidden) = hidden {
            details id=(id("approve", &waiting.component)) {
                summary { "Approve…" }
                p { "This pins the waiting version in the lock, and serves it:" }
                p.mono { (line(&waiting.new.digest)) }
                (form(frame, routes::APPROVE, &hidden, &fields))
            }
        }
    }
}

/// The box that has to be ticked where a version is not signed as the lock pins it.
fn other_signers(waiting: &Quarantined) -> Markup {
    let id = id("signers", &waiting.component);
    html! {
        div.line {
            input id=(id) name=(routes::SIGNERS) value=(routes::OTHER_SIGNERS) type="checkbox" required;
            label for=(id) { "Also pin these signers in place of those that the lock has." }
        }
    }
}

/// A remark that items of a list are left out: those past the bound, and `beyond` more.
fn left(items: usize, beyond: usize) -> Markup {
    let left = items.saturating_sub(REACH_ROWS) + beyond;
    html! { @if left > 0 { p.warn { (left) " more are not shown. Use " code { "toolcell diff" } "." } } }
}

#[cfg(test)]
mod tests {
    use crate::model::{
        Beyond, Changes, DefinitionChange, Frame, GrantChange, Moment, Quarantined, RecordedCalls, SourceState,
    };

    use super::quarantine;

    fn changes(waiting: Quarantined, count: usize) -> Changes {
        Changes { quarantined: vec![waiting; count], ..Changes::default() }
    }

    fn deciding() -> Frame {
        Frame { decide: true, ..Frame::default() }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let change = DefinitionChange { new: "x".into(), bytes_left: 7, ..DefinitionChange::default() };
        let waiting = Quarantined {
            definitions: vec![change; 50],
            grants: vec![GrantChange::default(); 3],
            beyond: Beyond { definitions: 5, grants: 2, other: 0 },
            ..Quarantined::default()
        };
        let shown = quarantine(&deciding(), &changes(waiting, 1)).0;
        assert_eq!(shown.matches("<pre ").count(), 40);
        assert!(shown.contains("15 more are not shown") && shown.contains("2 more are not shown"), "{shown}");
        assert!(shown.contains("7 bytes of them are not compared here"));
    }

    #[test]
    fn hostile_changes_of_hundreds_of_components_are_a_bounded_page_with_every_form() {
        let old = "\u{202e}<a ".repeat(4_000);
        let new = "\u{202e}<b ".repeat(4_000);
        let change = DefinitionChange { old, new, ..DefinitionChange::default() };
        let waiting = Quarantined {
            component: "c".into(),
            definitions: vec![change; 40],
            other: vec!["<\u{1b}".repeat(1_000); 40],
            ..Quarantined::default()
        };
        let shown = quarantine(&deciding(), &changes(waiting, 500)).0;
        assert!(shown.len() < 1_500_000, "{}", shown.len());
        assert_eq!(shown.matches("action=\"/changes/approve\"").count(), 200);
        assert!(shown.contains("The page is full."), "{}", shown.len());
    }

    #[test]
    fn recorded_calls_are_run_by_a_button_and_their_outcome_takes_its_place() {
        let waiting = |recorded| Quarantined { component: "c".into(), recorded, ..Quarantined::default() };
        let shown = |recorded| quarantine(&deciding(), &changes(waiting(recorded), 1)).0;
        assert!(!shown(RecordedCalls::Unavailable).contains("ecorded calls"));
        let offered = shown(RecordedCalls::Offered);
        assert!(offered.contains("action=\"/changes/hold\"") && offered.contains("Hold against recorded calls"));
        let read_only = quarantine(&Frame::default(), &changes(waiting(RecordedCalls::Offered), 1)).0;
        assert!(!read_only.contains("Hold against"));
        let running = shown(RecordedCalls::Running);
        assert!(running.contains("They are being run.") && !running.contains("/changes/hold"));
        let ran = shown(RecordedCalls::Ran { lines: "1 of 2 <calls>".into(), at: Moment::default() });
        assert!(ran.contains("1 of 2 &lt;calls&gt;") && !ran.contains("/changes/hold"), "{ran}");
        let failed = shown(RecordedCalls::Failed { problem: "no room".into() });
        assert!(failed.contains("/changes/hold"), "it can be tried again: {failed}");
        assert!(failed.contains("They were not run: <bdi>no room</bdi>"), "{failed}");
    }

    #[test]
    fn outcomes_of_hundreds_of_components_are_a_bounded_page() {
        let recorded = RecordedCalls::Ran { lines: "\u{202e}<".repeat(100_000), at: Moment::default() };
        let waiting = Quarantined { component: "c".into(), recorded, ..Quarantined::default() };
        let shown = quarantine(&deciding(), &changes(waiting, 200)).0;
        assert!(shown.len() < 1_500_000, "{}", shown.len());
    }

    #[test]
    fn other_signers_are_approved_with_a_box_of_their_own() {
        let signed = |by: &str| SourceState { digest: "sha256:00".into(), signed: vec![by.to_owned()] };
        let waiting = |other_signers| Quarantined {
            component: "c".into(),
            old: Some(signed("ann")),
            new: signed("bob"),
            other_signers,
            ..Quarantined::default()
        };
        let shown = quarantine(&deciding(), &changes(waiting(true), 1)).0;
        let field = "<input id=\"signers-c\" name=\"signers\" value=\"other\" type=\"checkbox\" required>";
        for part in
            ["<bdi>ann</bdi>", "<bdi>bob</bdi>", "not signed as the lock pins it", "The bytes are the same.", field]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let shown = quarantine(&deciding(), &changes(waiting(false), 1)).0;
        assert!(!shown.contains("checkbox") && !shown.contains("not signed as"), "{shown}");
    }
}
