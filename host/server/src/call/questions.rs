//! Translates a guest's questions and their answers between sandbox and protocol; each question is
//! one audit record. Must not hold: how a person is asked.
use std::time::Duration;

use toolcell_mcp as mcp;
use toolcell_policy::Limits;
use toolcell_sandbox as sandbox;

use super::interruption::Interruptions;
use super::record::AskRecords;

/// Questions of one call.
pub struct Questions {
    asking: mcp::Asking,
    interruptions: Interruptions,
    records: AskRecords,
    /// The asking tool, named for people.
    asker: String,
    answer_bytes_max: usize,
    answered_within: Duration,
}

impl Questions {
    /// Questions of the call with this context.
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

    pub fn supports(&self, kind: sandbox::Kind) -> bool {
        self.asking.supports(question_kind(kind))
    }

    pub fn supports_sampling_tools(&self) -> bool {
        self.asking.supports_sampling_tools()
    }

    /// Asks. If dropped before the answers, it records the questions as cancelled, and who ended
    /// the call, or else as timed out.
    pub async fn ask(&self, asks: Vec<sandbox::Inquiry>) -> sandbox::Asked {
        let asked: Vec<(String, &'static str)> =
            asks.iter().map(|ask| (ask.key.clone(), question_kind(ask.question.kind()).name())).collect();
        let open = UnansweredQuestions { questions: self, asked, recorded: false };
        if let Some(ask) = asks.iter().find(|ask| !is_guests(&ask.key)) {
            let text = format!("the key {:?} is not 1 to 64 of A-Z, a-z, 0-9, _ and -", ask.key);
            return open.refused(sandbox::Refusal::Invalid(text));
        }
        let need = format!("{} needs an answer", self.asker);
        let terms = mcp::AskTerms {
            asker: Some(&self.asker),
            need: &need,
            answer_bytes_max: self.answer_bytes_max,
            answered_within: self.answered_within,
            only_if_asked: false,
        };
        match self.asking.ask(asks.into_iter().map(ask).collect(), terms).await {
            mcp::Asked::Answered(answers) => open.answered(answers),
            mcp::Asked::Refused(error) => open.refused(refusal(error)),
            mcp::Asked::Ended(refused) => open.ended(refused),
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
    fn answered(mut self, answers: Vec<mcp::Answer>) -> sandbox::Asked {
        self.recorded = true;
        for ((key, kind), answer) in self.asked.iter().zip(&answers) {
            self.questions.records.write(kind, key, named(answer), None);
        }
        sandbox::Asked::Answered(Ok(answers.into_iter().map(answer).collect()))
    }

    fn refused(mut self, refusal: sandbox::Refusal) -> sandbox::Asked {
        let (answer, detail) = match &refusal {
            sandbox::Refusal::Unsupported(_) => ("unsupported", None),
            sandbox::Refusal::Invalid(text) | sandbox::Refusal::OverLimit(text) => ("refused", Some(text.as_str())),
            sandbox::Refusal::TimedOut => ("timed_out", None),
            sandbox::Refusal::Failed(text) => ("failed", Some(text.as_str())),
        };
        self.tell(answer, detail);
        sandbox::Asked::Answered(Err(refusal))
    }

    fn ended(mut self, refused: Option<String>) -> sandbox::Asked {
        self.tell(if refused.is_some() { "failed" } else { "pending" }, refused.as_deref());
        sandbox::Asked::Ended(refused)
    }

    fn tell(&mut self, answer: &str, detail: Option<&str>) {
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
                Some(interruption) => self.tell("cancelled", Some(interruption.text())),
                None => self.tell("timed_out", None),
            }
        }
    }
}

/// Word for an answer in records.
pub fn named(answer: &mcp::Answer) -> &'static str {
    match answer {
        mcp::Answer::Accepted(_) => "accepted",
        mcp::Answer::Declined => "declined",
        mcp::Answer::Dismissed => "dismissed",
        mcp::Answer::Message(_) | mcp::Answer::Roots(_) => "answered",
    }
}

fn question_kind(kind: sandbox::Kind) -> mcp::QuestionKind {
    match kind {
        sandbox::Kind::Form => mcp::QuestionKind::Form,
        sandbox::Kind::Page => mcp::QuestionKind::Page,
        sandbox::Kind::Sampling => mcp::QuestionKind::Sampling,
        sandbox::Kind::Roots => mcp::QuestionKind::Roots,
    }
}

fn ask(ask: sandbox::Inquiry) -> mcp::Ask {
    let question = match ask.question {
        sandbox::Question::Form(form) => mcp::Question::Form { message: form.message, schema_json: form.schema_json },
        sandbox::Question::Page(page) => mcp::Question::Page { message: page.message, url: page.url },
        sandbox::Question::Sampling(params_json) => mcp::Question::Sampling { params_json },
        sandbox::Question::Roots => mcp::Question::Roots,
    };
    mcp::Ask { key: ask.key, question }
}

fn answer(answer: mcp::Answer) -> sandbox::Answer {
    match answer {
        mcp::Answer::Accepted(content) => sandbox::Answer::Accepted(content),
        mcp::Answer::Declined => sandbox::Answer::Declined,
        mcp::Answer::Dismissed => sandbox::Answer::Dismissed,
        mcp::Answer::Message(message) => sandbox::Answer::Message(message),
        mcp::Answer::Roots(roots) => sandbox::Answer::Roots(
            roots.into_iter().map(|root| sandbox::Root { uri: root.uri, name: root.name }).collect(),
        ),
    }
}

fn refusal(error: mcp::AskError) -> sandbox::Refusal {
    match error {
        mcp::AskError::Unsupported { kind, .. } | mcp::AskError::Unheard(kind) => {
            sandbox::Refusal::Unsupported(match kind {
                mcp::QuestionKind::Form => sandbox::Kind::Form,
                mcp::QuestionKind::Page => sandbox::Kind::Page,
                mcp::QuestionKind::Sampling => sandbox::Kind::Sampling,
                mcp::QuestionKind::Roots => sandbox::Kind::Roots,
            })
        }
        mcp::AskError::Invalid(text) => sandbox::Refusal::Invalid(text),
        error => sandbox::Refusal::Failed(error.to_string()),
    }
}
