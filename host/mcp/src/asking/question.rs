//! Questions as they are sent: checked against the revision, cleaned of misleading characters, and
//! encoded once.

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::capabilities::AskNeed;
use super::form::ClientForm;
use super::pending::AskName;
use super::{AskCapabilities, AskTerms, ClientAskError, ClientQuestion, KeyedQuestion, QuestionKind, sampling};
use crate::frame::{Object, RawMembers, base64, json_text, push_string};
use crate::revision::Revision;
use crate::sanitize;
use crate::sealing::hex;
use crate::task::push_related;

/// Longest key, in bytes. Every frame of its question contains it.
const KEY_BYTES_MAX: usize = 64;

/// Bytes of a digest that stand for a key which is too long with its place.
const KEY_DIGEST_BYTES: usize = 16;

/// Longest address of a page, in bytes. Browsers and proxies accept this much.
const URL_BYTES_MAX: usize = 2_048;

/// The methods of questions.
const ELICITATION: &str = "elicitation/create";
const SAMPLING: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// A question that is ready to be sent.
#[derive(Debug)]
pub(crate) struct PreparedQuestion {
    pub(super) key: String,
    pub(super) kind: QuestionKind,
    method: &'static str,
    params: Box<RawValue>,
    pub(super) form: Option<ClientForm>,
    pub(super) sampling: sampling::SamplingNeeds,
    /// What an answer permits, if it permits anything.
    permits: Option<String>,
}

impl PreparedQuestion {
    /// Checks a question and writes it for a revision.
    pub(super) fn new(ask: KeyedQuestion, terms: AskTerms<'_>, revision: Revision) -> Result<Self, ClientAskError> {
        let KeyedQuestion { key, question } = ask;
        let asker = terms.asker;
        let kind = question.kind();
        let rich = revision.features().rich_asks;
        let mut form = None;
        let mut needs = sampling::SamplingNeeds::default();
        let mut out = Vec::new();
        let method = match question {
            ClientQuestion::Form { message, schema_json } => {
                let asked = ClientForm::read(&schema_json, rich)?;
                let mut params = Object::open(&mut out);
                params.text("message", &said(asker, &message)?);
                params.raw("requestedSchema", asked.schema_json());
                params.close();
                form = Some(asked);
                ELICITATION
            }
            ClientQuestion::Page { message, url } => {
                check_url(&url)?;
                let mut params = Object::open(&mut out);
                params.text("mode", "url");
                params.text("message", &said(asker, &message)?);
                params.text("url", &url);
                params.close();
                ELICITATION
            }
            ClientQuestion::Sampling { params_json } => {
                let (params, needed) = sampling::params(&params_json, rich)?;
                out = params.into_bytes();
                needs = needed;
                SAMPLING
            }
            ClientQuestion::Roots => {
                out.extend_from_slice(b"{}");
                ROOTS
            }
        };
        let params = String::from_utf8(out).ok().and_then(|text| RawValue::from_string(text).ok());
        let params = params.ok_or_else(|| ClientAskError::Invalid("it cannot be written as JSON".to_owned()))?;
        let permits = terms.permits.map(str::to_owned);
        Ok(Self { key, kind, method, params, form, sampling: needs, permits })
    }

    /// Capabilities that the question needs and the client does not declare.
    pub(super) fn lacking(&self, capabilities: AskCapabilities) -> impl Iterator<Item = AskNeed> + use<> {
        needs(self.kind, self.sampling).filter(move |need| !capabilities.meets(*need))
    }

    /// Appends `method` and `params`. A page for a legacy client gets an id (2025-11-25,
    /// `elicitationId`).
    pub(super) fn push_members(&self, object: &mut Object<'_>, name: Option<AskName<'_>>) {
        object.text("method", self.method);
        match name.filter(|_| self.kind == QuestionKind::Page) {
            None => object.raw("params", self.params.get()),
            Some(name) => {
                let out = object.key("params");
                out.extend_from_slice(self.params.get().trim_end_matches('}').as_bytes());
                out.extend_from_slice(b",\"elicitationId\":");
                push_string(out, &page_id(name));
                out.push(b'}');
            }
        }
    }

    /// The question as a task stores it. `related` adds the name of the task, for a client of
    /// 2025-11-25.
    pub(super) fn task_json(&self, related: Option<&str>) -> String {
        json_text(|out| {
            let mut object = Object::open(out);
            object.text("method", self.method);
            match related {
                Some(id) => self.push_params_of_task(object.key("params"), id),
                None => object.raw("params", self.params.get()),
            }
        })
    }

    /// Appends the params with the name of the task, and an id for a page.
    fn push_params_of_task(&self, out: &mut Vec<u8>, id: &str) {
        let members = RawMembers::of(self.params.get()).unwrap_or_default();
        let mut params = Object::open(out);
        members.iter().for_each(|(name, value)| params.raw(name, value));
        if self.kind == QuestionKind::Page {
            params.text("elicitationId", &format!("toolcell/page/{id}/{}", self.key));
        }
        push_related(&mut params, "{}", id);
        params.close();
    }

    /// A digest that identifies the question, and what its answer permits.
    pub(super) fn digest(&self) -> String {
        let mut text = self.method.as_bytes().to_vec();
        text.push(0);
        text.extend_from_slice(self.params.get().as_bytes());
        if let Some(permits) = &self.permits {
            text.push(0);
            text.extend_from_slice(permits.as_bytes());
        }
        base64(digest(&SHA256, &text).as_ref())
    }
}

/// The capabilities that a question needs.
fn needs(kind: QuestionKind, sampling: sampling::SamplingNeeds) -> impl Iterator<Item = AskNeed> {
    let tools = sampling.tools.then_some(AskNeed::SamplingTools);
    let context = sampling.context.then_some(AskNeed::SamplingContext);
    [Some(AskNeed::Kind(kind)), tools, context].into_iter().flatten()
}

/// The part of a task's question that says what it needs.
#[derive(Deserialize)]
struct StoredQuestion {
    method: String,
    params: StoredParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredParams {
    mode: Option<String>,
    tools: Option<IgnoredAny>,
    tool_choice: Option<IgnoredAny>,
    include_context: Option<String>,
}

/// The capabilities that a question [as a task stores it](PreparedQuestion::task_json) needs.
/// `None` if it cannot be read.
pub(crate) fn stored_needs(question: &str) -> Option<Vec<AskNeed>> {
    let StoredQuestion { method, params } = serde_json::from_str(question).ok()?;
    let kind = match (method.as_str(), params.mode.as_deref()) {
        (ELICITATION, Some("url")) => QuestionKind::Page,
        (ELICITATION, _) => QuestionKind::Form,
        (SAMPLING, _) => QuestionKind::Sampling,
        (ROOTS, _) => QuestionKind::Roots,
        _ => return None,
    };
    let is_sampling = kind == QuestionKind::Sampling;
    let sampling = sampling::SamplingNeeds {
        tools: is_sampling && (params.tools.is_some() || params.tool_choice.is_some()),
        context: is_sampling && params.include_context.is_some_and(|context| context != "none"),
    };
    Some(needs(kind, sampling).collect())
}

/// The id of a page for a legacy client.
pub(super) fn page_id(name: AskName<'_>) -> String {
    format!("toolcell/page/{name}")
}

/// Registers the key of a question, which must be unique in its call.
pub(super) fn claim_key(used: &mut Vec<String>, question: &PreparedQuestion) -> Result<(), ClientAskError> {
    let key = &question.key;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.bytes().all(plain) {
        let text = format!("a key is 1 to {KEY_BYTES_MAX} of A-Z, a-z, 0-9, _, -, . and /");
        return Err(ClientAskError::Invalid(text));
    }
    if used.contains(key) {
        return Err(ClientAskError::Invalid(format!("the key {key:?} was used before in this call")));
    }
    used.push(key.clone());
    Ok(())
}

/// The key of a question of the call at this place, which no other call's question has.
pub(super) fn placed_key(place: &str, key: &str) -> String {
    let whole = format!("{place}/{key}");
    // A key that is too long by itself is refused as it is.
    if whole.len() <= KEY_BYTES_MAX || key.len() > KEY_BYTES_MAX {
        return whole;
    }
    let mut digits = hex(digest(&SHA256, key.as_bytes()).as_ref());
    digits.truncate(2 * KEY_DIGEST_BYTES);
    format!("{place}/{digits}")
}

/// The text for the person, prefixed with the asker. A tool must not pass for the host, or for
/// another tool.
fn said(asker: Option<&str>, message: &str) -> Result<String, ClientAskError> {
    let message = sanitize::text(message);
    if message.trim().is_empty() {
        return Err(ClientAskError::Invalid("the message is empty".to_owned()));
    }
    Ok(match asker {
        Some(asker) => format!("{asker} asks: {message}"),
        None => message.into_owned(),
    })
}

/// Checks the address of a page. It must be encrypted or on this machine, and must not hide its
/// target.
fn check_url(url: &str) -> Result<(), ClientAskError> {
    let invalid = |text: &str| Err(ClientAskError::Invalid(format!("the address {text}")));
    if url.len() > URL_BYTES_MAX {
        return invalid(&format!("is longer than {URL_BYTES_MAX} bytes"));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`')) {
        return invalid("has characters that are not allowed in an address");
    }
    let local = |authority: &str| {
        let host = authority.strip_prefix("[::1]").or_else(|| authority.strip_prefix("127.0.0.1"));
        host.or_else(|| authority.strip_prefix("localhost"))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let authority = |rest: &str| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
    let (host, encrypted) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (authority(rest), true),
        (None, Some(rest)) => (authority(rest), false),
        (None, None) => return invalid("must begin with https://"),
    };
    if host.is_empty() || host.contains('@') {
        return invalid("must name a host, and no user");
    }
    if !encrypted && !local(&host) {
        return invalid("must begin with https://");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_place_is_as_short_as_any_other_and_belongs_to_one_question() {
        assert_eq!(placed_key("2.1", "who"), "2.1/who");
        let long = "k".repeat(KEY_BYTES_MAX);
        let other = format!("{}x", "k".repeat(KEY_BYTES_MAX - 1));
        let keys = [placed_key("10000.2.3", &long), placed_key("10000.2.3", &other), placed_key("10000.2.4", &long)];
        assert!(keys.iter().all(|key| key.len() <= KEY_BYTES_MAX), "{keys:?}");
        assert!(keys[0] != keys[1] && keys[0] != keys[2], "{keys:?}");
        // One that no client takes stays one.
        assert!(placed_key("1", &format!("{long}k")).len() > KEY_BYTES_MAX);
    }

    #[test]
    fn a_stored_question_needs_what_it_needed_when_it_was_prepared() {
        let form = ClientQuestion::Form {
            message: "Who?".to_owned(),
            schema_json: "{\"type\":\"object\",\"properties\":{}}".to_owned(),
        };
        let page = ClientQuestion::Page { message: "There.".to_owned(), url: "https://a.example/".to_owned() };
        let sampled = |more: &str| {
            let text = "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}";
            ClientQuestion::Sampling { params_json: format!("{{\"messages\":[{text}],\"maxTokens\":9{more}}}") }
        };
        let questions = [
            form,
            page,
            ClientQuestion::Roots,
            sampled(""),
            sampled(",\"tools\":[]"),
            sampled(",\"toolChoice\":{}"),
            sampled(",\"includeContext\":\"none\""),
            sampled(",\"includeContext\":\"allServers\""),
        ];
        for question in questions {
            let terms = AskTerms {
                asker: None,
                need: "",
                answer_bytes_max: 1_000,
                answered_within: std::time::Duration::ZERO,
                permits: None,
            };
            let ask = KeyedQuestion { key: "k".to_owned(), question };
            let prepared = PreparedQuestion::new(ask, terms, Revision::V2025_11_25).unwrap();
            let expected: Vec<AskNeed> = prepared.lacking(AskCapabilities::default()).collect();
            let stored = prepared.task_json(Some("t"));
            assert_eq!(stored_needs(&stored), Some(expected), "{stored}");
        }
        assert_eq!(stored_needs("{\"method\":\"other\",\"params\":{}}"), None);
    }
}
