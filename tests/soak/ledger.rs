//! The ledger of open requests. Every frame that comes is checked against it, and every error is
//! recorded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::calls::{Era, Kind, Wanted};

/// Findings to keep with their text; further ones are only counted. Nobody reads more of the same
/// kind.
const FINDINGS_KEPT: usize = 20;

/// Bytes of a frame that a finding quotes.
const QUOTE_BYTES: usize = 400;

/// One request that has no answer yet.
#[derive(Debug)]
pub struct Open {
    /// Its purpose.
    pub kind: Kind,
    /// Its era.
    pub era: Era,
    /// The content of its right answer.
    pub wanted: Wanted,
    /// Its tool, or its method.
    pub name: String,
    begun: Instant,
    progress: f64,
}

impl Open {
    /// A request without an answer so far.
    pub fn new(kind: Kind, era: Era, wanted: Wanted, name: impl Into<String>) -> Self {
        Self { kind, era, wanted, name: name.into(), begun: Instant::now(), progress: f64::NEG_INFINITY }
    }
}

/// The state of all requests.
#[derive(Debug, Default)]
pub struct Ledger {
    open: HashMap<u64, Open>,
    /// Endless calls that were cancelled. One whose sandbox was killed before may still say so.
    crossing: HashSet<u64>,
    /// Lines sent that were not JSON and whose error has not come yet.
    unreadable: u64,
    /// Requests that were sent, by kind.
    pub sent: BTreeMap<Kind, u64>,
    /// Right answers.
    pub answered: u64,
    /// Calls that were cancelled and got no answer.
    pub cancelled: u64,
    /// Calls whose sandbox was killed under them, which their answer said.
    pub sandbox_ended: u64,
    /// True if sandboxes are killed.
    pub kills: bool,
    /// Progress and log messages.
    pub events: u64,
    /// The time of the slowest right answer, and its request.
    pub slowest: (Duration, String),
    /// The first few findings.
    pub findings: Vec<String>,
    /// The number of findings.
    pub found: u64,
    /// True once the output has ended.
    pub ended: bool,
}

/// The parts of a frame that are checked.
#[derive(Deserialize)]
struct Frame<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    result: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: u64,
    progress: f64,
}

impl Ledger {
    /// Records a request that is about to be sent.
    pub fn enter(&mut self, id: u64, open: Open) {
        *self.sent.entry(open.kind).or_default() += 1;
        self.open.insert(id, open);
    }

    /// Records a line that is not JSON and is about to be sent.
    pub fn enter_unreadable(&mut self) {
        *self.sent.entry(Kind::Refused).or_default() += 1;
        self.unreadable += 1;
    }

    /// Records that an endless call is about to be cancelled. From now on no frame may come for it,
    /// unless its sandbox was killed before the host read that.
    pub fn cancel(&mut self, id: u64) {
        if self.open.remove(&id).is_some() {
            self.cancelled += 1;
            if self.kills {
                self.crossing.insert(id);
            }
        }
    }

    /// Closes raced calls without an answer: the host has read everything before a certain line, so
    /// they get none.
    pub fn settle_raced(&mut self) {
        self.crossing.clear();
        let before = self.open.len();
        self.open.retain(|_, open| open.kind != Kind::Raced);
        self.cancelled += u64::try_from(before - self.open.len()).unwrap_or_default();
    }

    /// Requests that must still be answered.
    pub fn owed(&self) -> usize {
        let owed = self.open.values().filter(|open| open.kind != Kind::Raced).count();
        owed + usize::try_from(self.unreadable).unwrap_or(usize::MAX)
    }

    /// Records each request that was not answered in time as lost.
    pub fn give_up(&mut self) {
        let lost: Vec<String> = self.open.drain().map(|(id, open)| format!("no answer to {id}: {open:?}")).collect();
        lost.into_iter().for_each(|finding| self.find(finding));
        if std::mem::take(&mut self.unreadable) > 0 {
            self.find("no answer to a line that is not JSON".to_owned());
        }
    }

    /// Records an error.
    pub fn find(&mut self, finding: String) {
        self.found += 1;
        if self.findings.len() < FINDINGS_KEPT {
            self.findings.push(finding);
        }
    }

    /// Checks a received line.
    pub fn take(&mut self, line: &[u8]) {
        let taken = match serde_json::from_slice::<Frame<'_>>(line) {
            Ok(frame) => self.take_frame(frame),
            Err(error) => Err(format!("a line that is not a frame ({error})")),
        };
        if let Err(wrong) = taken {
            let text = String::from_utf8_lossy(line);
            let quoted = text.get(..text.floor_char_boundary(QUOTE_BYTES)).unwrap_or_default();
            self.find(format!("{wrong}: {}", quoted.trim_end()));
        }
    }

    fn take_frame(&mut self, frame: Frame<'_>) -> Result<(), String> {
        if let Some(method) = frame.method {
            self.events += 1;
            return match method.as_str() {
                "notifications/progress" => self.take_progress(frame.params),
                "notifications/message" => Ok(()),
                _ => Err("an event that nobody asked for".to_owned()),
            };
        }
        let id = match frame.id {
            None | Some(Value::Null) => return self.take_refusal(frame.error.as_ref()),
            Some(id) => id,
        };
        let number = id.as_u64().or_else(|| id.as_str()?.strip_prefix('s')?.parse().ok());
        let crossed = number.is_some_and(|number| self.crossing.remove(&number));
        if crossed && is_of_killed(frame.result.as_ref()) {
            self.cancelled -= 1;
            self.sandbox_ended += 1;
            return Ok(());
        }
        let open = number.and_then(|number| self.open.remove(&number)).ok_or("a reply to nobody, or a second one")?;
        if number.map(|number| open.era.id(number)) != Some(id) {
            return Err("an id that is not the request's".to_owned());
        }
        let is_modern = frame.result.as_ref().is_none_or(|result| result["resultType"] == "complete");
        let is_legacy = frame.result.as_ref().is_none_or(|result| result.get("resultType").is_none());
        if !(if open.era == Era::Modern { is_modern } else { is_legacy }) {
            return Err("a result of the other era".to_owned());
        }
        if self.kills && is_of_killed(frame.result.as_ref()) {
            self.sandbox_ended += 1;
            return Ok(());
        }
        check(&open.wanted, frame.result.as_ref(), frame.error.as_ref())?;
        self.answered += 1;
        let took = open.begun.elapsed();
        if took > self.slowest.0 {
            self.slowest = (took, open.name);
        }
        Ok(())
    }

    fn take_progress(&mut self, params: Option<&RawValue>) -> Result<(), String> {
        let read = params.and_then(|params| serde_json::from_str::<Progress>(params.get()).ok());
        let Progress { progress_token, progress } = read.ok_or("progress without its members")?;
        let open = self.open.get_mut(&progress_token).ok_or("progress for no open call")?;
        let before = std::mem::replace(&mut open.progress, progress);
        if progress > before { Ok(()) } else { Err(format!("progress after {before}")) }
    }

    fn take_refusal(&mut self, error: Option<&Value>) -> Result<(), String> {
        let is_parse_error = error.is_some_and(|error| error["code"] == -32_700);
        self.unreadable = self.unreadable.checked_sub(1).filter(|_| is_parse_error).ok_or("a refusal of nothing")?;
        self.answered += 1;
        Ok(())
    }
}

/// True if this says that the call's sandbox was ended by a signal. It says so of a component that
/// is held back as well, but none is to be: the soak has killed them.
fn is_of_killed(result: Option<&Value>) -> bool {
    let text = result
        .filter(|result| result["isError"] == true)
        .and_then(|result| result.pointer("/content/0/text")?.as_str());
    text.is_some_and(|text| text.starts_with("the sandbox was ended: ") && !text.contains("held back"))
}

/// True if this is the right answer.
fn check(wanted: &Wanted, result: Option<&Value>, error: Option<&Value>) -> Result<(), String> {
    let is_error = |result: &Value| result["isError"] == true;
    let text = |result: &Value| match result["content"].as_array().map(Vec::as_slice) {
        Some([content]) => content["text"].as_str().map(str::to_owned),
        _ => None,
    };
    let is_right = match (wanted, result, error) {
        (Wanted::Refusal(code), None, Some(error)) => error["code"] == *code,
        (Wanted::Text(wanted), Some(result), None) => !is_error(result) && text(result).as_ref() == Some(wanted),
        (Wanted::Error(wanted), Some(result), None) => {
            is_error(result) && text(result).as_deref() == Some(wanted.as_ref())
        }
        (Wanted::ErrorBeginning(start), Some(result), None) => {
            is_error(result) && text(result).is_some_and(|text| text.starts_with(start))
        }
        (Wanted::Structured(wanted), Some(result), None) => {
            !is_error(result) && result.get("structuredContent") == Some(wanted)
        }
        (Wanted::Member(member), Some(result), None) => result.get(member).is_some(),
        (Wanted::Empty, Some(result), None) => result.as_object().is_some_and(|result| result.is_empty()),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("not {wanted:?}")) }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, Open};
    use crate::calls::{Era, Kind, Wanted};

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.enter(1, Open::new(Kind::Good, Era::Legacy, Wanted::Text("one".to_owned()), "one"));
        ledger.enter(2, Open::new(Kind::Cancelled, Era::Modern, Wanted::Nothing, "two"));
        ledger
    }

    #[test]
    fn the_right_answer_settles_a_request() {
        let mut ledger = ledger();
        ledger
            .take(br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#);
        ledger.take(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one"}],"isError":false}}"#);
        ledger.cancel(2);
        assert_eq!((ledger.owed(), ledger.answered, ledger.cancelled), (0, 1, 1));
        assert_eq!(ledger.findings, [""; 0]);
    }

    #[test]
    fn the_end_of_a_sandbox_is_an_answer_only_where_sandboxes_are_killed() {
        let ended = br#"{"id":1,"result":{"content":[{"type":"text","text":"the sandbox was ended: signal: 9"}],"isError":true}}"#;
        for kills in [true, false] {
            let mut ledger = Ledger { kills, ..ledger() };
            ledger.take(ended);
            assert_eq!((ledger.sandbox_ended, ledger.found), (u64::from(kills), u64::from(!kills)));
            ledger.take(ended);
            assert_eq!(ledger.found, 1 + u64::from(!kills), "a second answer is one too many");
        }
    }

    #[test]
    fn whatever_is_wrong_is_found() {
        let wrong: [&[u8]; 8] = [
            b"not json",
            br#"{"id":9,"result":{}}"#,
            br#"{"id":"s1","result":{}}"#,
            br#"{"id":1,"result":{"content":[{"text":"two"}]}}"#,
            br#"{"id":1,"result":{"resultType":"complete","content":[{"text":"one"}]}}"#,
            br#"{"id":"s2","result":{"resultType":"complete","content":[{"text":"one"}]}}"#,
            br#"{"id":null,"error":{"code":-32700}}"#,
            br#"{"method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
        ];
        for line in wrong {
            let mut ledger = ledger();
            ledger.take(line);
            assert_eq!(ledger.found, 1, "{}", String::from_utf8_lossy(line));
        }
        let mut ledger = ledger();
        ledger.give_up();
        assert_eq!(ledger.found, 2, "both are lost");
    }
}
