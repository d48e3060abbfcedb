//! One strict pass over the text of a frame: grammar, nesting, numbers, surrogates and duplicate
//! keys. It notes the members of the envelope, of `params` and of `_meta`, and decides nothing.

use std::borrow::Cow;

/// Deepest nesting of objects and arrays in a frame; the frame itself is level 1.
///
/// serde_json stops at 127 and most clients near 1,000; no honest call comes close.
pub(crate) const DEPTH_MAX: usize = 128;

/// Most members of the envelope, `params` and `_meta` together.
///
/// The protocol defines about a dozen. The bound keeps the notes of a hostile 16 MiB frame small.
pub(crate) const MEMBERS_MAX: usize = 1_024;

/// Keys of one object that are compared pairwise. For more, sorting is cheaper.
const PAIRWISE_MAX: usize = 8;

/// Initial capacity for members and keys: a modern `tools/call` has about a dozen.
const TYPICAL_KEYS: usize = 16;

/// The object that a member belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectLevel {
    /// The JSON-RPC object itself.
    Envelope,
    /// Its `params`.
    Params,
    /// The `_meta` of its `params`.
    Meta,
}

/// One member of an object that the protocol reads.
#[derive(Clone, Debug)]
pub(crate) struct FrameMember<'a> {
    pub(crate) level: ObjectLevel,
    pub(crate) key: Cow<'a, str>,
    /// The value's text, without surrounding space.
    pub(crate) value: &'a str,
}

/// A key that appears twice in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub(crate) key: String,
    /// True if the object is `params` or within it.
    pub(crate) in_params: bool,
}

/// The outermost value of a frame.
#[derive(Debug)]
pub(crate) enum FrameShape<'a> {
    Object,
    /// The texts of the elements.
    Array(Vec<&'a str>),
    Scalar,
}

#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    pub(crate) shape: FrameShape<'a>,
    pub(crate) members: Vec<FrameMember<'a>>,
    pub(crate) duplicate: Option<Duplicate>,
    /// The first excess. The frame is refused, but the client waits for an answer to its id.
    pub(crate) excess: Option<FrameExcess>,
}

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonFault {
    #[error("not valid UTF-8")]
    Encoding,
    #[error("not valid JSON at byte {0}")]
    Syntax(usize),
}

/// Something that JSON allows and this host refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameExcess {
    #[error("nested deeper than {levels_max} levels at byte {at}")]
    Depth { levels_max: usize, at: usize },
    #[error("a number at byte {0} is too large for a 64-bit float")]
    Number(usize),
    #[error("an unpaired surrogate at byte {0}")]
    Surrogate(usize),
    #[error("more than {MEMBERS_MAX} members in the envelope, params and _meta")]
    Members,
}

/// Why a single value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error(transparent)]
    Fault(#[from] JsonFault),
    #[error(transparent)]
    Excess(#[from] FrameExcess),
}

/// Scans a whole frame.
pub(crate) fn scan(frame: &[u8]) -> Result<Scanned<'_>, JsonFault> {
    let text = std::str::from_utf8(frame).map_err(|_| JsonFault::Encoding)?;
    scan_text(text)
}

/// Scans a frame that is known to be UTF-8, such as an entry of a batch.
pub(crate) fn scan_text(text: &str) -> Result<Scanned<'_>, JsonFault> {
    let mut scanner = FrameScanner::new(text, DEPTH_MAX);
    scanner.space();
    let shape = match scanner.peek() {
        Some(b'[') => FrameShape::Array(scanner.batch()?),
        Some(b'{') => {
            scanner.value(MemberRole::Envelope)?;
            FrameShape::Object
        }
        _ => {
            scanner.value(MemberRole::Elsewhere)?;
            FrameShape::Scalar
        }
    };
    scanner.end()?;
    let FrameScanner { members, duplicate, excess, .. } = scanner;
    Ok(Scanned { shape, members, duplicate, excess })
}

/// Checks one JSON value that may nest `depth_max` levels, such as a tool's structured result. The
/// answer is a key that one object has twice.
pub(crate) fn check_value(text: &str, depth_max: usize) -> Result<Option<String>, ValueError> {
    let mut scanner = FrameScanner::new(text, depth_max);
    scanner.space();
    scanner.value(MemberRole::Elsewhere)?;
    scanner.end()?;
    match scanner.excess {
        Some(excess) => Err(excess.into()),
        None => Ok(scanner.duplicate.map(|found| found.key)),
    }
}

/// The decoded text of a JSON string; `None` for any other value.
pub(crate) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(value).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// True for the text of an object.
pub(crate) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// A number in hexadecimal digits, in lower case, as cursors have them.
pub(crate) fn hex(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| plain)
}

/// What an object's members mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberRole {
    Envelope,
    Params,
    Meta,
    BelowParams,
    Elsewhere,
}

impl MemberRole {
    fn level(self) -> Option<ObjectLevel> {
        match self {
            Self::Envelope => Some(ObjectLevel::Envelope),
            Self::Params => Some(ObjectLevel::Params),
            Self::Meta => Some(ObjectLevel::Meta),
            Self::BelowParams | Self::Elsewhere => None,
        }
    }

    fn in_params(self) -> bool {
        matches!(self, Self::Params | Self::Meta | Self::BelowParams)
    }

    fn child(self, key: &str) -> Self {
        match (self, key) {
            (Self::Envelope, "params") => Self::Params,
            (Self::Params, "_meta") => Self::Meta,
            (Self::Envelope | Self::Elsewhere, _) => Self::Elsewhere,
            _ => Self::BelowParams,
        }
    }

    fn element(self) -> Self {
        if self.in_params() { Self::BelowParams } else { Self::Elsewhere }
    }
}

struct FrameScanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    depth_max: usize,
    members: Vec<FrameMember<'a>>,
    /// The keys of all open objects, innermost last.
    keys: Vec<Cow<'a, str>>,
    duplicate: Option<Duplicate>,
    excess: Option<FrameExcess>,
}

impl<'a> FrameScanner<'a> {
    fn new(text: &'a str, depth_max: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            depth_max,
            members: Vec::with_capacity(TYPICAL_KEYS),
            keys: Vec::with_capacity(TYPICAL_KEYS),
            duplicate: None,
            excess: None,
        }
    }

    fn note(&mut self, excess: FrameExcess) {
        self.excess.get_or_insert(excess);
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn syntax<T>(&self) -> Result<T, JsonFault> {
        Err(JsonFault::Syntax(self.at))
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.syntax()
    }

    fn end(&mut self) -> Result<(), JsonFault> {
        self.space();
        if self.at == self.bytes.len() { Ok(()) } else { self.syntax() }
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn value(&mut self, inside: MemberRole) -> Result<(), JsonFault> {
        match self.peek() {
            Some(b'{' | b'[') if self.depth >= self.depth_max => self.skip(),
            Some(b'{') => self.object(inside),
            Some(b'[') => self.array(inside.element()),
            Some(b'"') => self.string().map(|_has_escapes| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.syntax(),
        }
    }

    fn open(&mut self) {
        self.depth += 1;
        self.at += 1;
    }

    /// Skips an object or array that is nested too deeply, in constant memory. Brackets are counted
    /// but not matched, since the frame is refused anyway.
    fn skip(&mut self) -> Result<(), JsonFault> {
        self.note(FrameExcess::Depth { levels_max: self.depth_max, at: self.at });
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => open += 1,
                Some(b'}' | b']') => open -= 1,
                Some(_) => {}
                None => return self.syntax(),
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }

    fn object(&mut self, inside: MemberRole) -> Result<(), JsonFault> {
        self.open();
        let first_key = self.keys.len();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.depth -= 1;
            return Ok(());
        }
        loop {
            self.space();
            self.member(inside)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.syntax(),
            }
        }
        self.at += 1;
        self.depth -= 1;
        self.note_duplicate(first_key, inside);
        self.keys.truncate(first_key);
        Ok(())
    }

    fn member(&mut self, inside: MemberRole) -> Result<(), JsonFault> {
        let key = self.key()?;
        self.space();
        self.expect(b':')?;
        self.space();
        let from = self.at;
        self.value(inside.child(&key))?;
        if let Some(level) = inside.level() {
            self.keep(FrameMember { level, key: key.clone(), value: self.slice(from, self.at) });
        }
        self.keys.push(key);
        Ok(())
    }

    /// Records a member. Past the bound, only ids are recorded: the refusal names one, if it is the
    /// only one.
    fn keep(&mut self, member: FrameMember<'a>) {
        const IDS_MAX: usize = 2;
        let full = self.members.len() >= MEMBERS_MAX;
        if full {
            self.note(FrameExcess::Members);
        }
        let is_id = member.level == ObjectLevel::Envelope && member.key == "id";
        if !full || (is_id && self.members.len() < MEMBERS_MAX + IDS_MAX) {
            self.members.push(member);
        }
    }

    fn note_duplicate(&mut self, first_key: usize, inside: MemberRole) {
        if self.duplicate.is_some() {
            return;
        }
        let keys = self.keys.get(first_key..).unwrap_or_default();
        if let Some(key) = repeated(keys) {
            self.duplicate = Some(Duplicate { key: key.to_owned(), in_params: inside.in_params() });
        }
    }

    fn array(&mut self, inside: MemberRole) -> Result<(), JsonFault> {
        self.elements(inside, |_, _, _| {})
    }

    fn batch(&mut self) -> Result<Vec<&'a str>, JsonFault> {
        let mut entries = Vec::new();
        self.elements(MemberRole::Elsewhere, |scanner, from, to| entries.push(scanner.slice(from, to)))?;
        Ok(entries)
    }

    fn elements(&mut self, inside: MemberRole, mut each: impl FnMut(&Self, usize, usize)) -> Result<(), JsonFault> {
        self.open();
        self.space();
        if self.peek() != Some(b']') {
            loop {
                self.space();
                let from = self.at;
                self.value(inside)?;
                each(self, from, self.at);
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return self.syntax(),
                }
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), JsonFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        self.syntax()
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { self.syntax() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), JsonFault> {
        /// Fewer digits than this, without an exponent, always fit a 64-bit float (its largest has
        /// 309).
        const DIGITS_SAFE: usize = 300;
        let from = self.at;
        let mut exponent = false;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            exponent = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let risky = exponent || self.at - from > DIGITS_SAFE;
        if risky && !self.slice(from, self.at).parse::<f64>().is_ok_and(f64::is_finite) {
            self.note(FrameExcess::Number(from));
        }
        Ok(())
    }

    /// Reads and decodes a key. An invalid one is kept as written, with its quotes, since the frame
    /// is refused anyway.
    fn key(&mut self) -> Result<Cow<'a, str>, JsonFault> {
        if self.peek() != Some(b'"') {
            return self.syntax();
        }
        let from = self.at;
        if !self.string()? {
            return Ok(Cow::Borrowed(self.slice(from + 1, self.at - 1)));
        }
        let written = self.slice(from, self.at);
        Ok(serde_json::from_str(written).map_or(Cow::Borrowed(written), Cow::Owned))
    }

    /// Skips a string. True if it has escapes.
    fn string(&mut self) -> Result<bool, JsonFault> {
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'));
            self.at += plain.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return self.syntax(),
            }
        }
        self.at += 1;
        Ok(escaped)
    }

    fn escape(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                match self.code_unit()? {
                    0xD800..=0xDBFF => self.low_surrogate(start)?,
                    0xDC00..=0xDFFF => self.note(FrameExcess::Surrogate(start)),
                    _ => {}
                }
                Ok(())
            }
            _ => self.syntax(),
        }
    }

    /// Reads the second half of a surrogate pair whose first half begins at `start`. Anything else
    /// is left to the caller.
    fn low_surrogate(&mut self, start: usize) -> Result<(), JsonFault> {
        let after = self.at;
        if self.peek() == Some(b'\\') && self.bytes.get(after + 1) == Some(&b'u') {
            self.at += 1;
            if (0xDC00..=0xDFFF).contains(&self.code_unit()?) {
                return Ok(());
            }
            self.at = after;
        }
        self.note(FrameExcess::Surrogate(start));
        Ok(())
    }

    /// Reads `uXXXX`, starting at the `u`.
    fn code_unit(&mut self) -> Result<u32, JsonFault> {
        let digits = self.bytes.get(self.at + 1..self.at + 5).unwrap_or_default();
        let mut unit = 0;
        for digit in digits {
            let Some(value) = char::from(*digit).to_digit(16) else { return self.syntax() };
            unit = unit * 16 + value;
        }
        if digits.len() != 4 {
            return self.syntax();
        }
        self.at += 5;
        Ok(unit)
    }
}

/// A key that appears twice among these.
fn repeated<'k>(keys: &'k [Cow<'_, str>]) -> Option<&'k str> {
    if keys.len() <= PAIRWISE_MAX {
        return keys
            .iter()
            .enumerate()
            .find_map(|(place, key)| keys.iter().take(place).any(|earlier| earlier == key).then_some(key.as_ref()));
    }
    let mut sorted: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}
