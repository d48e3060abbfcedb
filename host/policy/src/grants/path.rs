//! Paths of HTTP requests in one normal form, and the patterns that rules name them with.
//!
//! | form | matches | does not match |
//! |---|---|---|
//! | none | every path | |
//! | `/` | `/` alone | `/a` |
//! | `/v1/now` | that path | `/v1/now/`, `/v1/nower` |
//! | `/v1/*`, `/v1/**` | everything below: `/v1/a`, `/v1/a/b`, `/v1/` | `/v1`, `/v10/a` |
//! | `/v1/*/now` | one segment in the star's place, at least one character | `/v1/now`, `/v1//now`, `/v1/a/b/now` |
//! | `/v1/day-*.json` | any characters of one segment, also none | `/v1/day-1/2.json` |
//! | `/v1/{}`, `/v1/{}/now` | one segment, at least one character, also at the end | `/v1/`, `/v1/a/b` |
//! | `/*`, `/**` | every path | |
//!
//! A path is compared in its normal form. `.` and `..` are resolved, also as `%2e`, and `\` becomes
//! `/`. Letters and digits lose their percent-encoding, everything else gets it in upper case. That
//! form is sent. A path that servers may read in more than one way is ambiguous: only a rule for
//! every path of its host matches it. Examples are an encoded slash, backslash or NUL, `%25` before
//! two hexadecimal digits, and a `%` without them. So are `..;`, bytes that are not UTF-8, and dots
//! and slashes of other alphabets: see `readings.rs`.
//!
//! ```
//! use toolcell_policy::PathPattern;
//! let matches = |pattern: &str, path: &str| PathPattern::parse(pattern).ok().map(|pattern| pattern.matches(path));
//! for path in ["/v1/a", "/v1/a/b", "/v1/", "/v1//a"] {
//!     assert_eq!(matches("/v1/*", path), Some(true), "{path}");
//!     assert_eq!(matches("/v1/**", path), Some(true), "{path}");
//! }
//! for path in ["/v1", "/v10/a", "/", "/v1/../v2/a", "/v1/%2e%2E/v2", "/v1/..%2fv2", "/v1/%252e%252e%252fv2", "/v1\\..\\v2"] {
//!     assert_eq!(matches("/v1/*", path), Some(false), "{path}");
//! }
//! assert_eq!(matches("/v1/*/now", "/v1/berlin/now"), Some(true));
//! assert_eq!(matches("/v1/*/now", "/v1//now"), Some(false));
//! assert_eq!(matches("/v1/day-*.json", "/v1/day-12.json"), Some(true));
//! assert_eq!(matches("/v1/day-*.json", "/v1/day-1/2.json"), Some(false));
//! assert_eq!(matches("/v1/{}", "/v1/berlin"), Some(true));
//! assert_eq!(matches("/v1/{}", "/v1/"), Some(false));
//! assert_eq!(matches("/v1/{}", "/v1/berlin/now"), Some(false));
//! assert_eq!(matches("/v1/now", "/v1/%6Eow"), Some(true));
//! assert_eq!(matches("/*", "/v1/..%2fv2"), Some(true));
//! ```

use std::borrow::Cow;
use std::fmt;

use super::readings;
use super::rule::RuleError;

/// One segment, also at the end of a pattern.
const ONE: &str = "{}";
const ONE_AT_END: &str = "/{}";

/// The paths of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathPattern {
    segments: Vec<Segment>,
    /// True if anything may follow them.
    rest: bool,
}

/// One segment of a rule's paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    /// This text.
    Text(String),
    /// `*`: at least one character.
    One,
    /// The texts before the first star, between the stars, and after the last one.
    Glob { first: String, between: Vec<String>, last: String },
}

/// A path in its normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NormalPath<'a> {
    pub(crate) text: Cow<'a, str>,
    /// True if servers may read it in more than one way.
    pub(crate) ambiguous: bool,
}

impl PathPattern {
    /// Every path.
    pub const ANY: Self = Self { segments: Vec::new(), rest: true };

    /// Reads a pattern of the table above; an empty text is [`PathPattern::ANY`].
    ///
    /// # Errors
    /// [`RuleError`] where the text has none of the forms, or no path can match it.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text.is_empty() {
            return Ok(Self::ANY);
        }
        if text.split('/').any(is_dot_segment) {
            return Err(RuleError::DotSegment);
        }
        let ends_with_one = text.ends_with(ONE_AT_END);
        let text: Vec<&str> = text.split('/').map(|part| if part == ONE { "*" } else { part }).collect();
        let text = text.join("/");
        let path = normal(&text);
        let inner = path.text.strip_prefix('/').unwrap_or(&path.text);
        let mut segments: Vec<&str> = inner.split('/').collect();
        let rest = !ends_with_one && matches!(segments.last(), Some(&"*" | &"**"));
        if rest {
            segments.pop();
        }
        if segments.iter().any(|segment| segment.contains("**")) {
            return Err(RuleError::Rest);
        }
        if path.ambiguous {
            return Err(RuleError::AmbiguousPath);
        }
        Ok(Self { segments: segments.into_iter().map(Segment::parse).collect(), rest })
    }

    /// True if it matches a path, in any form.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.matches_normal(&normal(path))
    }

    /// True if it matches every path.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.rest && self.segments.is_empty()
    }

    pub(crate) fn matches_normal(&self, path: &NormalPath<'_>) -> bool {
        self.is_any() || (!path.ambiguous && self.matches_text(&path.text))
    }

    fn matches_text(&self, path: &str) -> bool {
        let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in &self.segments {
            let Some(part) = parts.next() else { return false };
            if !segment.matches(part) {
                return false;
            }
        }
        // The rest is at least one segment, which may be empty: `/v1/` is below `/v1/`, `/v1` is
        // not.
        parts.next().is_some() == self.rest
    }

    pub(crate) fn lies_within(&self, wider: &Self) -> bool {
        if wider.is_any() {
            return true;
        }
        let enough = match (self.rest, wider.rest) {
            (true, false) => return false,
            (false, false) => self.segments.len() == wider.segments.len(),
            (false, true) => self.segments.len() > wider.segments.len(),
            (true, true) => self.segments.len() >= wider.segments.len(),
        };
        enough && self.segments.iter().zip(&wider.segments).all(|(segment, wider)| segment.lies_within(wider))
    }

    /// True if some path may match both. Errs on the side of true.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let mine = self.segments.len();
        let others = other.segments.len();
        let lengths_fit = match (self.rest, other.rest) {
            (true, true) => true,
            (false, false) => mine == others,
            (false, true) => mine > others,
            (true, false) => others > mine,
        };
        lengths_fit && self.segments.iter().zip(&other.segments).all(|(one, other)| one.overlaps(other))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            // A star at the end would be any rest.
            let is_last = !self.rest && at + 1 == self.segments.len();
            match segment {
                Segment::One if is_last => formatter.write_str(ONE_AT_END)?,
                segment => write!(formatter, "/{segment}")?,
            }
        }
        formatter.write_str(if self.rest { "/*" } else { "" })
    }
}

impl Segment {
    fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::One;
        }
        let Some((first, rest)) = text.split_once('*') else { return Self::Text(text.to_owned()) };
        let mut between: Vec<String> = rest.split('*').map(str::to_owned).collect();
        let last = between.pop().unwrap_or_default();
        Self::Glob { first: first.to_owned(), between, last }
    }

    /// Each text between the stars is searched once, so the cost is at most the path's length for
    /// each.
    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Text(text) => text == part,
            Self::One => !part.is_empty(),
            Self::Glob { first, between, last } => {
                let Some(inner) = part.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str()))
                else {
                    return false;
                };
                let found = between
                    .iter()
                    .try_fold(inner, |rest, text| rest.find(text.as_str()).and_then(|at| rest.get(at + text.len()..)));
                found.is_some()
            }
        }
    }

    /// A star of the narrower segment is replaced by a character that occurs in no text, so only a
    /// star matches it.
    fn lies_within(&self, wider: &Self) -> bool {
        match (self, wider) {
            (Self::Text(text), wider) => wider.matches(text),
            (Self::One, wider) => matches!(wider, Self::One) || wider.matches("\0") && wider.matches(""),
            // With text between its stars, it never matches the empty segment.
            (Self::Glob { .. }, wider) => wider.matches(&self.to_string().replace('*', "\0")) && !self.may_be_empty(),
        }
    }

    fn may_be_empty(&self) -> bool {
        matches!(self, Self::Glob { first, between, last } if first.is_empty() && last.is_empty()
            && between.iter().all(String::is_empty))
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), other) | (other, Self::Text(text)) => other.matches(text),
            (Self::Glob { first, last, .. }, Self::Glob { first: other_first, last: other_last, .. }) => {
                (first.starts_with(other_first.as_str()) || other_first.starts_with(first.as_str()))
                    && (last.ends_with(other_last.as_str()) || other_last.ends_with(last.as_str()))
            }
            _ => true,
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::One => formatter.write_str("*"),
            Self::Glob { first, between, last } => {
                write!(formatter, "{first}*")?;
                between.iter().try_for_each(|text| write!(formatter, "{text}*"))?;
                formatter.write_str(last)
            }
        }
    }
}

/// The normal form of a path, borrowed if it already has it.
pub(crate) fn normal(path: &str) -> NormalPath<'_> {
    if is_normal(path) {
        return NormalPath { text: Cow::Borrowed(path), ambiguous: false };
    }
    let (decoded, ambiguous) = decoded(path);
    let text = without_dots(&decoded);
    // Checked on the result, since decoding may reveal another encoding.
    let ambiguous = ambiguous || readings::is_ambiguous(&text);
    NormalPath { text: Cow::Owned(text), ambiguous }
}

/// True if the path is already in its normal form: only unreserved characters, and no segment that
/// starts with a dot.
fn is_normal(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'\\') && !is_encoded(byte);
    path.starts_with('/') && path.bytes().all(plain) && !path.contains("/.")
}

/// The characters of a path that the URL rules encode.
const fn is_encoded(byte: u8) -> bool {
    !byte.is_ascii_graphic() || matches!(byte, b'"' | b'#' | b'<' | b'>' | b'?' | b'^' | b'`' | b'{' | b'}')
}

/// Normalized percent-encoding, and whether servers may disagree on its meaning.
fn decoded(path: &str) -> (String, bool) {
    let mut text = String::with_capacity(path.len() + 8);
    let mut ambiguous = false;
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let Some((value, after)) = hexadecimal(rest) else {
                    ambiguous = true;
                    text.push('%');
                    continue;
                };
                rest = after;
                ambiguous |= matches!(value, b'/' | b'\\' | 0);
                push(&mut text, value, !is_unreserved(value));
            }
            b'\\' => text.push('/'),
            byte => push(&mut text, byte, is_encoded(byte)),
        }
    }
    (text, ambiguous)
}

fn push(text: &mut String, byte: u8, encoded: bool) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    if !encoded {
        text.push(char::from(byte));
        return;
    }
    text.push('%');
    for digit in [byte >> 4, byte & 15] {
        text.extend(DIGITS.get(usize::from(digit)));
    }
}

/// The value of two hexadecimal digits, and the rest.
pub(super) fn hexadecimal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(2)?;
    let value = digits.iter().try_fold(0_u32, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))?;
    Some((u8::try_from(value).ok()?, rest))
}

/// Unreserved characters stand for themselves everywhere: RFC 3986, section 2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_dot_segment(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e.")
}

/// Resolves `.` and `..`, as URLs do: `..` at the top stays there, and either at the end leaves a
/// slash.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_in_dots = false;
    for part in path.strip_prefix('/').unwrap_or(path).split('/') {
        ends_in_dots = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if ends_in_dots {
        parts.push("");
    }
    format!("/{}", parts.join("/"))
}
