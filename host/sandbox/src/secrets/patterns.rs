//! The searched values, by their beginnings.
use std::sync::Arc;

use zeroize::Zeroizing;

/// A shorter value is not searched in decoded base64 or hexadecimal digits, since any long text
/// would contain it.
const DECODED_BYTES_MIN: usize = 8;

/// Values, each with the mark that replaces it.
pub(super) struct SecretPatterns {
    list: Vec<SecretPattern>,
    marks: Vec<Arc<str>>,
    /// By byte: true if a value or an escape begins with it.
    begin: [bool; 256],
    /// First bytes of patterns in a decoded text.
    begin_decoded: [bool; 256],
    /// The patterns by their first byte.
    buckets: Vec<Vec<usize>>,
    /// True if base64 and hexadecimal digits are decoded.
    decoded: bool,
    longest_bytes: usize,
}

struct SecretPattern {
    bytes: Zeroizing<Vec<u8>>,
    mark: usize,
    is_short: bool,
}

impl SecretPatterns {
    pub(super) fn new(decoded: bool) -> Self {
        let mut begin = [false; 256];
        for byte in *b"%\\&" {
            mark(&mut begin, byte);
        }
        let buckets = (0..=u8::MAX).map(|_| Vec::new()).collect();
        Self { list: Vec::new(), marks: Vec::new(), begin, begin_decoded: begin, buckets, decoded, longest_bytes: 0 }
    }

    /// Searches for each of these forms of one value, and replaces it by the mark.
    pub(super) fn add(&mut self, name: &Arc<str>, forms: impl Iterator<Item = Zeroizing<Vec<u8>>>) {
        let own = self.marks.len();
        self.marks.push(Arc::clone(name));
        for bytes in forms {
            if !self.list.iter().any(|known| *known.bytes == *bytes) {
                self.add_form(bytes, own);
            }
        }
    }

    fn add_form(&mut self, bytes: Zeroizing<Vec<u8>>, own: usize) {
        let Some(first) = bytes.first().copied() else { return };
        let is_short = bytes.len() < DECODED_BYTES_MIN;
        let written: &[u8] = if first == b' ' { b" +" } else { &[first] };
        for byte in written {
            mark(&mut self.begin, *byte);
            if !is_short {
                mark(&mut self.begin_decoded, *byte);
            }
            if let Some(bucket) = self.buckets.get_mut(usize::from(*byte)) {
                bucket.push(self.list.len());
            }
        }
        self.longest_bytes = self.longest_bytes.max(bytes.len());
        self.list.push(SecretPattern { bytes, mark: own, is_short });
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn longest_bytes(&self) -> usize {
        self.longest_bytes
    }

    /// True if base64 and hexadecimal digits are decoded.
    pub(super) const fn are_decoded(&self) -> bool {
        self.decoded
    }

    /// True if a value or an escape begins with this byte.
    #[inline]
    pub(super) fn may_begin(&self, byte: u8, decoded: bool) -> bool {
        let begin = if decoded { &self.begin_decoded } else { &self.begin };
        begin.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// True if a value or an escape of a decoded text begins with a byte whose top bits are these.
    pub(super) fn may_begin_with_bits(&self, top: u8, bits: u32) -> bool {
        let least = usize::from(top) << (8 - bits);
        let most = least + (1 << (8 - bits));
        self.begin_decoded.get(least..most).is_some_and(|begins| begins.contains(&true))
    }

    /// The values whose first byte is this letter.
    pub(super) fn that_begin(&self, letter: &[u8], decoded: bool) -> impl Iterator<Item = usize> + use<'_> {
        let bucket = letter.first().and_then(|first| self.buckets.get(usize::from(*first)));
        let is_looked_for = move |place: &usize| !decoded || self.list.get(*place).is_some_and(|known| !known.is_short);
        bucket.into_iter().flatten().copied().filter(is_looked_for)
    }

    /// The bytes of a value that follow the matched ones and this letter; `None` if the value does
    /// not continue with it.
    pub(super) fn spelled(&self, pattern: usize, matched: usize, letter: &[u8]) -> Option<usize> {
        let rest = self.list.get(pattern)?.bytes.get(matched..)?;
        // A letter of several bytes belongs to a value completely or not at all.
        let goes_on =
            letter.len() <= rest.len() && rest.iter().zip(letter).all(|(one, other)| is_written(*one, *other));
        goes_on.then(|| rest.len() - letter.len())
    }

    /// The value that a pattern is a form of.
    pub(super) fn value(&self, pattern: usize) -> usize {
        self.list.get(pattern).map_or(0, |pattern| pattern.mark)
    }

    /// The mark that replaces a value.
    pub(super) fn mark(&self, value: usize) -> &str {
        self.marks.get(value).map_or("[redacted]", |mark| mark)
    }
}

/// True if they are equal, where a form may write a space as a plus sign.
const fn is_written(byte: u8, written: u8) -> bool {
    byte == written || (byte == b' ' && written == b'+')
}

fn mark(table: &mut [bool; 256], byte: u8) {
    if let Some(place) = table.get_mut(usize::from(byte)) {
        *place = true;
    }
}
