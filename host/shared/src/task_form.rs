//! The format of task files, and of letters to the process that runs a task: a line of numbers,
//! then texts one after the other.
use std::sync::Arc;

use crate::tasks::{TaskRecord, TaskStatus};

/// The first word of a task's file, with the version of its format. Version 1 had neither numbers
/// nor questions.
const FORM: &str = "toolcell-task-2";
const FORM_BEFORE: &str = "toolcell-task-1";

/// The prefix of that word in all versions.
const FORM_BEGINS: &str = "toolcell-task-";

/// Most bytes of the first line of a later version.
const HEAD_BYTES_MAX: usize = 256;

/// The first word of a letter.
const LETTER: &str = "toolcell-letter-1";

/// Bits of a task's number below the milliseconds of its beginning.
const NUMBER_BITS: u32 = 20;

/// A task as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTask {
    pub caller: String,
    pub record: TaskRecord,
}

/// A message about a task, from another process to the one that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    pub caller: String,
    pub says: LetterContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterContent {
    /// The caller cancels it, with this sentence.
    Cancels(String),
    /// The caller answers, by the keys of questions.
    Answers(Vec<(String, String)>),
}

/// The number of a task that begins now, greater than the last one of this process. Numbers of all
/// processes are in the order of beginnings, as far as their clocks agree; `own` keeps those of one
/// millisecond distinct.
pub fn next_number(now_ms: u64, own: u64, last: u64) -> u64 {
    let own = own & ((1 << (NUMBER_BITS - 6)) - 1);
    ((now_ms << NUMBER_BITS) | (own << 6)).max(last + 1)
}

impl KeptTask {
    pub fn encoded(&self) -> Vec<u8> {
        let Self { caller, record } = self;
        let TaskRecord { status, message, created_ms, changed_ms, ttl_ms, number, questions, body, .. } = record;
        let mut texts = vec![caller.as_str(), message];
        texts.extend(questions.iter().flat_map(|(key, question)| [key.as_str(), question]));
        texts.push(body);
        let letter = status.letter();
        let head = format!("{FORM} {letter} {created_ms} {changed_ms} {ttl_ms} {number}");
        with_texts(head, &texts)
    }

    /// The task of a file; `None` if it is truncated.
    pub fn decoded(id: &str, bytes: &[u8]) -> Option<Self> {
        let (task, body) = Self::read(id, bytes)?;
        let body = body?;
        Some(Self { record: TaskRecord { body: Arc::from(body), ..task.record }, ..task })
    }

    /// The task of the beginning of a file, without its result.
    pub fn decoded_head(id: &str, bytes: &[u8]) -> Option<Self> {
        // The bytes may end within a character of the result.
        let bytes = bytes.utf8_chunks().next().map_or(bytes, |chunk| chunk.valid().as_bytes());
        Self::read(id, bytes).map(|(task, _)| task)
    }

    /// The task without its result, and the result if all of it is there.
    fn read<'b>(id: &str, bytes: &'b [u8]) -> Option<(Self, Option<&'b str>)> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (head, rest) = text.split_once('\n')?;
        let mut words = head.split(' ');
        let form = words.next().filter(|form| [FORM, FORM_BEFORE].contains(form))?;
        let status = TaskStatus::of_letter(words.next()?)?;
        let mut numbers = words.map(|word| word.parse::<u64>().ok());
        let mut number = || numbers.next()?;
        let created_ms = number()?;
        let changed_ms = number()?;
        let ttl_ms = number()?;
        let place = if form == FORM { number()? } else { created_ms << NUMBER_BITS };
        let lengths = numbers.map(|length| usize::try_from(length?).ok()).collect::<Option<Vec<usize>>>()?;
        let (body_bytes, lengths) = lengths.split_last()?;
        let mut texts = TaskTexts { lengths: lengths.iter(), rest };
        let caller = texts.next()?.to_owned();
        let message = texts.next()?.to_owned();
        let questions = texts.pairs()?;
        let body = Some(texts.rest).filter(|rest| rest.len() == *body_bytes);
        let record = TaskRecord {
            id: id.to_owned(),
            number: place,
            status,
            message,
            created_ms,
            changed_ms,
            ttl_ms,
            questions,
            body: Arc::from(""),
        };
        Some((Self { caller, record }, body))
    }
}

/// When a task that a later version wrote ends, in milliseconds since 1970. Its first line begins
/// like this version's: the word, the status, then three numbers.
pub fn end_of_later_form(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..bytes.len().min(HEAD_BYTES_MAX))?;
    let head = std::str::from_utf8(head.split(|byte| *byte == b'\n').next()?).ok()?;
    let mut words = head.split(' ');
    let version = words.next()?.strip_prefix(FORM_BEGINS)?.parse::<u32>().ok()?;
    let is_known = [FORM, FORM_BEFORE].contains(&format!("{FORM_BEGINS}{version}").as_str());
    let created_ms = words.nth(1)?.parse::<u64>().ok()?;
    let ttl_ms = words.nth(1)?.parse::<u64>().ok()?;
    (!is_known).then_some(created_ms.saturating_add(ttl_ms))
}

impl Letter {
    pub fn encoded(&self) -> Vec<u8> {
        let mut texts = vec![self.caller.as_str()];
        let kind = match &self.says {
            LetterContent::Cancels(message) => {
                texts.push(message);
                "cancels"
            }
            LetterContent::Answers(answers) => {
                texts.extend(answers.iter().flat_map(|(key, answer)| [key.as_str(), answer]));
                "answers"
            }
        };
        with_texts(format!("{LETTER} {kind}"), &texts)
    }

    pub fn decoded(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        let mut words = head.split(' ');
        words.next().filter(|form| *form == LETTER)?;
        let kind = words.next()?;
        let lengths = words.map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>()?;
        let mut texts = TaskTexts { lengths: lengths.iter(), rest };
        let caller = texts.next()?.to_owned();
        let says = match kind {
            "cancels" => LetterContent::Cancels(texts.next()?.to_owned()),
            "answers" => LetterContent::Answers(texts.pairs()?),
            _ => return None,
        };
        texts.rest.is_empty().then_some(Self { caller, says })
    }
}

/// Texts one after the other, with their lengths.
struct TaskTexts<'l, 't> {
    lengths: std::slice::Iter<'l, usize>,
    rest: &'t str,
}

impl<'t> TaskTexts<'_, 't> {
    fn next(&mut self) -> Option<&'t str> {
        let (text, rest) = self.rest.split_at_checked(*self.lengths.next()?)?;
        self.rest = rest;
        Some(text)
    }

    /// The remaining texts in pairs.
    fn pairs(&mut self) -> Option<Vec<(String, String)>> {
        let mut pairs = Vec::new();
        while self.lengths.len() > 0 {
            pairs.push((self.next()?.to_owned(), self.next()?.to_owned()));
        }
        Some(pairs)
    }
}

fn with_texts(mut head: String, texts: &[&str]) -> Vec<u8> {
    for text in texts {
        head.push(' ');
        head.push_str(&text.len().to_string());
    }
    head.push('\n');
    texts.iter().for_each(|text| head.push_str(text));
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, text: &str) -> (String, String) {
        (key.to_owned(), text.to_owned())
    }

    fn task() -> KeptTask {
        let record = TaskRecord {
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            number: 9,
            status: TaskStatus::InputRequired,
            message: "done\nso".to_owned(),
            created_ms: 1,
            changed_ms: 2,
            ttl_ms: 3,
            questions: vec![pair("a", "{\"é\":1}"), pair("", "")],
            body: Arc::from("{\"a\": \"é\"}"),
        };
        KeptTask { caller: "ann b".to_owned(), record }
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_half_a_one_is_none() {
        let task = task();
        let bytes = task.encoded();
        assert_eq!(KeptTask::decoded(&task.record.id, &bytes), Some(task.clone()));
        for end in 0..bytes.len() {
            assert!(KeptTask::decoded(&task.record.id, &bytes[..end]).is_none(), "{end}");
        }
        let without = KeptTask { record: TaskRecord { body: Arc::from(""), ..task.record.clone() }, ..task.clone() };
        for end in bytes.len() - task.record.body.len()..=bytes.len() {
            assert_eq!(KeptTask::decoded_head(&task.record.id, &bytes[..end]), Some(without.clone()), "{end}");
        }
        assert!(KeptTask::decoded_head(&task.record.id, &bytes[..bytes.len() - task.record.body.len() - 1]).is_none());
    }

    #[test]
    fn files_of_the_version_before_are_read() {
        let read = KeptTask::decoded("a", b"toolcell-task-1 d 5 6 7 3 2 4\nannOK{\"\"}").unwrap();
        let TaskRecord { status, number, message, created_ms, body, .. } = read.record;
        assert_eq!((read.caller.as_str(), status, message.as_str()), ("ann", TaskStatus::Completed, "OK"));
        assert_eq!((number, created_ms, &*body), (5 << NUMBER_BITS, 5, "{\"\"}"));
    }

    #[test]
    fn a_letter_is_read_as_it_was_written() {
        for says in [
            LetterContent::Cancels("é!".to_owned()),
            LetterContent::Answers(Vec::new()),
            LetterContent::Answers(vec![pair("a", "1"), pair("b", "{}")]),
        ] {
            let letter = Letter { caller: "ann".to_owned(), says };
            let bytes = letter.encoded();
            assert_eq!(Letter::decoded(&bytes), Some(letter));
            assert_eq!(Letter::decoded(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Letter::decoded(&[&bytes[..], b"x"].concat()), None);
        }
        assert_eq!(Letter::decoded(b""), None);
    }

    #[test]
    fn numbers_of_a_process_grow_and_those_of_several_differ() {
        let mut last = 0;
        let mut seen = std::collections::HashSet::new();
        for now in [5, 5, 5, 6, 4] {
            let next = next_number(now, 7, last);
            assert!(next > last && seen.insert(next));
            last = next;
        }
        assert!(seen.insert(next_number(5, 8, 0)) && next_number(7, 0, 0) > last);
    }

    #[test]
    fn a_later_form_says_when_its_task_ends() {
        let ends = |text: &str| end_of_later_form(text.as_bytes());
        assert_eq!(ends("toolcell-task-3 d 5 6 7 anything\nat all"), Some(12));
        let ended = format!("toolcell-task-3 d {} 6 {}", u64::MAX, u64::MAX);
        assert_eq!(ends(&ended), Some(u64::MAX));
        let long = format!("toolcell-task-3 {} 5 6 7", "d".repeat(HEAD_BYTES_MAX));
        for text in
            ["toolcell-task-2 d 5 6 7 3 2 4\nannOK{}", "toolcell-task-x d 5 6 7", "toolcell-task-3 d 5", "", &long]
        {
            assert_eq!(ends(text), None, "{text}");
        }
    }
}
