//! The pages: one function each, from the frame and the values of a view to a whole document. The
//! parts that events replace are those of [`update`](crate::update). Must not hold: how things
//! look.

pub(crate) mod approvals;
mod audit;
mod call;
mod callers;
pub(crate) mod changes;
pub(crate) mod denials;
mod entry;
pub(crate) mod now;
mod recording;
mod result;
mod tool;
mod tools;
mod try_form;

pub use entry::{error, going_on, sign_in};

use crate::frame::{self, View};
use crate::model::{Approvals, Audit, CallPage, Callers, Changes, Denials, Frame, Now, ToolPage, Tools};
use crate::routes;

/// The page of what runs now.
#[must_use]
pub fn now(frame: &Frame, view: &Now) -> String {
    frame::page(frame, View::Now, None, &now::view(frame, view))
}

/// The page of all tools.
#[must_use]
pub fn tools(frame: &Frame, view: &Tools) -> String {
    frame::page(frame, View::Tools, None, &tools::view(view))
}

/// The page of one tool.
#[must_use]
pub fn tool(frame: &Frame, view: &ToolPage) -> String {
    frame::page(frame, View::Tools, Some(&view.name), &tool::view(frame, view))
}

/// The page of denials: of the component `only`, or of all where it is empty.
#[must_use]
pub fn denials(frame: &Frame, view: &Denials, only: &str) -> String {
    let narrowed = [(routes::COMPONENT, only)];
    frame::page_of(frame, View::Denials, &narrowed, None, &denials::view(frame, view, only))
}

/// The page of changes.
#[must_use]
pub fn changes(frame: &Frame, view: &Changes) -> String {
    frame::page(frame, View::Changes, None, &changes::view(frame, view))
}

/// The page of calls that wait for a person.
#[must_use]
pub fn approvals(frame: &Frame, view: &Approvals) -> String {
    frame::page(frame, View::Approvals, None, &approvals::view(frame, view))
}

/// The page of audit records.
#[must_use]
pub fn audit(frame: &Frame, view: &Audit) -> String {
    frame::page(frame, View::Audit, None, &audit::view(frame, view))
}

/// The page of one call.
#[must_use]
pub fn call(frame: &Frame, view: &CallPage) -> String {
    let title = view.call.call.as_ref().map(|link| format!("Call {}", link.number));
    frame::page(frame, View::Audit, title.as_deref(), &call::view(view))
}

/// The page of callers.
#[must_use]
pub fn callers(frame: &Frame, view: &Callers) -> String {
    frame::page(frame, View::Callers, None, &callers::view(frame, view))
}
