//! A message as it is sent (RFC 5322 with MIME): lines that end in CRLF, none longer than 78 bytes, ASCII only. Holds no
//! SMTP: dots at the beginnings of lines are doubled there.

use std::time::{SystemTime, UNIX_EPOCH};

use toolkit::Failure;

use crate::address::Address;
use crate::settings::From;
use crate::{date, random};

/// The longest line of a body in quoted-printable, without its end (RFC 2045, 6.7).
const LINE_MAX: usize = 76;

/// The most bytes of text in one encoded word, so that it has at most 75 characters (RFC 2047, 2): in base64, 45
/// bytes are 60, and `=?utf-8?B?` and `?=` are 12.
const WORD_BYTES_MAX: usize = 45;

/// Random bytes of an identifier: nobody guesses it, and no two are the same.
const ID_BYTES: usize = 16;

/// A message, ready to be sent.
pub struct Message {
    id: String,
    text: String,
}

impl Message {
    /// # Errors
    /// [`Failure::InvalidInput`] where the subject is more than a line; [`Failure::Failed`] without randomness.
    pub fn new(from: &From, to: &[Address], subject: &str, body: &str) -> Result<Self, Failure> {
        let mut bytes = [0; ID_BYTES];
        if !random::fill(&mut bytes) {
            return Err(Failure::Failed("the host gave no random bytes".to_owned()));
        }
        let random: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("{random}@{}", from.address.domain());
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
        let text = written(&Head { from, to, subject, id: &id, date: &date::written(seconds) }, body)?;
        Ok(Self { id, text })
    }

    /// Its identifier, without angle brackets.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

struct Head<'a> {
    from: &'a From,
    to: &'a [Address],
    subject: &'a str,
    id: &'a str,
    date: &'a str,
}

fn written(head: &Head<'_>, body: &str) -> Result<String, Failure> {
    if let Some(control) = head.subject.chars().find(|letter| letter.is_control() || is_line_end(*letter)) {
        return Err(Failure::invalid(format!("the subject is one line of text, and has {control:?} in it")));
    }
    let address = &head.from.address;
    let from = match head.from.name.as_str() {
        "" => address.to_string(),
        name => format!("{}\r\n <{address}>", words(name)),
    };
    let to: Vec<String> = head.to.iter().map(Address::to_string).collect();
    let to = to.join(",\r\n ");
    let subject = words(head.subject);
    let id = head.id;
    let date = head.date;
    Ok(format!(
        "Date: {date}\r\nFrom: {from}\r\nTo: {to}\r\nMessage-ID: <{id}>\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{}",
        quoted(body)
    ))
}

/// Line ends that are no control characters; some readers of headers take them for one.
fn is_line_end(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Text of a header: as it is where it is short and plain, else encoded words on lines of their own.
fn words(text: &str) -> String {
    // A text that looks like an encoded word would be read as one.
    let is_plain = text.len() <= 60
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" !#$%&'*+-/?^_`{|}~.,:;()[]@".contains(&byte))
        && !text.contains("=?")
        && text.trim() == text;
    // In front of an address these would be part of its syntax.
    let is_phrase = !text.bytes().any(|byte| b".,:;()[]@".contains(&byte));
    if is_plain && (is_phrase || !text.bytes().any(|byte| b",;()[]@".contains(&byte))) {
        return text.to_owned();
    }
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    for letter in text.chars() {
        // A character is never cut in two.
        if part.len() + letter.len_utf8() > WORD_BYTES_MAX {
            parts.push(std::mem::take(&mut part));
        }
        part.push(letter);
    }
    parts.push(part);
    let encoded: Vec<String> = parts.iter().map(|part| format!("=?utf-8?B?{}?=", base64(part.as_bytes()))).collect();
    encoded.join("\r\n ")
}

/// A body in quoted-printable. Every kind of line end becomes CRLF, and the last line has one.
fn quoted(body: &str) -> String {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(body.len() + body.len() / 8 + 2);
    for line in body.strip_suffix('\n').unwrap_or(&body).split('\n') {
        quote_line(line.as_bytes(), &mut out);
        out.push_str("\r\n");
    }
    out
}

fn quote_line(line: &[u8], out: &mut String) {
    let mut length = 0;
    for (at, byte) in line.iter().enumerate() {
        let is_last = at + 1 == line.len();
        // A blank at the end of a line may be lost on the way.
        let is_plain = (b'!'..=b'~').contains(byte) && *byte != b'=' || b" \t".contains(byte) && !is_last;
        let width = if is_plain { 1 } else { 3 };
        // One column stays for the mark of a soft break.
        let end = if is_last { LINE_MAX } else { LINE_MAX - 1 };
        if length + width > end {
            out.push_str("=\r\n");
            length = 0;
        }
        if is_plain {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("={byte:02X}"));
        }
        length += width;
    }
}

/// Base64 with padding (RFC 4648, 4).
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |sextet: u32| char::from(LETTERS.get(sextet as usize & 63).copied().unwrap_or(b'A'));
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut held = 0;
        for at in 0..3 {
            held = held << 8 | u32::from(three.get(at).copied().unwrap_or(0));
        }
        for at in 0..4 {
            out.push(if at <= three.len() { letter(held >> (18 - 6 * at)) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn from(name: &str) -> From {
        From { name: name.to_owned(), address: Address::parse("tools@example.com").unwrap() }
    }

    fn message(name: &str, subject: &str, body: &str) -> Result<String, Failure> {
        let to = [Address::parse("a@example.com").unwrap(), Address::parse("b@example.com").unwrap()];
        let date = date::written(0);
        written(&Head { from: &from(name), to: &to, subject, id: "1@example.com", date: &date }, body)
    }

    #[test]
    fn a_message_is_as_it_should_be() {
        assert_eq!(
            message("", "Tea", "Hello\nthere").unwrap(),
            "Date: Thu, 1 Jan 1970 00:00:00 +0000\r\nFrom: tools@example.com\r\nTo: a@example.com,\r\n b@example.com\r\n\
             Message-ID: <1@example.com>\r\nSubject: Tea\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
             Hello\r\nthere\r\n"
        );
    }

    #[test]
    fn a_subject_is_one_line() {
        for subject in ["a\r\nBcc: x@y", "a\nb", "a\rb", "a\0", "a\u{85}b", "a\u{2028}b", "a\u{b}b", "\u{7f}"] {
            assert!(message("", subject, "x").is_err(), "{subject:?}");
        }
    }

    #[test]
    fn other_letters_are_encoded_and_never_cut() {
        for (text, encoded) in [
            ("plain: words - ok", "plain: words - ok"),
            ("Grüße", "=?utf-8?B?R3LDvMOfZQ==?="),
            ("=?utf-8?Q?x?=", "=?utf-8?B?PT91dGYtOD9RP3g/PQ==?="),
            (" blank", "=?utf-8?B?IGJsYW5r?="),
            ("a, b <c@d>", "=?utf-8?B?YSwgYiA8Y0BkPg==?="),
        ] {
            assert_eq!(words(text), encoded, "{text}");
        }
        let long = words(&"ä€𝄞".repeat(30));
        assert!(long.split("\r\n").all(|line| line.trim().len() <= 75), "{long}");
        assert!(long.split("\r\n ").all(|word| word.starts_with("=?utf-8?B?") && word.ends_with("?=")));
    }

    #[test]
    fn a_body_is_ascii_with_short_lines() {
        for (body, quoted_body) in [
            ("a=b", "a=3Db\r\n"),
            ("é", "=C3=A9\r\n"),
            ("end \nx\t", "end=20\r\nx=09\r\n"),
            ("one\r\ntwo\rthree\n\n", "one\r\ntwo\r\nthree\r\n\r\n"),
            (".\n..", ".\r\n..\r\n"),
            ("", "\r\n"),
            ("\0\u{1b}", "=00=1B\r\n"),
        ] {
            assert_eq!(quoted(body), quoted_body, "{body:?}");
        }
        for body in ["x".repeat(500), "é".repeat(300), "y ".repeat(200)] {
            let lines = quoted(&body);
            assert!(lines.split("\r\n").all(|line| line.len() <= LINE_MAX), "{lines}");
            assert_eq!(
                lines.replace("=\r\n", "").trim_end().len(),
                quoted(&body).replace("=\r\n", "").trim_end().len()
            );
        }
        assert_eq!(quoted(&"x".repeat(76)), format!("{}\r\n", "x".repeat(76)));
        assert_eq!(quoted(&"x".repeat(77)), format!("{}=\r\nxx\r\n", "x".repeat(75)));
    }

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
