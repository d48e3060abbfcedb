//! The next calls of a tool that an operator has recorded: begun, ended, and shown on its page.
use std::borrow::Cow;

use toolcell_console::model::RecordingState;
use toolcell_console::routes;

use super::decisions::Came;
use super::form::Fields;
use super::gather::Sources;
use super::service::Visit;
use crate::catalog::{NotRecordable, ToolOffer};
use crate::recordings::{ORDERED_CALLS_MAX, OrderedBy, OrderedTool};

impl Sources {
    /// Has the next calls of a tool recorded.
    pub fn begin_recording(&self, fields: &Fields, by: OrderedBy) -> Came {
        let name = fields.get(routes::TOOL);
        let catalog = self.catalog();
        let offer = catalog.offers().find(|offer| is_tool(offer, name)).ok_or("There is no such tool.")?;
        catalog.is_recordable(offer.target).map_err(NotRecordable::text)?;
        // What is not a number is out of bounds as well.
        let calls = fields.number(routes::CALLS).unwrap_or(0);
        let calls = self.services.ordered_recordings.begin(ordered(&offer), name, calls, by)?;
        Ok(match calls {
            1 => "The next call is recorded.".to_owned(),
            calls => format!("The next {calls} calls are recorded."),
        })
    }

    /// Ends that of a tool before all calls came.
    pub fn end_recording(&self, fields: &Fields) -> Came {
        let ended = self.ordered_tool(fields).and_then(|tool| self.services.ordered_recordings.end(&tool));
        let ended = ended.ok_or("Calls of this tool are not being recorded any more.")?;
        Ok(format!("Ended: {} of {} calls were recorded.", ended.kept, ended.calls))
    }

    /// What the end of a recording ends, in words for the audit.
    pub fn recording_in_words(&self, fields: &Fields) -> String {
        let name = fields.get(routes::TOOL);
        let order = self.ordered_tool(fields).and_then(|tool| self.services.ordered_recordings.of(&tool));
        match order {
            Some(order) => format!("{name}, {} of {} calls recorded", order.kept, order.calls),
            None => name.to_owned(),
        }
    }

    /// The page that follows a decision about recordings.
    pub fn page_of_recorded(&self, fields: &Fields) -> Cow<'static, str> {
        match self.ordered_tool(fields) {
            Some(_) => Cow::Owned(routes::tool(fields.get(routes::TOOL))),
            None => Cow::Borrowed(routes::TOOLS),
        }
    }

    /// The recording of a tool's calls, for its page.
    pub(super) fn recording_of(&self, offer: &ToolOffer<'_>) -> RecordingState {
        if let Some(order) = self.services.ordered_recordings.of(&ordered(offer)) {
            return RecordingState::Running {
                kept: order.kept,
                calls: order.calls,
                by: order.by.operator.unwrap_or_else(|| format!("The session {}", order.by.session)),
                began: order.began.into(),
            };
        }
        match self.catalog().is_recordable(offer.target) {
            Ok(()) => RecordingState::Offered {
                calls_max: ORDERED_CALLS_MAX,
                has_replicas: self.services.replicated_sets.is_some(),
            },
            Err(problem) => RecordingState::Unavailable {
                reason: problem.text().to_owned(),
                lines: problem.lines().map(str::to_owned),
            },
        }
    }

    /// That of the tool of this name; `None` if it is unknown.
    pub(super) fn recording_named(&self, tool: &str) -> Option<RecordingState> {
        let catalog = self.catalog();
        let offer = catalog.offers().find(|offer| is_tool(offer, tool))?;
        Some(self.recording_of(&offer))
    }

    /// True if calls of a tool are being recorded for an operator.
    pub(super) fn is_recording(&self, offer: &ToolOffer<'_>) -> bool {
        self.services.ordered_recordings.of(&ordered(offer)).is_some()
    }

    fn ordered_tool(&self, fields: &Fields) -> Option<OrderedTool> {
        let catalog = self.catalog();
        let offer = catalog.offers().find(|offer| is_tool(offer, fields.get(routes::TOOL)))?;
        Some(ordered(&offer))
    }
}

/// The operator of a visit.
pub(super) fn ordered_by(visit: &Visit) -> OrderedBy {
    OrderedBy { session: visit.session.name.clone(), operator: visit.session.operator.clone() }
}

fn is_tool(offer: &ToolOffer<'_>, name: &str) -> bool {
    offer.tool().is_tool() && offer.tool().definition().name == name
}

fn ordered(offer: &ToolOffer<'_>) -> OrderedTool {
    OrderedTool { component: offer.component().name().to_owned(), tool: offer.own_name().to_owned() }
}
