//! The part of a tool's page that has its next calls recorded.

use maud::{Markup, html};

use crate::figure::moment;
use crate::frame::form;
use crate::model::{Frame, RecordingState, ToolPage};
use crate::routes;
use crate::text::{block, line};

/// The number that the form proposes.
const CALLS_PROPOSED: u32 = 5;

pub fn view(frame: &Frame, tool: &ToolPage) -> Markup {
    let hidden = [(routes::TOOL, tool.name.as_str())];
    html! {
        @match &tool.recording {
            RecordingState::Unavailable { reason, lines } => {
                p.empty { (line(reason)) }
                @if let Some(lines) = lines {
                    p { "It lacks these lines:" }
                    pre.block tabindex="0" role="region" aria-label="Lines that the manifest lacks" { (block(lines)) }
                }
            }
            RecordingState::Offered { calls_max, has_replicas } => {
                p.dim {
                    "A recording has the arguments of its call, its answer, and all that the component read. "
                    "It is a file in the manifest's folder of recordings, and counts like any other there. "
                    @if *has_replicas { "Calls of this process count: other replicas record none of theirs." }
                }
                (form(frame, routes::RECORD, &hidden, &offer(*calls_max)))
            }
            RecordingState::Running { kept, calls, by, began } => {
                p {
                    span.chip.ask { "recording" } " "
                    (calls.saturating_sub(*kept)) " of " (calls) " calls are left. "
                    (line(by)) " began it at " (moment(*began)) " UTC."
                }
                (form(frame, routes::END_RECORDING, &hidden, &html! { button { "End the recording" } }))
            }
        }
    }
}

fn offer(calls_max: u32) -> Markup {
    html! {
        div.fields {
            div.field {
                label for="record-calls" { "Calls to record" }
                p.dim #record-calls-about { "From 1 to " (calls_max) ". It ends by itself after a day." }
                input #record-calls name=(routes::CALLS) type="number" min="1" max=(calls_max) value=(CALLS_PROPOSED)
                    required aria-describedby="record-calls-about";
            }
        }
        button { "Record the next calls" }
    }
}

#[cfg(test)]
mod tests {
    use super::view;
    use crate::model::{Frame, Moment, RecordingState, ToolPage};

    fn shown(decide: bool, recording: RecordingState) -> String {
        let tool = ToolPage { name: "echo".into(), recording, ..ToolPage::default() };
        view(&Frame { decide, ..Frame::default() }, &tool).0
    }

    #[test]
    fn what_can_be_done_has_a_form_and_what_cannot_a_reason() {
        let offered = shown(true, RecordingState::Offered { calls_max: 100, has_replicas: true });
        for part in ["action=\"/recordings/begin\"", "name=\"calls\"", "max=\"100\"", "other replicas record none"] {
            assert!(offered.contains(part), "{part}: {offered}");
        }
        let running = RecordingState::Running { kept: 2, calls: 5, by: "<ann>".into(), began: Moment::default() };
        let shows = shown(true, running.clone());
        for part in ["3 of 5 calls are left.", "action=\"/recordings/end\"", "<bdi>&lt;ann&gt;</bdi> began it"] {
            assert!(shows.contains(part), "{part}: {shows}");
        }
        assert!(!shown(false, running).contains("<form"));
        let lines = Some("[recordings]".to_owned());
        let lacks = shown(true, RecordingState::Unavailable { reason: "No folder.".into(), lines });
        assert!(lacks.contains("No folder.") && lacks.contains("[recordings]") && !lacks.contains("<form"), "{lacks}");
    }
}
