//! Secrets that were taken out of a recording, and what stands for them in a replay.
//!
//! A recording has `[redacted:NAME]` wherever a value was. A replay gives its component a text of
//! the value's length there, so that it computes as much. In its answer the mark comes back.
//!
//! A component may get a mark as it is: answers of servers have their secrets taken out before it
//! reads them. Such a mark is written `[was-redacted:NAME]`, and is itself again in a replay.
use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::tapes::{TAPE_BYTES_MAX, TapeEntry};
use toolcell_sandbox::{CallFailure, Redactor, ReplayEnd};

/// Bytes of what stands for a secret, at most: longer values of secrets are refused.
const STAND_IN_BYTES_MAX: usize = 64 << 10;

/// In a mark.
const MARK: &[u8] = b"redacted:";

/// In a mark that the component got.
const OWN_MARK: &[u8] = b"was-redacted:";

/// Takes secrets out of what a component asked for and got.
pub(super) fn redact(redactor: &Redactor, entries: &mut [TapeEntry]) {
    for entry in entries {
        entry.arguments.iter_mut().chain(&mut entry.results).for_each(|value| redact_value(redactor, value));
        if let Some(ended) = &mut entry.ended {
            *ended = redactor.text(ended).into_owned();
        }
    }
}

/// Takes secrets out of a value.
fn redact_value(redactor: &Redactor, value: &mut Value) {
    let clean = |bytes: &[u8]| {
        let own = replace(bytes, MARK, OWN_MARK);
        match redactor.bytes(own.as_deref().unwrap_or(bytes)) {
            Cow::Owned(clean) => Some(clean),
            Cow::Borrowed(_) => own,
        }
    };
    each_text(value, &mut |kind, text| change(kind, text, clean));
}

/// Changes a text, which may be bytes in base64.
fn change(kind: Text, text: &mut String, mut changed: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
    match kind {
        Text::Plain => {
            if let Some(bytes) = changed(text.as_bytes()) {
                *text = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        Text::Bytes => {
            if let Some(bytes) = BASE64.decode(text.as_bytes()).ok().and_then(|bytes| changed(&bytes)) {
                *text = BASE64.encode(bytes);
            }
        }
    }
}

/// Puts texts of the secrets' lengths where their marks are.
///
/// # Errors
/// They would be longer than a tape: a small file may say so.
pub(crate) fn fill(secrets: &BTreeMap<String, usize>, entries: &mut [TapeEntry]) -> Result<(), String> {
    let mut room = usize::try_from(TAPE_BYTES_MAX).unwrap_or(usize::MAX);
    let mut fits = true;
    for entry in entries {
        entry.arguments.iter_mut().chain(&mut entry.results).for_each(|value| {
            each_text(value, &mut |kind, text| {
                change(kind, text, |bytes| {
                    match room.checked_sub(lengths(secrets, bytes)) {
                        Some(less) => room = less,
                        None => fits = false,
                    }
                    if fits { filled(secrets, bytes) } else { None }
                });
            });
        });
    }
    if fits { Ok(()) } else { Err("the secrets that its recording leaves out are longer than a recording".to_owned()) }
}

/// The answer with marks where the texts are that stand for secrets.
pub(crate) fn marked_result(secrets: &BTreeMap<String, usize>, result: GuestResult) -> GuestResult {
    if secrets.is_empty() {
        return result;
    }
    // Neither a mark nor what stands for a secret has a character that JSON escapes.
    let text = serde_json::to_string(&result).unwrap_or_default();
    serde_json::from_str(&marked(secrets, &text)).unwrap_or(result)
}

/// The failure with marks where the texts are that stand for secrets: a component may ask for a URL
/// that has one.
pub(crate) fn marked_failure(secrets: &BTreeMap<String, usize>, failure: CallFailure) -> CallFailure {
    let CallFailure::Replayed(ReplayEnd::Asks(mut questions)) = failure else { return failure };
    for question in &mut questions {
        question.asked = marked(secrets, &question.asked);
        question.name = question.name.take().map(|name| marked(secrets, &name));
    }
    CallFailure::Replayed(ReplayEnd::Asks(questions))
}

/// The text with marks where the texts are that stand for secrets.
fn marked(secrets: &BTreeMap<String, usize>, text: &str) -> String {
    let mut marked = text.to_owned();
    for (name, bytes) in secrets {
        let stand_in = stand_in(name, *bytes);
        if !stand_in.is_empty() {
            marked = marked.replace(&stand_in, &mark(name));
        }
    }
    marked
}

/// Bytes of all texts that will stand for secrets there.
fn lengths(secrets: &BTreeMap<String, usize>, bytes: &[u8]) -> usize {
    let count = |mark: &str| bytes.windows(mark.len()).filter(|window| *window == mark.as_bytes()).count();
    secrets.iter().map(|(name, length)| count(&mark(name)).saturating_mul(*length)).fold(0, usize::saturating_add)
}

/// The bytes with texts that stand for secrets; `None` if they have no mark.
fn filled(secrets: &BTreeMap<String, usize>, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut filled = None;
    for (name, length) in secrets {
        let mark = mark(name);
        let stand_in = stand_in(name, *length);
        let more = replace(filled.as_deref().unwrap_or(bytes), mark.as_bytes(), stand_in.as_bytes());
        filled = more.or(filled);
    }
    replace(filled.as_deref().unwrap_or(bytes), OWN_MARK, MARK).or(filled)
}

/// The bytes with `to` in place of each `from`; `None` if they have none.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    if !bytes.windows(from.len()).any(|window| window == from) {
        return None;
    }
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(from) {
            Some(after) => {
                replaced.extend(to);
                rest = after;
            }
            None => {
                replaced.push(*first);
                rest = after;
            }
        }
    }
    Some(replaced)
}

fn mark(name: &str) -> String {
    format!("[redacted:{name}]")
}

/// What stands for a secret: as long as its value, the same each time, and like no other text.
fn stand_in(name: &str, bytes: usize) -> String {
    let pattern = format!("stand-in-{name}-");
    pattern.chars().filter(char::is_ascii).cycle().take(bytes.min(STAND_IN_BYTES_MAX)).collect()
}

/// A text of a recording.
#[derive(Clone, Copy)]
enum Text {
    Plain,
    /// Bytes in base64.
    Bytes,
}

/// Calls `change` with each text of a value.
fn each_text(value: &mut Value, change: &mut impl FnMut(Text, &mut String)) {
    match value {
        Value::String(text) => change(Text::Plain, text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(fields) => {
            let is_bytes = fields.len() == 1;
            for (key, value) in fields {
                match value {
                    Value::String(text) if is_bytes && key == "base64" => change(Text::Bytes, text),
                    value => each_text(value, change),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replay_gets_a_text_of_the_length_that_the_secret_had_and_its_answer_the_mark() {
        let secrets = BTreeMap::from([("KEY".to_owned(), 20), ("OTHER".to_owned(), 3)]);
        let binary = [b"\xff".as_slice(), b"[redacted:OTHER]", b"\xfe"].concat();
        let given =
            json!({"ok": [["A", "x [redacted:KEY] y"], {"base64": BASE64.encode(binary)}, {"text": "[redacted:NO]"}]});
        let mut entries = [TapeEntry { results: vec![given], ..TapeEntry::default() }];
        fill(&secrets, &mut entries).unwrap();
        let filled = json!({"ok": [
            ["A", "x stand-in-KEY-stand-i y"], {"base64": BASE64.encode(b"\xffsta\xfe")}, {"text": "[redacted:NO]"}
        ]});
        assert_eq!(entries[0].results, [filled]);
        assert_eq!(marked(&secrets, "so stand-in-KEY-stand-i, then"), "so [redacted:KEY], then");
        let asks = |url: &str| {
            let asked = url.to_owned();
            let question = toolcell_sandbox::ReplayQuestion { name: Some(asked.clone()), is_new: true, asked };
            CallFailure::Replayed(ReplayEnd::Asks(vec![question]))
        };
        let failure = marked_failure(&secrets, asks("GET https://a.example/?k=stand-in-KEY-stand-i"));
        assert_eq!(failure, asks("GET https://a.example/?k=[redacted:KEY]"));
    }

    #[test]
    fn a_small_recording_does_not_become_a_large_one() {
        let secrets = BTreeMap::from([("KEY".to_owned(), usize::MAX / 2)]);
        let marks = json!("[redacted:KEY]".repeat(1_000));
        let mut entries = [TapeEntry { results: vec![marks.clone()], ..TapeEntry::default() }];
        assert!(fill(&secrets, &mut entries).is_err());
        assert_eq!(entries[0].results, [marks]);
    }

    #[test]
    fn a_mark_that_the_component_got_is_itself_again() {
        let secrets = BTreeMap::from([("KEY".to_owned(), 20)]);
        let got = [
            json!("a [redacted:KEY] b"),
            json!("was-redacted: and redacted:"),
            json!({"base64": BASE64.encode(b"\xff[redacted:KEY]")}),
        ];
        let mut entries = [TapeEntry { results: got.to_vec(), ..TapeEntry::default() }];
        redact(&Redactor::default(), &mut entries);
        assert_eq!(entries[0].results[0], "a [was-redacted:KEY] b");
        fill(&secrets, &mut entries).unwrap();
        assert_eq!(entries[0].results, got);
    }
}
