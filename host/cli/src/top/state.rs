//! What the person sees: the view, the row, the question.
use std::collections::BTreeMap;

use toolcell_server::control::{ApprovalShown, CallShown, DenialShown};

use super::ask::{Process, Seen, Target};

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    #[default]
    Now,
    Denials,
    Approvals,
}

impl View {
    /// All, in their order.
    pub const ALL: [Self; 3] = [Self::Now, Self::Denials, Self::Approvals];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Now => "Now",
            Self::Denials => "Denials",
            Self::Approvals => "Approvals",
        }
    }

    /// The next one, and the first after the last.
    pub const fn next(self) -> Self {
        match self {
            Self::Now => Self::Denials,
            Self::Denials => Self::Approvals,
            Self::Approvals => Self::Now,
        }
    }
}

/// State of the screen.
#[derive(Clone, Debug, Default)]
pub struct TopState {
    pub view: View,
    marks: BTreeMap<View, Mark>,
    /// True if the selected row is shown alone, with all details.
    pub details: bool,
    /// Scrolled lines of the details.
    pub scrolled: usize,
    pub paused: bool,
    pub question: Option<Question>,
    /// The last message, and whether it is a failure.
    pub notice: Option<Result<String, String>>,
    /// True while a process carries out a decision.
    pub is_deciding: bool,
}

/// The selected row of a view. It stays selected when others come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mark {
    run: String,
    number: u64,
    at: usize,
}

/// A decision that must be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    pub target: Target,
}

/// The row of a view.
#[derive(Clone, Copy, Debug)]
pub enum TopRow<'a> {
    Call(&'a Process, &'a CallShown),
    Denial(&'a Process, &'a DenialShown),
    Approval(&'a Process, &'a ApprovalShown),
}

impl<'a> TopRow<'a> {
    /// The process.
    pub const fn process(&self) -> &'a Process {
        match self {
            Self::Call(process, _) | Self::Denial(process, _) | Self::Approval(process, _) => process,
        }
    }

    /// The number that decisions name.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Call(_, call) => call.call,
            Self::Denial(_, denial) => denial.group,
            Self::Approval(_, approval) => approval.question_id,
        }
    }
}

impl Seen {
    /// The rows of a view.
    pub fn rows(&self, view: View) -> Vec<TopRow<'_>> {
        let each = self.processes.iter();
        match view {
            View::Now => each.flat_map(|of| of.activity.calls.iter().map(move |row| TopRow::Call(of, row))).collect(),
            View::Denials => {
                each.flat_map(|of| of.activity.denials.iter().map(move |row| TopRow::Denial(of, row))).collect()
            }
            View::Approvals => {
                each.flat_map(|of| of.activity.approvals.iter().map(move |row| TopRow::Approval(of, row))).collect()
            }
        }
    }

    /// Number of rows of a view that need a person: none in "Now".
    pub fn open(&self, view: View) -> usize {
        let open = |of: &Process| match view {
            View::Now => 0,
            View::Denials => of.activity.denials.iter().filter(|group| !group.muted).count(),
            View::Approvals => of.activity.approvals.len(),
        };
        self.processes.iter().map(open).sum()
    }
}

impl TopState {
    /// Index of the selected row; `None` without rows.
    pub fn chosen(&self, rows: &[TopRow<'_>]) -> Option<usize> {
        let last = rows.len().checked_sub(1)?;
        let Some(mark) = self.marks.get(&self.view) else { return Some(0) };
        let is_it = |row: &TopRow<'_>| row.number() == mark.number && row.process().activity.run == mark.run;
        Some(rows.iter().position(is_it).unwrap_or(mark.at.min(last)))
    }

    /// Selects the row at this index, or the last one before it.
    pub fn choose(&mut self, rows: &[TopRow<'_>], at: usize) {
        let at = at.min(rows.len().saturating_sub(1));
        if let Some(row) = rows.get(at) {
            let mark = Mark { run: row.process().activity.run.clone(), number: row.number(), at };
            self.marks.insert(self.view, mark);
        }
    }

    /// Keeps the selected row after new activity, and closes the details of a removed row.
    pub fn settle(&mut self, seen: &Seen) {
        let rows = seen.rows(self.view);
        let Some(at) = self.chosen(&rows) else {
            self.details = false;
            return;
        };
        let before = self.marks.get(&self.view).cloned();
        self.choose(&rows, at);
        let after = self.marks.get(&self.view);
        let is_same =
            |before: &Mark| after.is_some_and(|after| (after.number, &after.run) == (before.number, &before.run));
        if self.details && before.is_some_and(|before| !is_same(&before)) {
            self.details = false;
            self.notice.get_or_insert(Ok("What was shown is gone.".to_owned()));
        }
    }

    /// Changes the view.
    pub fn show(&mut self, view: View) {
        (self.view, self.details, self.scrolled) = (view, false, 0);
    }
}
