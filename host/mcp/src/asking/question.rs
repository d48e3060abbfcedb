//! Questions as they are sent: checked against the revision, cleaned of misleading characters, and
//! encoded once.

use ring::digest::{SHA256, digest};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::capabilities::AskNeed;
use super::form::ClientForm;
use super::pending::AskName;
use super::{AskCapabilities, AskTerms, ClientAskError, ClientQuestion, KeyedQuestion, QuestionKind, sampling};
use crate::frame::{Object, base64, json_text, push_string};
use crate::revision::Revision;
use crate::sanitize;
use crate::sealing::hex;
use crate::task::RELATED_TASK;

/// Longest key, in bytes. Every frame of its question contains it.
const KEY_BYTES_MAX: usize = 64;

/// Bytes of a digest that stand for a key which is too long with its place.
const KEY_DIGEST_BYTES: usize = 16;

/// Longest address of a page, in bytes. Browsers and proxies accept this much.
const URL_BYTES_MAX: usize = 2_048;

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
                "elicitation/create"
            }
            ClientQuestion::Page { message, url } => {
                check_url(&url)?;
                let mut params = Object::open(&mut out);
                params.text("mode", "url");
                params.text("message", &said(asker, &message)?);
                params.text("url", &url);
                params.close();
                "elicitation/create"
            }
            ClientQuestion::Sampling { params_json } => {
                let (params, needed) = sampling::params(&params_json, rich)?;
                out = params.into_bytes();
                needs = needed;
                "sampling/createMessage"
            }
            ClientQuestion::Roots => {
                out.extend_from_slice(b"{}");
                "roots/list"
            }
        };
        let params = String::from_utf8(out).ok().and_then(|text| RawValue::from_string(text).ok());
        let params = params.ok_or_else(|| ClientAskError::Invalid("it cannot be written as JSON".to_owned()))?;
        let permits = terms.permits.map(str::to_owned);
        Ok(Self { key, kind, method, params, form, sampling: needs, permits })
    }

    /// Capabilities that the question needs and the client does not declare.
    pub(super) fn lacking(&self, capabilities: AskCapabilities) -> impl Iterator<Item = AskNeed> + use<> {
        let tools = self.sampling.tools.then_some(AskNeed::SamplingTools);
        let context = self.sampling.context.then_some(AskNeed::SamplingContext);
        let needs = [Some(AskNeed::Kind(self.kind)), tools, context];
        needs.into_iter().flatten().filter(move |need| !capabilities.meets(*need))
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
            match related.map(|id| self.params_of_task(id)) {
                Some(params) => object.json("params", &params),
                None => object.raw("params", self.params.get()),
            }
        })
    }

    /// The params with the name of the task, and an id for a page.
    fn params_of_task(&self, id: &str) -> Map<String, Value> {
        let mut params: Map<String, Value> = serde_json::from_str(self.params.get()).unwrap_or_default();
        if self.kind == QuestionKind::Page {
            params.insert("elicitationId".to_owned(), format!("toolcell/page/{id}/{}", self.key).into());
        }
        let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(meta) = meta {
            meta.insert(RELATED_TASK.to_owned(), serde_json::json!({ "taskId": id }));
        }
        params
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
}
