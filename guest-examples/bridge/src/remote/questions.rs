//! What the server asks the person. It is passed on where the manifest sets `ELICITATION = "pass"` among the
//! component's variables. Sampling and roots never are.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcell_bridge_lines::{Elicitation, PASSED, PASSES_ELICITATION};
use toolkit::bindings::toolcell::mcp::asking::{self, Answer, Form, Inquiry, Kind, Page, Question, Refusal};

/// The method of a question.
pub const METHOD: &str = "elicitation/create";

/// What a call may ask.
#[derive(Default)]
pub struct Questions {
    pub elicitation: Elicitation,
    asked: usize,
}

/// Why a question has no answer. The text is for the server.
#[derive(Debug, PartialEq)]
pub struct NotAsked {
    /// The number of JSON-RPC's error.
    pub code: i32,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    mode: Option<String>,
    message: String,
    #[serde(borrow)]
    requested_schema: Option<&'a RawValue>,
    url: Option<String>,
}

impl Questions {
    /// What the manifest allows and the caller can be asked.
    pub fn of_manifest() -> Self {
        let is_passed = std::env::var(PASSES_ELICITATION).is_ok_and(|value| value == PASSED);
        let form = is_passed && asking::supports(Kind::Form);
        let page = is_passed && asking::supports(Kind::Page);
        Self { elicitation: Elicitation { form, page }, asked: 0 }
    }

    /// True if anything is passed on.
    pub const fn are_passed(&self) -> bool {
        self.elicitation.form || self.elicitation.page
    }

    /// Asks all of these together, and gives the results in their order.
    pub fn ask(&mut self, params: &[&str]) -> Result<Vec<Value>, NotAsked> {
        let mut inquiries = Vec::with_capacity(params.len());
        for params in params {
            let question = self.question(params)?;
            self.asked += 1;
            // The same in each run of the call, so that an answer finds its question again.
            inquiries.push(Inquiry { key: format!("asked-{}", self.asked), question });
        }
        match asking::ask(&inquiries) {
            Ok(answers) => Ok(answers.iter().map(result).collect()),
            Err(refusal) => Err(not_asked(&refusal)),
        }
    }

    fn question(&self, params: &str) -> Result<Question, NotAsked> {
        let invalid = |text: String| NotAsked { code: -32602, text };
        let asked: Asked<'_> = serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
        match asked.mode.as_deref() {
            None | Some("form") if self.elicitation.form => {
                let schema = asked.requested_schema.ok_or_else(|| invalid("requestedSchema is missing".to_owned()))?;
                Ok(Question::Form(Form { message: asked.message, schema_json: schema.get().to_owned() }))
            }
            Some("url") if self.elicitation.page => {
                let url = asked.url.ok_or_else(|| invalid("url is missing".to_owned()))?;
                Ok(Question::Page(Page { message: asked.message, url }))
            }
            _ => Err(invalid("the caller cannot be asked this".to_owned())),
        }
    }
}

/// An answer as the protocol has it.
fn result(answer: &Answer) -> Value {
    match answer {
        Answer::Accepted(content) => {
            let content = serde_json::from_str::<Map<String, Value>>(content).unwrap_or_default();
            if content.is_empty() {
                json!({"action": "accept"})
            } else {
                json!({"action": "accept", "content": content})
            }
        }
        Answer::Declined => json!({"action": "decline"}),
        // Neither was asked for.
        Answer::Dismissed | Answer::Message(_) | Answer::Roots(_) => json!({"action": "cancel"}),
    }
}

fn not_asked(refusal: &Refusal) -> NotAsked {
    match refusal {
        Refusal::Invalid(text) => NotAsked { code: -32602, text: text.clone() },
        Refusal::Unsupported(_) => NotAsked { code: -32601, text: "the caller cannot be asked this".to_owned() },
        Refusal::OverLimit(text) | Refusal::Failed(text) => NotAsked { code: -32603, text: text.clone() },
        Refusal::TimedOut => NotAsked { code: -32603, text: "nobody answered in time".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_question_is_passed_on_in_the_mode_that_the_caller_takes() {
        let of = |form: bool, page: bool, params: Value| {
            let questions = Questions { elicitation: Elicitation { form, page }, asked: 0 };
            match questions.question(&params.to_string()) {
                Ok(Question::Form(form)) => format!("form {} {}", form.message, form.schema_json),
                Ok(Question::Page(page)) => format!("page {} {}", page.message, page.url),
                Ok(_) => "other".to_owned(),
                Err(NotAsked { code, text }) => format!("{code} {text}"),
            }
        };
        let form = json!({"message": "Who?", "requestedSchema": {"type": "object"}});
        let page = json!({"mode": "url", "message": "Pay.", "url": "https://a.example/", "elicitationId": "1"});
        assert_eq!(of(true, false, form.clone()), "form Who? {\"type\":\"object\"}");
        assert_eq!(of(true, true, page.clone()), "page Pay. https://a.example/");
        assert_eq!(of(false, true, form), "-32602 the caller cannot be asked this");
        assert_eq!(of(true, false, page), "-32602 the caller cannot be asked this");
        assert_eq!(of(true, true, json!({"message": "Who?"})), "-32602 requestedSchema is missing");
        assert!(of(true, true, json!({})).starts_with("-32602 missing field"));
    }

    #[test]
    fn an_answer_is_what_the_person_said() {
        assert_eq!(result(&Answer::Accepted("{\"a\":1}".to_owned())), json!({"action": "accept", "content": {"a": 1}}));
        assert_eq!(result(&Answer::Accepted("{}".to_owned())), json!({"action": "accept"}));
        assert_eq!(result(&Answer::Declined), json!({"action": "decline"}));
        assert_eq!(result(&Answer::Dismissed), json!({"action": "cancel"}));
    }
}
