//! Parts of pages that an event from the server replaces: parts of a view, written by the same
//! functions as the whole page.
//!
//! The script listens at [`EVENTS`](crate::routes::EVENTS) with the view's
//! [`key`](crate::View::key). Each event `update` has a JSON object as its data: `parts`, a list of
//! markup whose outermost elements have ids, and `say`, a sentence for screen readers. An event
//! `ended` says that the session is over: the script stops, and tells the person that the page is
//! out of date.

use maud::Markup;
use serde_json::json;

use crate::frame::{View, navigation, problems};
use crate::model::{Approvals, Changes, Denials, Frame, Now};
use crate::page;

/// The event that ends a page's updates: the session is over.
pub const ENDED: &str = "event: ended\ndata: {}\n\n";

/// A comment line that keeps a connection open.
pub const KEEP_ALIVE: &str = ": \n\n";

/// Parts of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    /// Markup of the elements, each with an id.
    parts: Vec<String>,
    /// A sentence for screen readers.
    say: Option<String>,
}

impl Update {
    /// Adds a sentence for screen readers, which read it after what they are reading. Meant for
    /// what a person has to know, such as a call that waits for them; not for each tick.
    #[must_use]
    pub fn saying(mut self, sentence: &str) -> Self {
        self.say = Some(crate::text::words(sentence, crate::bounds::LINE_BYTES));
        self
    }

    /// The event as `text/event-stream`, for a page that shows `shown`. Parts that did not change
    /// are left out.
    #[must_use]
    pub fn event(&self, shown: &Self) -> String {
        let parts: Vec<&String> = self.parts.iter().filter(|part| !shown.parts.contains(part)).collect();
        format!("event: update\ndata: {}\n\n", json!({ "parts": parts, "say": self.say }))
    }

    fn of(frame: &Frame, view: View, parts: impl IntoIterator<Item = Markup>) -> Self {
        let parts = [navigation(frame, view), problems(frame)].into_iter().chain(parts);
        Self { parts: parts.map(|part| part.0).collect(), say: None }
    }
}

/// All parts of the view of what runs now.
#[must_use]
pub fn now(frame: &Frame, view: &Now) -> Update {
    use page::now::{chart, history, running, totals};
    Update::of(frame, View::Now, [totals(view), chart(view), history(view), running(frame, view)])
}

/// The lists of denials, as [`page::denials`] has them.
#[must_use]
pub fn denials(frame: &Frame, view: &Denials, only: &str) -> Update {
    Update::of(frame, View::Denials, [page::denials::list(frame, view, only)])
}

/// The lists of changes.
#[must_use]
pub fn changes(frame: &Frame, view: &Changes) -> Update {
    Update::of(frame, View::Changes, [page::changes::quarantine(frame, view), page::changes::generations(view)])
}

/// The lists of approvals.
#[must_use]
pub fn approvals(frame: &Frame, view: &Approvals) -> Update {
    Update::of(frame, View::Approvals, [page::approvals::waiting(frame, view), page::approvals::decided(view)])
}

/// Only the counts next to the names of views: for views whose content stays until it is reloaded.
#[must_use]
pub fn counts(frame: &Frame, view: View) -> Update {
    Update::of(frame, view, [])
}
