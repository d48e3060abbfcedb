//! The contract's `asking`: a guest's questions to the person behind its caller, and their budget.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcell_policy::{Limit, Limits};

use crate::failure::CallFailure;

/// The kind of a question to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskKind {
    /// The person fills in a form.
    Form,
    /// The person goes to a page.
    Page,
    /// The client's model writes a message.
    Sampling,
    /// The client lists the folders that it works in.
    Roots,
}

/// A form for the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionForm {
    /// Why it is asked, for the person.
    pub message: String,
    /// A JSON Schema as MCP restricts it.
    pub schema_json: String,
}

/// A page for the person, for data that must not pass through the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPage {
    /// Why, for the person.
    pub message: String,
    /// An `https:` address.
    pub url: String,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestQuestion {
    /// A form to fill in.
    Form(QuestionForm),
    /// A page to go to.
    Page(QuestionPage),
    /// The params of `sampling/createMessage` as a JSON object.
    Sampling(String),
    /// The folders that the client works in.
    Roots,
}

/// A question, with a key that is unique in its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub key: String,
    /// The question.
    pub question: GuestQuestion,
}

/// A folder or file that the client works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRoot {
    /// A `file:` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// One answer of the kind that its question asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestAnswer {
    /// The person agreed. This is what was filled in: a JSON object.
    Accepted(String),
    /// The person refused.
    Declined,
    /// The person closed the question without a choice.
    Dismissed,
    /// The model's message, as a JSON object.
    Message(String),
    /// The folders.
    Roots(Vec<WorkRoot>),
}

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskRefusal {
    /// The client cannot be asked this.
    Unsupported(AskKind),
    /// A question is malformed: its problem.
    Invalid(String),
    /// The call may not ask this much: which limit.
    OverLimit(String),
    /// Nobody answered in time.
    TimedOut,
    /// The answer is an error or invalid: its problem.
    Failed(String),
}

/// The result of asking.
#[derive(Debug, Serialize, Deserialize)]
pub enum AskResult {
    /// The answers in the order of the questions, or the refusal.
    Answered(Result<Vec<GuestAnswer>, AskRefusal>),
    /// The call ends here. Its caller has the questions and calls again with the answers, or is
    /// refused for this reason.
    Ended(Option<String>),
}

/// Ends a guest whose call ends with its questions, or with those of a call that it made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call ended where the guest asked")]
pub struct EndedByAsking {
    /// Why its caller is refused; `None` if it may call again with the answers.
    pub refused: Option<String>,
}

/// The remaining budget of questions of one call. Both sides of a wall keep one.
#[derive(Debug)]
pub struct AskBudget {
    asks: u64,
    asked: u64,
    ask_bytes: u64,
    wait_left: Duration,
}

impl From<&EndedByAsking> for CallFailure {
    fn from(ended: &EndedByAsking) -> Self {
        Self::Asked { refused: ended.refused.clone() }
    }
}

impl GuestQuestion {
    /// The kind of question.
    #[must_use]
    pub fn kind(&self) -> AskKind {
        match self {
            Self::Form(_) => AskKind::Form,
            Self::Page(_) => AskKind::Page,
            Self::Sampling(_) => AskKind::Sampling,
            Self::Roots => AskKind::Roots,
        }
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        match self {
            Self::Form(QuestionForm { message, schema_json }) => message.len() + schema_json.len(),
            Self::Page(QuestionPage { message, url }) => message.len() + url.len(),
            Self::Sampling(params) => params.len(),
            Self::Roots => 0,
        }
    }
}

impl AskBudget {
    /// The whole budget of a call with these limits.
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        Self {
            asks: limits.get(Limit::Asks),
            asked: 0,
            ask_bytes: limits.get(Limit::AskBytes),
            wait_left: limits.ask_wait(),
        }
    }

    /// True if the call may ask at all.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.asks > 0
    }

    /// Time that the call may still wait for a person.
    #[must_use]
    pub fn wait_left(&self) -> Duration {
        self.wait_left
    }

    /// Takes the time that the call has waited from the budget.
    pub fn waited(&mut self, time: Duration) {
        self.wait_left = self.wait_left.saturating_sub(time);
    }

    /// Takes one question that the host asks itself from the budget. False if none is left.
    pub fn charge_own(&mut self) -> bool {
        let left = self.asked < self.asks;
        self.asked += u64::from(left);
        left
    }

    /// Takes these questions from the budget.
    ///
    /// # Errors
    /// They are more or larger than the call may ask.
    pub fn charge(&mut self, asks: &[Inquiry]) -> Result<(), AskRefusal> {
        let over = |limit: Limit, value: u64, what: &str| {
            let spec = limit.spec();
            AskRefusal::OverLimit(format!("{what} {} (limit \"{}\")", spec.show(value), spec.key))
        };
        let asked = self.asked.saturating_add(asks.len() as u64);
        if asked > self.asks {
            return Err(over(Limit::Asks, self.asks, "the call asks more questions than"));
        }
        let bytes = |ask: &Inquiry| ask.key.len() + ask.question.bytes();
        if asks.iter().any(|ask| bytes(ask) as u64 > self.ask_bytes) {
            return Err(over(Limit::AskBytes, self.ask_bytes, "a question is larger than"));
        }
        self.asked = asked;
        Ok(())
    }
}
