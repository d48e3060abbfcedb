//! Replaces secret values by their names in everything that leaves the host.
//!
//! Promise: a secret that the host adds does not come back.
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::forms::forms;
use super::live::HeldSecret;
use super::patterns::SecretPatterns;
use super::scan::{Match, SecretScanner, TextByte};

/// A shorter value is not searched, since ordinary text contains it everywhere.
pub(crate) const REDACTED_BYTES_MIN: usize = 4;

/// Bytes that are held back for each byte of the longest value. A value that is escaped twice needs
/// as many.
/// 36. A longer candidate is taken for a value.
const HELD_PER_BYTE: usize = 64;

/// Bytes that are held back in addition.
const HELD_BYTES: usize = 4 << 10;

/// Replaces secret values by `[redacted:NAME]`, in every form. Cheap to clone, and to call without
/// secrets.
///
/// It finds a value in plain form and in escapes of JSON, HTML and URLs, in base64 at any place of
/// a longer text, in hexadecimal digits, and in combinations of these (see `scan.rs`). It is a
/// second line of defence: a guest never holds the value. A server that sends the value back in
/// another form is not detected.
#[derive(Clone, Default)]
pub struct Redactor(Values);

/// The values that a redactor searches for.
#[derive(Clone, Default)]
enum Values {
    #[default]
    None,
    Fixed(Arc<Sought>),
    Changing(Arc<Changing>),
}

/// Values that include changing ones. The patterns are made again after a change.
struct Changing {
    held: Vec<(String, HeldSecret)>,
    /// Patterns, and the version of the values that they are for.
    made: Mutex<Option<(u64, Option<Arc<Sought>>)>>,
}

/// The values to search for.
struct Sought {
    values: SecretPatterns,
    /// Patterns for names of header fields. Names have no capitals, so base64 is not decoded there.
    names: SecretPatterns,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if matches!(self.0, Values::None) { "Redactor(nothing)" } else { "Redactor(..)" })
    }
}

impl Redactor {
    /// Searches for these values, each with its secret's name.
    pub(crate) fn new<'a>(values: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut sought = Sought { values: SecretPatterns::new(true), names: SecretPatterns::new(false) };
        for (name, value) in values.filter(|(_, value)| value.len() >= REDACTED_BYTES_MIN) {
            let mark: Arc<str> = format!("[redacted:{name}]").into();
            sought.values.add(&mark, [Zeroizing::new(value.to_vec())].into_iter().chain(latin(value)));
            let lower = |form: Zeroizing<Vec<u8>>| Zeroizing::new(form.to_ascii_lowercase());
            sought.names.add(&mark, forms(value).into_iter().map(lower));
        }
        if sought.values.len() > 0 { Self(Values::Fixed(Arc::new(sought))) } else { Self::default() }
    }

    /// Searches for the values of these secrets, each with its secret's name; for those that
    /// change, their values at the time of each search.
    pub fn of<'a>(secrets: impl Iterator<Item = (&'a str, &'a HeldSecret)>) -> Self {
        let held: Vec<_> = secrets.map(|(name, held)| (name.to_owned(), held.clone())).collect();
        if held.iter().all(|(_, held)| held.fixed().is_some()) {
            return known(&held);
        }
        Self(Values::Changing(Arc::new(Changing { held, made: Mutex::default() })))
    }

    /// The current patterns.
    fn sought(&self) -> Option<Arc<Sought>> {
        match &self.0 {
            Values::None => None,
            Values::Fixed(sought) => Some(Arc::clone(sought)),
            Values::Changing(changing) => changing.now(),
        }
    }

    /// A redactor for the current values, even if they change later.
    pub(crate) fn now(&self) -> Self {
        match &self.0 {
            Values::Changing(changing) => changing.now().map_or_else(Self::default, |now| Self(Values::Fixed(now))),
            _ => self.clone(),
        }
    }

    /// True if there is nothing to search for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Values::None => true,
            Values::Fixed(_) => false,
            Values::Changing(changing) => changing.now().is_none(),
        }
    }

    /// The text without secret values; unchanged if it has none.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes without secret values; unchanged if they have none.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut stream = self.stream();
        let mut clean = stream.push(bytes);
        clean.extend(stream.finish());
        if stream.replaced { Cow::Owned(clean) } else { Cow::Borrowed(bytes) }
    }

    /// True if the name of a header field, without capitals, contains a value.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        let Some(sought) = self.sought() else { return false };
        let mut scanner = SecretScanner::new(0);
        let mut found = Vec::new();
        for (byte, from) in name.bytes().zip(0..) {
            scanner.push(&sought.names, TextByte { byte: byte.to_ascii_lowercase(), from, to: from + 1 }, &mut found);
        }
        !found.is_empty() || matches!(self.bytes(name.as_bytes()), Cow::Owned(_))
    }

    /// For a text that arrives in pieces.
    pub(crate) fn stream(&self) -> RedactedStream {
        RedactedStream {
            sought: self.sought(),
            scanner: SecretScanner::new(0),
            waiting: Zeroizing::default(),
            passed: 0,
            found: VecDeque::new(),
            covered: 0,
            replaced: false,
        }
    }
}

impl Changing {
    /// The current patterns. They may be newer than the version noted with them, which costs
    /// another check, but never older.
    fn now(&self) -> Option<Arc<Sought>> {
        let version = self.held.iter().map(|(_, held)| held.version()).fold(0, u64::wrapping_add);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((of, sought)) if *of == version => sought.clone(),
            _ => made.insert((version, known(&self.held).sought())).1.clone(),
        }
    }
}

/// Searches for all values that these secrets have now.
fn known(held: &[(String, HeldSecret)]) -> Redactor {
    let values: Vec<_> =
        held.iter().flat_map(|(name, held)| held.known().into_iter().map(move |it| (name, it))).collect();
    Redactor::new(values.iter().map(|(name, value)| (name.as_str(), value.reveal().as_bytes())))
}

/// The value in Latin-1, if that differs.
fn latin(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let text = std::str::from_utf8(value).ok().filter(|text| !text.is_ascii())?;
    let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect::<Option<Vec<u8>>>();
    bytes.map(Zeroizing::new).filter(|bytes| bytes.len() >= REDACTED_BYTES_MIN)
}

/// Redacts a text that arrives in pieces, including values across their borders. It holds back only
/// text that may begin a value.
pub(crate) struct RedactedStream {
    sought: Option<Arc<Sought>>,
    scanner: SecretScanner,
    /// Bytes that were read but not passed on yet.
    waiting: Zeroizing<Vec<u8>>,
    /// Bytes before that.
    passed: u64,
    /// Values in the waiting text, in order and without overlaps.
    found: VecDeque<Match>,
    /// The end of the last value whose mark was passed on.
    covered: u64,
    replaced: bool,
}

impl RedactedStream {
    /// Takes the next piece. Returns the text that can be passed on now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let Some(sought) = self.sought.clone() else { return piece.to_vec() };
        let mut clean = Vec::with_capacity(self.waiting.len() + piece.len());
        let held_max = sought.values.longest_bytes() * HELD_PER_BYTE + HELD_BYTES;
        // Pieces are no larger than what may be held back, so that this is checked in time.
        for part in piece.chunks(held_max) {
            self.read(&sought.values, part);
            let end = self.passed + self.waiting.len() as u64;
            let held = self.scanner.held(&sought.values).unwrap_or(end);
            if end.saturating_sub(held) > held_max as u64 {
                self.note(Match { from: held, to: end, value: usize::MAX });
                self.scanner.clear();
                self.pass(&sought.values, end, &mut clean);
            } else {
                self.pass(&sought.values, held, &mut clean);
            }
        }
        clean
    }

    /// Ends the text, and returns the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let Some(sought) = self.sought.clone() else { return Vec::new() };
        let mut found = Vec::new();
        let mut clean = Vec::new();
        self.scanner.finish(&sought.values, &mut found);
        self.scanner.clear();
        found.into_iter().for_each(|found| self.note(found));
        self.pass(&sought.values, self.passed + self.waiting.len() as u64, &mut clean);
        clean
    }

    /// Bytes that were read but not passed on yet.
    #[cfg(test)]
    pub(crate) fn kept_back_bytes(&self) -> usize {
        self.waiting.len()
    }

    fn read(&mut self, values: &SecretPatterns, part: &[u8]) {
        let first = self.passed + self.waiting.len() as u64;
        self.waiting.extend_from_slice(part);
        let mut found = Vec::new();
        for (byte, from) in part.iter().zip(first..) {
            self.scanner.push(values, TextByte { byte: *byte, from, to: from + 1 }, &mut found);
            found.drain(..).for_each(|found| self.note(found));
        }
    }

    /// Notes a value. Overlapping ones become one that covers them all, with the name of the
    /// longest.
    fn note(&mut self, mut found: Match) {
        if found.from < self.covered {
            self.covered = self.covered.max(found.to);
            return;
        }
        while let Some(last) = self.found.pop_back_if(|last| last.to > found.from) {
            let longer = if last.to - last.from >= found.to - found.from { last } else { found };
            found = Match { from: found.from.min(last.from), to: found.to.max(last.to), value: longer.value };
        }
        self.found.push_back(found);
    }

    /// Passes on the text before a place, with marks for values.
    fn pass(&mut self, values: &SecretPatterns, until: u64, clean: &mut Vec<u8>) {
        let mut at = self.passed.max(self.covered);
        while let Some(found) = self.found.pop_front_if(|found| found.from < until) {
            self.copy(at, found.from, clean);
            clean.extend_from_slice(values.mark(found.value).as_bytes());
            self.replaced = true;
            (at, self.covered) = (found.to, found.to);
        }
        self.copy(at, until, clean);
        let passed = usize::try_from(until.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        let left = self.waiting.get(passed..).unwrap_or_default().to_vec();
        self.waiting = Zeroizing::new(left);
        self.passed = self.passed.max(until);
    }

    fn copy(&self, from: u64, until: u64, clean: &mut Vec<u8>) {
        let place = |place: u64| usize::try_from(place.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        clean.extend_from_slice(self.waiting.get(place(from)..place(until)).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::{LiveSecret, NoValue, SecretValue, ValueInTime};
    use super::*;

    const KEY: &str = "s3cr3t/Key+with \"odd\" bytes&é";

    fn redactor() -> Redactor {
        Redactor::new([("KEY", KEY.as_bytes()), ("PIN", b"4711".as_slice())].into_iter())
    }

    #[test]
    fn a_text_without_secrets_is_not_copied() {
        assert!(matches!(redactor().text("nothing here, s3cr3t/Ke either"), Cow::Borrowed(_)));
        assert!(Redactor::default().is_empty());
        assert!(matches!(Redactor::default().text(KEY), Cow::Borrowed(_)));
    }

    #[test]
    fn every_usual_form_of_a_value_is_replaced_by_its_name() {
        let forms = [
            KEY,
            // base64, standard and for URLs
            "czNjcjN0L0tleSt3aXRoICJvZGQiIGJ5dGVzJsOp",
            "s3cr3t%2FKey%2Bwith%20%22odd%22%20bytes%26%C3%A9",
            "s3cr3t%2fKey%2bwith%20%22odd%22%20bytes%26%c3%a9",
            "s3cr3t%2FKey%2Bwith+%22odd%22+bytes%26%C3%A9",
            r#"s3cr3t/Key+with \"odd\" bytes&é"#,
            "7333637233742f4b65792b7769746820226f64642220627974657326c3a9",
            "7333637233742F4B65792B7769746820226F64642220627974657326C3A9",
        ];
        for form in forms {
            let text = redactor().text(&format!("before {form} after")).into_owned();
            assert!(text.starts_with("before [redacted:KEY]"), "{form}: {text}");
            assert!(!text.contains("3cr3t") && !text.contains("M3Ix"), "{form}: {text}");
        }
        assert_eq!(redactor().text("pin 4711!"), "pin [redacted:PIN]!");
    }

    #[test]
    fn a_value_inside_of_a_longer_base64_text_is_found_at_every_alignment() {
        let value = b"correct-horse-battery";
        let redactor = Redactor::new([("PASSWORD", value.as_slice())].into_iter());
        for before in ["", "u", "us", "use", "user:"] {
            let text = [before.as_bytes(), value, b":and more"].concat();
            let encoded = super::super::forms::base64(&text, b"+/");
            let encoded = String::from_utf8(encoded.to_vec()).unwrap();
            let clean = redactor.text(&encoded).into_owned();
            assert!(clean.contains("[redacted:PASSWORD]"), "{before}: {encoded} became {clean}");
            assert!(clean.len() < 50, "{before}: {clean}");
        }
    }

    #[test]
    fn a_value_in_pieces_is_found_wherever_it_is_cut() {
        let text = format!("<{KEY}|4711|471>");
        for piece_bytes in 1..text.len() {
            let mut stream = redactor().stream();
            let mut clean: Vec<u8> = text.as_bytes().chunks(piece_bytes).flat_map(|piece| stream.push(piece)).collect();
            clean.extend(stream.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), "<[redacted:KEY]|[redacted:PIN]|471>", "{piece_bytes}");
        }
    }

    #[test]
    fn of_two_values_with_the_same_beginning_the_longer_goes_whole_even_when_cut() {
        let redactor = Redactor::new([("SHORT", b"abcd".as_slice()), ("LONG", b"abcdefgh".as_slice())].into_iter());
        let mut stream = redactor.stream();
        let mut clean = stream.push(b"abcd");
        clean.extend(stream.push(b"efgh abcdef"));
        clean.extend(stream.finish());
        assert_eq!(clean, b"[redacted:LONG] [redacted:SHORT]ef");
    }

    #[test]
    fn values_that_are_part_of_ordinary_text_are_left_alone() {
        let redactor = Redactor::new([("TINY", b"abc".as_slice()), ("NONE", b"".as_slice())].into_iter());
        assert!(redactor.is_empty());
        assert_eq!(redactor.text("abc"), "abc");
    }

    #[test]
    fn a_redactor_does_not_show_what_it_looks_for() {
        assert_eq!(format!("{:?}", redactor()), "Redactor(..)");
    }

    /// A secret with the values that it has had, and the number of its changes.
    struct Token(Mutex<(u64, Vec<SecretValue>)>);

    impl LiveSecret for Token {
        fn value(&self) -> ValueInTime<'_> {
            Box::pin(std::future::ready(Err(NoValue)))
        }

        fn version(&self) -> u64 {
            self.0.lock().unwrap().0
        }

        fn known(&self) -> Vec<SecretValue> {
            self.0.lock().unwrap().1.clone()
        }

        fn lack(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn the_values_of_a_secret_that_changes_are_found_old_and_new() {
        let value = |text: &str| SecretValue::new(Zeroizing::new(text.to_owned())).unwrap();
        let token = Arc::new(Token(Mutex::new((0, Vec::new()))));
        let live = HeldSecret::Live(Arc::clone(&token) as Arc<dyn LiveSecret>);
        let fixed = HeldSecret::Fixed(value("fixed-value"));
        let alone = Redactor::of([("TOKEN", &live)].into_iter());
        assert!(alone.is_empty());
        let both = Redactor::of([("TOKEN", &live), ("FIXED", &fixed)].into_iter());
        let text = "first-token second-token fixed-value";
        assert_eq!(both.text(text), "first-token second-token [redacted:FIXED]");
        *token.0.lock().unwrap() = (1, vec![value("first-token")]);
        assert_eq!(both.text(text), "[redacted:TOKEN] second-token [redacted:FIXED]");
        assert!(!alone.is_empty() && alone.is_in_name("x-first-token"));
        let first = both.now();
        *token.0.lock().unwrap() = (2, vec![value("second-token"), value("first-token")]);
        assert_eq!(both.text(text), "[redacted:TOKEN] [redacted:TOKEN] [redacted:FIXED]");
        assert_eq!(first.text(text), "[redacted:TOKEN] second-token [redacted:FIXED]");
    }
}
