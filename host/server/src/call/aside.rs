//! Results of scripts that are longer than an answer may be. They are kept for the client that
//! called, in pages, and the answer says where to read them.
//!
//! Promise: kept resources are bounded.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use toolcell_audit::Outcome;
use toolcell_mcp::{CallContext, CallResult, ContentKind, ResourceBody, ResourceLink, ResultContent};
use toolcell_policy::quantity::{show_bytes, show_count};
use toolcell_policy::{CODE, Limit, SCRIPT_RESULT_BYTES};
use toolcell_sandbox::CallFailure;

use super::StartedCall;
use super::execute::EndedCall;
use crate::replicas::random_name;

/// Bytes of a page. 64 KiB: about as much as a model reads at once.
const PAGE_BYTES: usize = 64 << 10;

/// Bytes of a long result that the answer begins with, so that a model sees what it is.
const SHOWN_BYTES: usize = 512;

/// What stands before what a script wrote, in its second text.
const CONSOLE: &str = "console:\n";

/// The media type of pages: a part of a JSON text is none.
const TEXT: &str = "text/plain";

/// What a script's answer may hold, and whether more can be kept.
pub(super) struct ScriptAnswer {
    output_bytes: u64,
    keeps: bool,
}

/// What the engine of scripts gives as structured.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
    #[serde(borrow, default)]
    console: Option<Cow<'a, str>>,
}

/// What the answer has instead.
#[derive(Serialize)]
struct Shortened<'a> {
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    console: Option<&'a str>,
    kept: Kept,
}

#[derive(Default, Serialize)]
struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    console: Option<Pages>,
}

/// A text in pages.
#[derive(Serialize)]
struct Pages {
    /// The address of the first page. Those of others end with their number.
    uri: String,
    pages: usize,
    bytes: usize,
}

impl ScriptAnswer {
    /// Of a call of `run_code`; `None` for other tools.
    pub(super) fn of(started: &StartedCall<'_>, context: &CallContext) -> Option<Self> {
        let target = started.target;
        let is_script = target.component.name() == CODE;
        let output_bytes = target.limits.output_bytes();
        is_script.then_some(Self { output_bytes, keeps: context.keeps_resources })
    }

    /// The failure of a script: what it may return is more than its `output`.
    pub(super) fn named(failure: CallFailure) -> CallFailure {
        if matches!(failure, CallFailure::OverLimit { limit: Limit::Output, .. }) { too_long() } else { failure }
    }

    /// True if shortening this result takes longer than a thread with other duties can spare.
    pub(super) fn takes_long(&self, ended: &EndedCall) -> bool {
        bytes_of(&ended.result) > PAGE_BYTES as u64
    }

    /// The end of a script whose answer is short enough, whatever it gave.
    pub(super) fn shorten(&self, mut ended: EndedCall) -> EndedCall {
        let log = take_log(&mut ended.result);
        if !matches!(ended.outcome, Outcome::Ok | Outcome::ToolError) {
            return ended;
        }
        let is_long = bytes_of(&ended.result) > self.output_bytes;
        if !is_long && (log.is_none() || !self.keeps) {
            return ended;
        }
        match self.shortened(&ended.result, log, is_long) {
            Ok(result) => EndedCall { result, ..ended },
            Err(text) => {
                let result = CallResult { meta: ended.result.meta, ..CallResult::error(text.as_str()) };
                EndedCall { outcome: Outcome::LimitExceeded, detail: text, result, ..ended }
            }
        }
    }

    fn shortened(&self, long: &CallResult, log: Option<String>, is_long: bool) -> Result<CallResult, String> {
        let mut texts = long.content.iter().filter_map(text_of).peekable();
        let said = texts.next().unwrap_or_default();
        let console = texts.next_if(|text| text.starts_with(CONSOLE)).and_then(|text| text.strip_prefix(CONSOLE));
        if is_long && !self.keeps {
            let most = show_bytes(self.output_bytes);
            return Err(format!(
                "the result is larger than {most} (limit \"output\"), and nothing is kept for this client: return less"
            ));
        }
        if said.len() as u64 > SCRIPT_RESULT_BYTES {
            return Err(too_long().to_string());
        }
        let id = random_name()
            .ok_or("the result is too long for an answer: the machine gives no random numbers to keep it")?;
        let given: Option<Given<'_>> =
            long.structured.as_ref().and_then(|structured| serde_json::from_str(structured.get()).ok());
        // What is longer makes more room.
        let sets_console_aside = is_long && console.is_some_and(|console| console.len() >= said.len());
        let sets_result_aside = is_long && (!sets_console_aside || said.len() as u64 > self.output_bytes / 4);
        let log = log.or_else(|| console.filter(|_| sets_console_aside).map(str::to_owned));
        let mut short = Shorter { id, kept: Kept::default(), result: CallResult::default() };
        if sets_result_aside {
            short.lay_result(said, self.output_bytes);
        } else {
            short.result.content.push(ResultContent::text(said));
        }
        let console = console.filter(|_| !sets_console_aside);
        console.into_iter().for_each(|text| short.result.content.push(ResultContent::text(format!("{CONSOLE}{text}"))));
        log.into_iter().for_each(|log| short.lay_console(&log));
        // What the script was denied.
        short.result.content.extend(texts.map(ResultContent::text));
        let Shorter { kept, mut result, .. } = short;
        result.structured = given.and_then(|given| {
            let result = (!sets_result_aside).then_some(given.result);
            let console = given.console.as_deref().filter(|_| !sets_console_aside);
            to_raw_value(&Shortened { result, console, kept }).ok()
        });
        Ok(CallResult { is_error: long.is_error, meta: long.meta.clone(), ..result })
    }
}

/// An answer in the making.
struct Shorter {
    /// A random name, by which nobody else finds the pages.
    id: String,
    kept: Kept,
    result: CallResult,
}

impl Shorter {
    fn lay_result(&mut self, said: &str, output_bytes: u64) {
        let pages = self.lay("result", said);
        let (shown, _) = said.split_at(said.floor_char_boundary(SHOWN_BYTES));
        let most = show_bytes(output_bytes);
        let text = format!(
            "The result has {} bytes, more than the {most} of an answer (limit \"output\"). {} A script that returns \
             less needs none of this. The result begins:\n{shown}",
            show_count(said.len() as u64),
            pages.how_to_read(),
        );
        self.result.content.insert(0, ResultContent::text(text));
        self.kept.result = Some(pages);
    }

    fn lay_console(&mut self, log: &str) {
        let pages = self.lay("console", log);
        let text = format!("The console has {} bytes. {}", show_count(log.len() as u64), pages.how_to_read());
        self.result.content.push(ResultContent::text(text));
        self.kept.console = Some(pages);
    }

    /// Puts a text into pages, and links to the first.
    fn lay(&mut self, what: &str, text: &str) -> Pages {
        let mut count: usize = 0;
        let mut rest = text;
        let uri = |number: usize| format!("toolcell://script/{}/{what}/{number}", self.id);
        let mut first_bytes = 0;
        while !rest.is_empty() || count == 0 {
            let (page, behind) = rest.split_at(rest.floor_char_boundary(PAGE_BYTES));
            count = count.saturating_add(1);
            if count == 1 {
                first_bytes = page.len();
            }
            let body = ResourceBody::Text(page.to_owned());
            let kind = ContentKind::EmbeddedResource { uri: uri(count), mime_type: Some(TEXT.to_owned()), body };
            self.result.aside.push(ResultContent::new(kind));
            rest = behind;
        }
        let pages = Pages { uri: uri(1), pages: count, bytes: text.len() };
        let link = ResourceLink {
            uri: pages.uri.clone(),
            name: format!("{what}, page 1 of {count}"),
            mime_type: Some(TEXT.to_owned()),
            size_bytes: Some(first_bytes as u64),
            ..ResourceLink::default()
        };
        self.result.content.push(ResultContent::new(ContentKind::ResourceLink(link)));
        pages
    }
}

impl Pages {
    /// Sentences for a model and a person.
    fn how_to_read(&self) -> String {
        let Self { uri, pages, .. } = self;
        let page = show_bytes(PAGE_BYTES as u64);
        let where_from = match pages {
            1 => format!("in one page, {uri}"),
            pages => {
                let beginning = uri.trim_end_matches('1');
                format!("in {pages} pages of {page}, {uri} to {beginning}{pages}")
            }
        };
        format!(
            "It is kept for this client: read it with resources/read, {where_from}. It is kept for half an hour, or as \
             long as the session, unless newer results need its room."
        )
    }
}

/// The failure of a script that returned more than is kept.
fn too_long() -> CallFailure {
    CallFailure::OverLimit { limit: Limit::Output, value: show_bytes(SCRIPT_RESULT_BYTES) }
}

/// Takes what a script wrote out of its result, where that is too long for an answer.
fn take_log(result: &mut CallResult) -> Option<String> {
    let place = result.content.iter().position(|item| matches!(item.kind, ContentKind::EmbeddedResource { .. }))?;
    match result.content.remove(place).kind {
        ContentKind::EmbeddedResource { body: ResourceBody::Text(text), .. } => Some(text),
        _ => None,
    }
}

fn text_of(item: &ResultContent) -> Option<&str> {
    match &item.kind {
        ContentKind::Text(text) => Some(text),
        _ => None,
    }
}

/// Bytes of an answer as they count.
fn bytes_of(result: &CallResult) -> u64 {
    let texts: usize = result.content.iter().filter_map(text_of).map(str::len).sum();
    let structured = result.structured.as_ref().map_or(0, |structured| structured.get().len());
    texts.saturating_add(structured) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(output_bytes: u64, result: CallResult) -> EndedCall {
        let ended = EndedCall { result, ..EndedCall::refused(Outcome::Ok, String::new()) };
        ScriptAnswer { output_bytes, keeps: true }.shorten(ended)
    }

    fn script(said: &str, structured: &str) -> CallResult {
        let structured = RawValue::from_string(structured.to_owned()).ok();
        CallResult { structured, ..CallResult::text(said) }
    }

    fn pages(result: &CallResult) -> Vec<(&str, &str)> {
        let mut pages = Vec::new();
        for item in &result.aside {
            let ContentKind::EmbeddedResource { uri, body: ResourceBody::Text(text), .. } = &item.kind else {
                panic!("{item:?}")
            };
            pages.push((uri.as_str(), text.as_str()));
        }
        pages
    }

    #[test]
    fn pages_together_are_the_result_and_no_character_is_cut() {
        let said = "é".repeat(100_000);
        let ended = answered(1_000, script(&said, &format!("{{\"result\":\"{said}\"}}")));
        let pages = pages(&ended.result);
        assert_eq!(pages.iter().map(|(_, text)| *text).collect::<String>(), said);
        assert_eq!(pages.len(), 4);
        let (uri, _) = pages[3];
        assert!(uri.starts_with("toolcell://script/") && uri.ends_with("/result/4"), "{uri}");
        assert!(bytes_of(&ended.result) < 2_000);
        let structured = ended.result.structured.unwrap();
        assert!(structured.get().starts_with("{\"result\":null,\"kept\":{\"result\":{\"uri\":"), "{structured}");
        assert!(structured.get().ends_with("\"pages\":4,\"bytes\":200000}}}"), "{structured}");
    }

    #[test]
    fn a_short_result_beside_a_long_console_stays_in_the_answer() {
        let mut result = script("7", "{\"result\":7,\"console\":\"c\"}");
        result.content.push(ResultContent::text(format!("{CONSOLE}{}", "c".repeat(2_000))));
        let ended = answered(1_000, result);
        let texts: Vec<&str> = ended.result.content.iter().filter_map(text_of).collect();
        assert!(texts[0] == "7" && texts[1].contains("/console/1"), "{texts:?}");
        assert!(ended.result.structured.unwrap().get().starts_with("{\"result\":7,\"kept\":{\"console\""));
    }

    #[test]
    fn where_nothing_is_kept_the_limit_is_said() {
        let long =
            EndedCall { result: script(&"x".repeat(99), "{}"), ..EndedCall::refused(Outcome::Ok, String::new()) };
        let ended = ScriptAnswer { output_bytes: 64, keeps: false }.shorten(long);
        assert_eq!(ended.outcome, Outcome::LimitExceeded);
        assert!(ended.detail.contains("larger than 64B (limit \"output\")"), "{}", ended.detail);
    }
}
