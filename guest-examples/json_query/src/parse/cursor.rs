//! Going through the text of a query: single characters, numbers, quoted texts, and errors at a place. Holds no
//! grammar of paths.

use std::fmt;

/// The largest number that all JSON programs agree on: 2^53 - 1 (RFC 9535, section 2.1).
const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// Characters of a long path that an error shows on either side of the mistake.
const CONTEXT_LETTERS: usize = 40;

/// A query that is not one.
#[derive(Debug)]
pub struct SyntaxError {
    message: String,
    /// What of the path is shown, and how many characters of it stand before the mistake.
    shown: String,
    indent: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\n  {}\n  {:indent$}^", self.message, self.shown, "", indent = self.indent)
    }
}

/// A place in the text of a query.
pub struct Cursor<'text> {
    text: &'text str,
    /// In bytes; always at the beginning of a character.
    at: usize,
}

impl<'text> Cursor<'text> {
    /// At the beginning of a text.
    pub fn new(text: &'text str) -> Self {
        Self { text, at: 0 }
    }

    /// Where it is, to come back to.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes back to where it was.
    pub fn return_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The next character, which stays the next.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Whether the text ends here.
    pub fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next character.
    pub fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Goes past a character, if it is the next.
    pub fn take(&mut self, letter: char) -> bool {
        let taken = self.peek() == Some(letter);
        if taken {
            self.at += letter.len_utf8();
        }
        taken
    }

    /// Goes past all of a text, if it comes next.
    pub fn take_all(&mut self, text: &str) -> bool {
        let taken = self.rest().starts_with(text);
        if taken {
            self.at += text.len();
        }
        taken
    }

    /// Goes past the characters that fit, and gives them.
    pub fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'text str {
        let rest = self.rest();
        let end = rest.find(|letter| !fits(letter)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// Goes past blanks and line ends.
    pub fn skip_blanks(&mut self) {
        self.take_while(|letter| matches!(letter, ' ' | '\t' | '\n' | '\r'));
    }

    /// What is left of the text.
    pub fn rest(&self) -> &'text str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The text from a position up to here.
    pub fn since(&self, position: usize) -> &'text str {
        self.text.get(position..self.at).unwrap_or("")
    }

    /// A whole number.
    pub fn integer(&mut self) -> Result<i64, SyntaxError> {
        let start = self.at;
        let negative = self.take('-');
        let first_digit = self.at;
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.error("after - comes a number"));
        }
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(self.error_at("a number has no leading zero", first_digit + 1));
        }
        if negative && digits == "0" {
            return Err(self.error_at("zero has no sign here", start));
        }
        match self.since(start).parse::<i64>() {
            Ok(number) if number.abs() <= INTEGER_MAX => Ok(number),
            _ => {
                let message = format!("a number here lies between -{INTEGER_MAX} and {INTEGER_MAX}");
                Err(self.error_at(message, start))
            }
        }
    }

    /// A text in single or double quotes.
    pub fn quoted(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let quote = self.next();
        let mut text = String::new();
        loop {
            let here = self.at;
            match self.next() {
                None => return Err(self.error_at("the quote that begins here does not end", start)),
                letter if letter == quote => return Ok(text),
                Some('\\') => text.push(self.escape(quote, here)?),
                Some(control) if control < ' ' => {
                    return Err(self.error_at("a control character in quotes is written \\u0000", here));
                }
                Some(letter) => text.push(letter),
            }
        }
    }

    fn escape(&mut self, quote: Option<char>, start: usize) -> Result<char, SyntaxError> {
        Ok(match self.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode_escape(start),
            Some(letter) if matches!(letter, '/' | '\\') || Some(letter) == quote => letter,
            Some(letter) => {
                let message = format!("there is no escape \\{letter}; a backslash itself is written \\\\");
                return Err(self.error_at(message, start));
            }
            None => return Err(self.error_at("the path ends in the middle of an escape", start)),
        })
    }

    /// The part of `\u1234` after the `u`; characters beyond 16 bits come as two of them.
    fn unicode_escape(&mut self, start: usize) -> Result<char, SyntaxError> {
        let unit = self.four_hex_digits(start)?;
        let code = match unit {
            0xD800..=0xDBFF if self.take_all("\\u") => match self.four_hex_digits(start)? {
                low @ 0xDC00..=0xDFFF => 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00),
                _ => unit,
            },
            _ => unit,
        };
        char::from_u32(code).ok_or_else(|| self.error_at("half a surrogate pair is not a character", start))
    }

    fn four_hex_digits(&mut self, start: usize) -> Result<u32, SyntaxError> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4 * usize::from(code.is_some());
        code.ok_or_else(|| self.error_at("after \\u come four hexadecimal digits", start))
    }

    /// An error at the next character.
    pub fn error(&self, message: impl Into<String>) -> SyntaxError {
        self.error_at(message, self.at)
    }

    /// An error at a position.
    pub fn error_at(&self, message: impl Into<String>, position: usize) -> SyntaxError {
        // Line ends and the like would tear the caret away from its place.
        let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
        let before: Vec<char> = self.text.get(..position).unwrap_or("").chars().map(visible).collect();
        let mut after = self.text.get(position..).unwrap_or("").chars().map(visible);
        let skipped = before.len().saturating_sub(CONTEXT_LETTERS);
        let mut shown = String::from(if skipped > 0 { "…" } else { "" });
        shown.extend(before.iter().skip(skipped));
        let indent = shown.chars().count();
        shown.extend(after.by_ref().take(CONTEXT_LETTERS));
        shown.push_str(if after.next().is_some() { "…" } else { "" });
        SyntaxError { message: message.into(), shown, indent }
    }
}
