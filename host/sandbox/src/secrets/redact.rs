//! Finding secret values in what leaves the host, and putting their names there instead. Must not hold: where values come
//! from, or which request gets which.
use std::borrow::Cow;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::forms::forms;

/// Bytes below which a value is not looked for: shorter ones are part of ordinary text everywhere.
pub(crate) const REDACTED_BYTES_MIN: usize = 4;

/// Replaces secret values, and their usual encodings, by `[redacted:NAME]`. Cheap to clone, and to ask where there is no
/// secret.
///
/// It knows a value as it is, in base64 (of either alphabet, at any place of a longer text), in hexadecimal, percent-encoded
/// and as a JSON string. It is a net below the boundary, which is that a guest never holds the value: a server that sends
/// back what it got in some other form is not seen through.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Patterns>>);

struct Patterns {
    /// By their first byte; the longest first.
    buckets: Vec<Vec<Pattern>>,
}

struct Pattern {
    bytes: Zeroizing<Vec<u8>>,
    marker: Arc<str>,
}

/// What is at the start of a text.
enum Found<'a> {
    Nothing,
    Value(&'a Pattern),
    /// Perhaps a value: what follows decides.
    Part,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.0.is_some() { "Redactor(..)" } else { "Redactor(nothing)" })
    }
}

impl Redactor {
    /// Looks for these values, each with its secret's name.
    pub(crate) fn new<'a>(values: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut buckets: Vec<Vec<Pattern>> = (0..=u8::MAX).map(|_| Vec::new()).collect();
        let mut any = false;
        for (name, value) in values.filter(|(_, value)| value.len() >= REDACTED_BYTES_MIN) {
            let marker: Arc<str> = format!("[redacted:{name}]").into();
            for bytes in forms(value) {
                let Some(bucket) = bytes.first().and_then(|first| buckets.get_mut(usize::from(*first))) else {
                    continue;
                };
                if !bucket.iter().any(|known| *known.bytes == *bytes) {
                    bucket.push(Pattern { bytes, marker: Arc::clone(&marker) });
                    any = true;
                }
            }
        }
        for bucket in &mut buckets {
            bucket.sort_by_key(|pattern| std::cmp::Reverse(pattern.bytes.len()));
        }
        Self(any.then(|| Arc::new(Patterns { buckets })))
    }

    /// Whether there is anything to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text without secret values; itself where it holds none.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes without secret values; themselves where they hold none.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(patterns) = self.0.as_deref().filter(|patterns| patterns.any(bytes)) else {
            return Cow::Borrowed(bytes);
        };
        let mut clean = Vec::with_capacity(bytes.len());
        patterns.scan(bytes, true, &mut clean);
        Cow::Owned(clean)
    }

    /// For a text that comes in pieces.
    pub(crate) fn stream(&self) -> RedactedStream {
        RedactedStream { redactor: self.clone(), waiting: Zeroizing::default() }
    }
}

impl Patterns {
    fn any(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            if matches!(self.found(rest, true), Found::Value(_)) {
                return true;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        false
    }

    /// What `text` begins with; `last` where nothing follows it.
    fn found(&self, text: &[u8], last: bool) -> Found<'_> {
        let bucket = text.first().and_then(|first| self.buckets.get(usize::from(*first)));
        for pattern in bucket.into_iter().flatten() {
            if text.starts_with(&pattern.bytes) {
                return Found::Value(pattern);
            }
            if !last && pattern.bytes.starts_with(text) {
                return Found::Part;
            }
        }
        Found::Nothing
    }

    /// Adds `text` to `clean` with its values replaced, up to where only what follows can tell, and returns how many
    /// bytes that leaves: none if it is the last.
    fn scan(&self, text: &[u8], last: bool, clean: &mut Vec<u8>) -> usize {
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            match self.found(rest, last) {
                Found::Nothing => {
                    clean.push(*first);
                    rest = after;
                }
                Found::Value(pattern) => {
                    clean.extend_from_slice(pattern.marker.as_bytes());
                    rest = rest.get(pattern.bytes.len()..).unwrap_or_default();
                }
                Found::Part => return rest.len(),
            }
        }
        0
    }
}

/// Redacts a text that comes in pieces, values across their borders included. It keeps back what may be the beginning of
/// a value: less than the longest form of one.
pub(crate) struct RedactedStream {
    redactor: Redactor,
    waiting: Zeroizing<Vec<u8>>,
}

impl RedactedStream {
    /// The next piece; what can be passed on now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.step(piece, false)
    }

    /// There is no next piece; what was kept back.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.step(&[], true)
    }

    fn step(&mut self, piece: &[u8], last: bool) -> Vec<u8> {
        let Some(patterns) = self.redactor.0.as_deref() else { return piece.to_vec() };
        let mut text = std::mem::take(&mut self.waiting);
        text.extend_from_slice(piece);
        let mut clean = Vec::with_capacity(text.len());
        let left = patterns.scan(&text, last, &mut clean);
        let waiting = text.get(text.len().saturating_sub(left)..).unwrap_or_default();
        self.waiting = Zeroizing::new(waiting.to_vec());
        clean
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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
}
