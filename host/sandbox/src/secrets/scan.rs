//! Finds values in a text in every form: plain, in escapes of any kind, in base64, in hexadecimal
//! digits, and in all of these within one another.
//!
//! A text is read as a graph of places. Each byte is an edge between two places. So is each letter
//! that an escape stands for, which may itself be part of a larger escape. A value is found if any
//! path through the graph spells it. So neither an escape next to it nor another order of decoding
//! hides it. Base64 and hexadecimal digits are decoded at each offset, and the result is read as
//! another text.
//!
//! The time is linear. At each place, at most [`DEPTH_MAX`] escapes end for each kind, and as many
//! values begin as [`SecretScanner::push`] allows.
use super::escapes::{EscapedLetter, PartialEscape};
use super::lanes::Lanes;
use super::patterns::SecretPatterns;

/// Escapes within escapes that are decoded: `\\\\u0026` in a JSON text within another, in HTML.
pub(super) const DEPTH_MAX: u8 = 3;

/// Places that one escape may span, in bytes: all digits of three levels of `&#x0026;`, and zeros
/// before them.
const SPAN_MAX: u64 = 256;

/// Texts nested in base64 or hexadecimal digits that are decoded, in addition to the text itself.
pub(super) const LAYERS_MAX: u8 = 2;

/// Partial matches that are followed at once from one place, in addition to some for each value.
/// Each costs some ten nanoseconds for each byte. A random value has one or two. One that repeats
/// itself more often, such as `aaaaaaaaaaaaaaab`, is assumed to be there as soon as it may be.
const THREADS_MAX: usize = 8;

/// The bound for each value. Many share a beginning, such as `sk-live-`.
const THREADS_PER_PATTERN: usize = 4;

/// Partial matches of any kind that are kept for the escapes that may continue them. Texts that are
/// not attacks need ten.
const ITEMS_MAX: usize = 512;

/// One byte of a text, and its place in the outermost text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextByte {
    pub(super) byte: u8,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A value was found between two places of the outermost text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The number of the value.
    pub(super) value: usize,
}

/// A match or an escape that has begun and may continue from a place.
#[derive(Clone, Copy, Debug)]
struct ScanItem {
    /// The place that it has reached.
    at: u64,
    /// The place where it began.
    start: u64,
    /// Its beginning in the outermost text.
    from: u64,
    what: ScanProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanProgress {
    /// An escape, around escapes of this depth.
    Escape { partial: PartialEscape, depth: u8 },
    /// A value whose first bytes matched.
    Value { pattern: usize, matched: usize },
}

/// A letter that ends at the current place.
#[derive(Clone, Copy, Debug)]
struct Edge {
    start: u64,
    from: u64,
    letter: EscapedLetter,
    depth: u8,
}

/// The scan of one byte: the searched values, its end in the outermost text, and the matches so
/// far.
struct Scan<'a> {
    patterns: &'a SecretPatterns,
    to: u64,
    found: &'a mut Vec<Match>,
}

/// A value whose first bytes matched.
#[derive(Clone, Copy)]
struct BegunMatch {
    pattern: usize,
    matched: usize,
    /// Its beginning in the outermost text.
    from: u64,
}

/// Reads one text.
#[derive(Debug)]
pub(super) struct SecretScanner {
    layer: u8,
    /// The number of the current place.
    place: u64,
    /// In the order of their places.
    items: Vec<ScanItem>,
    /// Bytes that may be part of an escape, by place. They are not decoded further until that is
    /// known.
    undecided: Vec<(u64, TextByte)>,
    lanes: Option<Box<Lanes>>,
}

impl SecretScanner {
    /// For the outermost text (0), or for one decoded from it.
    pub(super) const fn new(layer: u8) -> Self {
        Self { layer, place: 0, items: Vec::new(), undecided: Vec::new(), lanes: None }
    }

    /// Reads one more byte, and notes the values that end with it.
    #[inline]
    pub(super) fn push(&mut self, patterns: &SecretPatterns, unit: TextByte, found: &mut Vec<Match>) {
        if self.items.is_empty() && !patterns.may_begin(unit.byte, self.layer > 0) {
            self.place += 1;
            return self.decode(patterns, unit, found);
        }
        self.read(patterns, unit, found);
    }

    /// Ends the text.
    pub(super) fn finish(&mut self, patterns: &SecretPatterns, found: &mut Vec<Match>) {
        self.settle(patterns, found);
        if let Some(lanes) = &mut self.lanes {
            lanes.finish(patterns, found);
        }
    }

    /// Forgets everything: the following bytes belong to another text.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.undecided.clear();
        if let Some(lanes) = &mut self.lanes {
            lanes.clear();
        }
    }

    /// True if something has begun.
    pub(super) fn is_live(&self) -> bool {
        !self.items.is_empty() || self.lanes.as_ref().is_some_and(|lanes| lanes.is_live())
    }

    /// The first undecided place of the outermost text: later bytes decide whether it begins a
    /// value.
    pub(super) fn held(&self, patterns: &SecretPatterns) -> Option<u64> {
        let own = self.items.iter().map(|item| item.from).min();
        let within = self.lanes.as_ref().and_then(|lanes| lanes.held(patterns));
        own.into_iter().chain(within).min()
    }

    fn read(&mut self, patterns: &SecretPatterns, unit: TextByte, found: &mut Vec<Match>) {
        let start = self.place;
        self.place += 1;
        self.undecided.push((start, unit));
        let mut edges = vec![Edge { start, from: unit.from, letter: EscapedLetter::of_byte(unit.byte), depth: 0 }];
        while let Some(edge) = edges.pop() {
            if edge.depth > 0 {
                self.decide(&edge, unit.to);
            }
            self.follow(&mut Scan { patterns, to: unit.to, found }, &edge, &mut edges);
        }
        self.bound(patterns, unit.to, found);
        self.forget();
        let is_open = |item: &ScanItem| matches!(item.what, ScanProgress::Escape { .. });
        if !self.items.iter().any(is_open) || self.undecided.len() as u64 > SPAN_MAX {
            self.settle(patterns, found);
        }
    }

    /// Follows a letter from every item that reached its beginning, and from new ones.
    fn follow(&mut self, scan: &mut Scan<'_>, edge: &Edge, edges: &mut Vec<Edge>) {
        let first = self.items.partition_point(|item| item.at < edge.start);
        let mut next = first;
        while let Some(item) = self.items.get(next).copied().filter(|item| item.at == edge.start) {
            next += 1;
            match item.what {
                ScanProgress::Value { pattern, matched } => {
                    self.spell(scan, edge, BegunMatch { pattern, matched, from: item.from });
                }
                ScanProgress::Escape { partial, depth } => edges.extend(self.escape(partial, depth, &item, edge)),
            }
        }
        for pattern in scan.patterns.that_begin(edge.letter.bytes(), self.layer > 0) {
            self.spell(scan, edge, BegunMatch { pattern, matched: 0, from: edge.from });
        }
        if let Some(partial) = edge.letter.single().and_then(PartialEscape::begin).filter(|_| edge.depth < DEPTH_MAX) {
            let what = ScanProgress::Escape { partial, depth: edge.depth };
            self.add(ScanItem { at: self.place, start: edge.start, from: edge.from, what }, edge.depth > 0);
        }
    }

    /// Extends a value by a letter; it may now be complete.
    fn spell(&mut self, scan: &mut Scan<'_>, edge: &Edge, begun: BegunMatch) {
        let BegunMatch { pattern, matched, from } = begun;
        let letter = edge.letter.bytes();
        match scan.patterns.spelled(pattern, matched, letter) {
            Some(0) => scan.found.push(Match { from, to: scan.to, value: scan.patterns.value(pattern) }),
            Some(_) => {
                let what = ScanProgress::Value { pattern, matched: matched + letter.len() };
                self.add(ScanItem { at: self.place, start: edge.start, from, what }, edge.depth > 0);
            }
            None => {}
        }
    }

    /// Extends an escape by a letter; it may already stand for one itself.
    fn escape(&mut self, partial: PartialEscape, depth: u8, item: &ScanItem, edge: &Edge) -> Option<Edge> {
        let byte = edge.letter.single()?;
        // In a run of backslashes, two of one level make one of the next. Other ways to split it
        // add nothing.
        if partial == PartialEscape::Backslash && byte == b'\\' && depth != edge.depth {
            return None;
        }
        let depth = depth.max(edge.depth);
        let step = partial.step(byte);
        if let Some(partial) = step.on.filter(|_| self.place - item.start < SPAN_MAX) {
            let what = ScanProgress::Escape { partial, depth };
            self.add(ScanItem { at: self.place, start: item.start, from: item.from, what }, edge.depth > 0);
        }
        let letter = step.found.filter(|_| depth < DEPTH_MAX)?;
        Some(Edge { start: item.start, from: item.from, letter, depth: depth + 1 })
    }

    /// Adds an item at the current place, once, even where two ways lead there.
    fn add(&mut self, item: ScanItem, look: bool) {
        let here = |other: &&mut ScanItem| other.at == item.at;
        let mut others = self.items.iter_mut().rev().take_while(here);
        let same = |other: &&mut ScanItem| other.what == item.what && (other.start == item.start || is_value(&item));
        match if look { others.find(same) } else { None } {
            Some(other) => other.from = other.from.min(item.from),
            None => self.items.push(item),
        }
    }

    /// Decides that an escape stands for this letter, which is then decoded further.
    fn decide(&mut self, edge: &Edge, to: u64) {
        let before = self.undecided.partition_point(|(place, _)| *place < edge.start);
        self.undecided.truncate(before);
        let units = edge.letter.bytes().iter().map(|byte| TextByte { byte: *byte, from: edge.from, to });
        self.undecided.extend(units.map(|unit| (edge.start, unit)));
    }

    /// Bounds the matches that are followed. Past the bound, the oldest value is assumed to be
    /// there, and the newer half is followed.
    fn bound(&mut self, patterns: &SecretPatterns, to: u64, found: &mut Vec<Match>) {
        let threads_max = THREADS_MAX + patterns.len() * THREADS_PER_PATTERN;
        let begun = self.items.iter().filter(|item| item.at == self.place && is_value(item));
        if begun.clone().count() <= threads_max {
            return;
        }
        let mut begun: Vec<u64> = begun.map(|item| item.from).collect();
        begun.sort_unstable();
        let newer = begun.get(begun.len() / 2).copied().unwrap_or_default();
        let value = |item: &ScanItem| match item.what {
            ScanProgress::Value { pattern, .. } if item.at == self.place => Some((item.from, patterns.value(pattern))),
            _ => None,
        };
        let oldest = self.items.iter().filter_map(value).min();
        found.extend(oldest.map(|(from, value)| Match { from, to, value }));
        self.items.retain(|item| value(item).is_none_or(|(from, _)| from >= newer));
    }

    /// Keeps the items at the current place, and those that an open escape there may continue.
    fn forget(&mut self) {
        // By place, the depth of the escape that ends here.
        let mut wanted: Vec<(u64, u8)> = vec![(self.place, 0)];
        let mut kept = Vec::with_capacity(self.items.len());
        for item in self.items.drain(..).rev() {
            let Some(least) = wanted.iter().filter(|(place, _)| *place == item.at).map(|(_, depth)| *depth).min()
            else {
                continue;
            };
            if let ScanProgress::Escape { depth, .. } = item.what {
                let depth = depth.max(least) + 1;
                if depth > DEPTH_MAX {
                    continue;
                }
                wanted.push((item.start, depth));
            }
            // The newest come first, so the oldest item is dropped.
            if item.at == self.place || kept.len() < ITEMS_MAX {
                kept.push(item);
            }
        }
        kept.reverse();
        self.items = kept;
    }

    /// Decides that no undecided byte is part of an escape.
    fn settle(&mut self, patterns: &SecretPatterns, found: &mut Vec<Match>) {
        let mut units = std::mem::take(&mut self.undecided);
        for (_, unit) in units.drain(..) {
            self.decode(patterns, unit, found);
        }
        self.undecided = units;
    }

    #[inline]
    fn decode(&mut self, patterns: &SecretPatterns, unit: TextByte, found: &mut Vec<Match>) {
        if self.layer < LAYERS_MAX && patterns.are_decoded() {
            let layer = self.layer + 1;
            self.lanes.get_or_insert_with(|| Box::new(Lanes::new(layer))).push(patterns, unit, found);
        }
    }
}

const fn is_value(item: &ScanItem) -> bool {
    matches!(item.what, ScanProgress::Value { .. })
}
