//! Base64 and hexadecimal digits, decoded at every offset at once.
//!
//! Four letters of base64 stand for three bytes, so a run of letters can be read in four ways,
//! depending on where its first group begins. Hexadecimal digits can be read in two. Each way is a
//! lane: a text of its own.
use super::patterns::SecretPatterns;
use super::scan::{Match, SecretScanner, TextByte};

/// Separators, such as spaces and colons, that may stand between two hexadecimal digits.
const APART_MAX: u8 = 2;

/// A line with at least this many letters may continue on the next one: encoders break lines at 60
/// to 76.
const LINE_LETTERS_MIN: usize = 16;

/// Six bits and four bits of each letter; `NONE` for other bytes. Base64 has the alphabets of RFC
/// 4648, sections 4 and 5, and of RFC 3501, section 5.1.3.
const SEXTETS: [u8; 256] =
    placed(placed([NONE; 256], b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 0), b"-_", 62);
const COMMA: u8 = 63;
const DIGITS: [u8; 256] = placed(placed([NONE; 256], b"0123456789abcdef", 0), b"ABCDEF", 10);
const NONE: u8 = u8::MAX;

/// The table with the places of these letters, counted from `value`.
#[expect(clippy::indexing_slicing, reason = "it is worked out by the compiler, which refuses what is out of bounds")]
const fn placed(mut table: [u8; 256], letters: &[u8], mut value: u8) -> [u8; 256] {
    let mut at = 0;
    while at < letters.len() {
        table[letters[at] as usize] = value;
        (at, value) = (at + 1, value + 1);
    }
    table
}

/// The lanes of one text.
#[derive(Debug)]
pub(super) struct Lanes {
    base64: LetterRun<4>,
    digits: LetterRun<2>,
    /// Letters of base64 since the last line's end.
    line: usize,
    /// Separators since the last digit.
    apart: u8,
}

/// The decoded readings of a run of letters.
#[derive(Debug)]
struct LetterRun<const LANES: usize> {
    /// The last letter: its bits, and its place.
    last: Option<(u8, u64)>,
    letters: usize,
    lanes: [SecretScanner; LANES],
}

impl<const LANES: usize> LetterRun<LANES> {
    fn new(layer: u8) -> Self {
        Self { last: None, letters: 0, lanes: std::array::from_fn(|_| SecretScanner::new(layer)) }
    }

    /// Ends the run: later letters are not decoded with it.
    #[inline]
    fn end(&mut self, patterns: &SecretPatterns, found: &mut Vec<Match>) {
        if self.last.is_some() {
            self.lanes.iter_mut().for_each(|lane| lane.finish(patterns, found));
            self.clear();
        }
    }

    fn clear(&mut self) {
        if self.last.take().is_some() {
            self.lanes.iter_mut().for_each(SecretScanner::clear);
            self.letters = 0;
        }
    }

    /// The lane whose byte begins this many letters ago.
    #[inline]
    fn lane(&mut self, ago: usize) -> Option<&mut SecretScanner> {
        let number = (self.letters + LANES - ago) % LANES;
        self.lanes.get_mut(number)
    }

    fn is_live(&self) -> bool {
        self.lanes.iter().any(SecretScanner::is_live)
    }

    fn held(&self, patterns: &SecretPatterns) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.held(patterns)).min()
    }
}

impl Lanes {
    /// Lanes that are texts of this layer.
    pub(super) fn new(layer: u8) -> Self {
        Self { base64: LetterRun::new(layer), digits: LetterRun::new(layer), line: 0, apart: 0 }
    }

    /// Reads one more byte.
    #[inline]
    pub(super) fn push(&mut self, patterns: &SecretPatterns, unit: TextByte, found: &mut Vec<Match>) {
        let value_of = |table: &[u8; 256]| table.get(usize::from(unit.byte)).copied().unwrap_or(NONE);
        let sextet = if unit.byte == b',' && self.base64.is_live() { COMMA } else { value_of(&SEXTETS) };
        if sextet != NONE {
            self.line += 1;
            self.sextet(patterns, sextet, unit, found);
        } else if unit.byte != b'\r' && !(unit.byte == b'\n' && self.goes_on()) {
            self.line = 0;
            self.base64.end(patterns, found);
        }
        let digit = value_of(&DIGITS);
        if digit != NONE {
            self.apart = 0;
            self.digit(patterns, digit, unit, found);
        } else if matches!(unit.byte, b' ' | b':' | b'-' | b',' | b'\n' | b'\r') && self.apart < APART_MAX {
            self.apart += 1;
        } else {
            self.digits.end(patterns, found);
        }
    }

    /// Ends a line. True if the next one may continue it.
    fn goes_on(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        line >= LINE_LETTERS_MIN || (line > 0 && self.base64.is_live())
    }

    #[inline]
    fn sextet(&mut self, patterns: &SecretPatterns, now: u8, unit: TextByte, found: &mut Vec<Match>) {
        let run = &mut self.base64;
        if let Some((last, from)) = run.last {
            let bytes = [(1, last << 2 | now >> 4), (2, last << 4 | now >> 2), (3, last << 6 | now)];
            for (ago, byte) in bytes {
                // The first letters of a run do not belong to a group that began before it.
                if let Some(lane) = run.lane(ago) {
                    lane.push(patterns, TextByte { byte, from, to: unit.to }, found);
                }
            }
        }
        run.last = Some((now, unit.from));
        run.letters += 1;
    }

    #[inline]
    fn digit(&mut self, patterns: &SecretPatterns, now: u8, unit: TextByte, found: &mut Vec<Match>) {
        let run = &mut self.digits;
        if let Some((last, from)) = run.last
            && let Some(lane) = run.lane(1)
        {
            lane.push(patterns, TextByte { byte: last << 4 | now, from, to: unit.to }, found);
        }
        run.last = Some((now, unit.from));
        run.letters += 1;
    }

    pub(super) fn finish(&mut self, patterns: &SecretPatterns, found: &mut Vec<Match>) {
        self.base64.end(patterns, found);
        self.digits.end(patterns, found);
        (self.line, self.apart) = (0, 0);
    }

    pub(super) fn clear(&mut self) {
        self.base64.clear();
        self.digits.clear();
        (self.line, self.apart) = (0, 0);
    }

    pub(super) fn is_live(&self) -> bool {
        self.base64.is_live() || self.digits.is_live()
    }

    /// As [`SecretScanner::held`]. Some bits of the last letter may begin a value.
    pub(super) fn held(&self, patterns: &SecretPatterns) -> Option<u64> {
        let letter = self.base64.last.filter(|(bits, _)| {
            let begins = |top, bits| patterns.may_begin_with_bits(top, bits);
            begins(*bits, 6) || begins(bits & 15, 4) || begins(bits & 3, 2)
        });
        let digit = self.digits.last.filter(|(bits, _)| patterns.may_begin_with_bits(*bits, 4));
        let begun = letter.into_iter().chain(digit).map(|(_, from)| from);
        let lanes = self.base64.held(patterns).into_iter().chain(self.digits.held(patterns));
        begun.chain(lanes).min()
    }
}
