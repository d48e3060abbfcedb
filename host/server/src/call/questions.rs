//! Translates a guest's questions and their answers between sandbox and protocol; each question has
//! one audit record.
use std::time::Duration;

use toolcell_mcp as mcp;
use toolcell_policy::Limits;
use toolcell_sandbox as sandbox;

use super::caller::Interruptions;
use super::record::AskRecords;

pub struct Questions {
    asking: mcp::CallAsking,
    interruptions: Interruptions,
    records: AskRecords,
    /// The asking tool, named for people.
    asker: String,
    answer_bytes_max: usize,
    answered_within: Duration,
}

impl Questions {
    pub fn new(context: &mcp::CallContext, records: AskRecords, limits: &Limits, interruptions: Interruptions) -> Self {
        let asker = match sandbox::export::prompt_of(records.tool()) {
            Some(prompt) => format!("The prompt {prompt:?}"),
            None => format!("The tool {:?}", records.tool()),
        };
        Self {
            asking: context.asking.clone(),
            interruptions,
            records,
            asker,
            answer_bytes_max: limits.answer_bytes(),
            answered_within: limits.ask_wait(),
        }
    }

    pub fn supports(&self, kind: sandbox::AskKind) -> bool {
        self.asking.supports(question_kind(kind))
    }

    pub fn supports_sampling_tools(&self) -> bool {
        self.asking.supports_sampling_tools()
    }

    /// Asks. If dropped before the answers, it records the questions as cancelled, with who ended
    /// the call, or as timed out.
    pub async fn ask(&self, asks: Vec<sandbox::Inquiry>) -> sandbox::AskResult {
        let asked: Vec<(String, &'static str)> =
            asks.iter().map(|ask| (ask.key.clone(), question_kind(ask.question.kind()).name())).collect();
        let open = UnansweredQuestions { questions: self, asked, recorded: false };
        if let Some(ask) = asks.iter().find(|ask| !is_guests(&ask.key)) {
            let text = format!("the key {:?} is not 1 to 64 of A-Z, a-z, 0-9, _ and -", ask.key);
            return open.refused(sandbox::AskRefusal::Invalid(text));
        }
        let need = format!("{} needs an answer", self.asker);
        let terms = mcp::AskTerms {
            asker: Some(&self.asker),
            need: &need,
            answer_bytes_max: self.answer_bytes_max,
            answered_within: self.answered_within,
            permits: None,
        };
        match self.asking.ask(asks.into_iter().map(ask).collect(), terms).await {
            mcp::AskOutcome::Answered(answers) => open.answered(answers),
            mcp::AskOutcome::Refused(error) => open.refused(refusal(error)),
            mcp::AskOutcome::Ended(refused) => open.ended(refused),
        }
    }
}

/// True if a guest may use this key. Others belong to the host.
fn is_guests(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Questions without answers yet.
struct UnansweredQuestions<'a> {
    questions: &'a Questions,
    asked: Vec<(String, &'static str)>,
    recorded: bool,
}

impl UnansweredQuestions<'_> {
    fn answered(mut self, answers: Vec<mcp::ClientAnswer>) -> sandbox::AskResult {
        self.recorded = true;
        for ((key, kind), answer) in self.asked.iter().zip(&answers) {
            self.questions.records.write(kind, key, named(answer), None);
        }
        sandbox::AskResult::Answered(Ok(answers.into_iter().map(answer).collect()))
    }

    fn refused(mut self, refusal: sandbox::AskRefusal) -> sandbox::AskResult {
        let (answer, detail) = match &refusal {
            sandbox::AskRefusal::Unsupported(_) => ("unsupported", None),
            sandbox::AskRefusal::Invalid(text) | sandbox::AskRefusal::OverLimit(text) => {
                ("refused", Some(text.as_str()))
            }
            sandbox::AskRefusal::TimedOut => ("timed_out", None),
            sandbox::AskRefusal::Failed(text) => ("failed", Some(text.as_str())),
        };
        self.report(answer, detail);
        sandbox::AskResult::Answered(Err(refusal))
    }

    fn ended(mut self, refused: Option<String>) -> sandbox::AskResult {
        self.report(if refused.is_some() { "failed" } else { "pending" }, refused.as_deref());
        sandbox::AskResult::Ended(refused)
    }

    fn report(&mut self, answer: &str, detail: Option<&str>) {
        self.recorded = true;
        for (key, kind) in &self.asked {
            self.questions.records.write(kind, key, answer, detail);
        }
    }
}

impl Drop for UnansweredQuestions<'_> {
    fn drop(&mut self) {
        if !self.recorded {
            match self.questions.interruptions.cause() {
                Some(interruption) => self.report("cancelled", Some(interruption.text())),
                None => self.report("timed_out", None),
            }
        }
    }
}

/// The answer's name in audit records.
pub fn named(answer: &mcp::ClientAnswer) -> &'static str {
    match answer {
        mcp::ClientAnswer::Accepted(_) => "accepted",
        mcp::ClientAnswer::Declined => "declined",
        mcp::ClientAnswer::Dismissed => "dismissed",
        mcp::ClientAnswer::Message(_) | mcp::ClientAnswer::Roots(_) => "answered",
    }
}

fn question_kind(kind: sandbox::AskKind) -> mcp::QuestionKind {
    match kind {
        sandbox::AskKind::Form => mcp::QuestionKind::Form,
        sandbox::AskKind::Page => mcp::QuestionKind::Page,
        sandbox::AskKind::Sampling => mcp::QuestionKind::Sampling,
        sandbox::AskKind::Roots => mcp::QuestionKind::Roots,
    }
}

fn ask(ask: sandbox::Inquiry) -> mcp::KeyedQuestion {
    let question = match ask.question {
        sandbox::GuestQuestion::Form(form) => {
            mcp::ClientQuestion::Form { message: form.message, schema_json: form.schema_json }
        }
        sandbox::GuestQuestion::Page(page) => mcp::ClientQuestion::Page { message: page.message, url: page.url },
        sandbox::GuestQuestion::Sampling(params_json) => mcp::ClientQuestion::Sampling { params_json },
        sandbox::GuestQuestion::Roots => mcp::ClientQuestion::Roots,
    };
    mcp::KeyedQuestion { key: ask.key, question }
}

fn answer(answer: mcp::ClientAnswer) -> sandbox::GuestAnswer {
    match answer {
        mcp::ClientAnswer::Accepted(content) => sandbox::GuestAnswer::Accepted(content),
        mcp::ClientAnswer::Declined => sandbox::GuestAnswer::Declined,
        mcp::ClientAnswer::Dismissed => sandbox::GuestAnswer::Dismissed,
        mcp::ClientAnswer::Message(message) => sandbox::GuestAnswer::Message(message),
        mcp::ClientAnswer::Roots(roots) => sandbox::GuestAnswer::Roots(
            roots.into_iter().map(|root| sandbox::WorkRoot { uri: root.uri, name: root.name }).collect(),
        ),
    }
}

fn refusal(error: mcp::ClientAskError) -> sandbox::AskRefusal {
    match error {
        mcp::ClientAskError::Unsupported { kind, .. } | mcp::ClientAskError::Unheard(kind) => {
            sandbox::AskRefusal::Unsupported(match kind {
                mcp::QuestionKind::Form => sandbox::AskKind::Form,
                mcp::QuestionKind::Page => sandbox::AskKind::Page,
                mcp::QuestionKind::Sampling => sandbox::AskKind::Sampling,
                mcp::QuestionKind::Roots => sandbox::AskKind::Roots,
            })
        }
        mcp::ClientAskError::Invalid(text) => sandbox::AskRefusal::Invalid(text),
        error => sandbox::AskRefusal::Failed(error.to_string()),
    }
}
