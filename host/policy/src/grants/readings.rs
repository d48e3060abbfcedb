//! How servers and proxies may misread a path: they decode twice, accept encodings other than
//! UTF-8, normalize lookalikes, or cut parameters off.
//!
//! No list of such servers is complete, so this file asks the opposite: is a path plain? One
//! decoding of a plain path leaves UTF-8 without anything more to decode, and no further slashes.
//! No segment is dots, or dots followed by something that a reader might cut off.
//!
//! | written | may be read as |
//! |---|---|
//! | `..%3b`, `..;x`, `..%00`, `..%20`, `...` | `..`, where parameters, ends or spaces are cut off |
//! | `%c0%ae`, `%e0%80%ae`, `%ff` | `.`, by readers of UTF-8 that take longer forms than there are |
//! | `%252e`, `%25u002e`, `%ef%bc%852e` | `%2e` |
//! | `%ef%bc%8e`, `%e2%80%a4`, `%e2%88%95` | `.` and `/`, where text is normalized or fitted into a code page |
//! | `%c4%ae%c4%ae` | `..`, where characters are cut to bytes |
//!
//! Promise: a request goes where its rule says.

use super::path::hexadecimal;

/// True if some reader may find a dot segment, a slash or another encoding in a path in normal
/// form.
pub(super) fn is_ambiguous(path: &str) -> bool {
    let Ok(decoded) = String::from_utf8(decoded(path)) else { return true };
    let plain: String = decoded.chars().filter(|letter| !is_ignored(*letter)).map(plain).collect();
    let slashes = |text: &str| text.chars().filter(|letter| matches!(letter, '/' | '\\')).count();
    let cut: String = decoded.chars().map(cut).collect();
    slashes(&plain) != slashes(path)
        || is_encoded(&plain)
        || plain.split('/').any(begins_with_dots)
        || cut.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Percent-decodes once.
fn decoded(path: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let encoded = if *byte == b'%' { hexadecimal(after) } else { None };
        let (byte, after) = encoded.unwrap_or((*byte, after));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// True if it still contains `%2e` or `%u002e`.
fn is_encoded(text: &str) -> bool {
    let digits =
        |text: &str, count| text.len() >= count && text.bytes().take(count).all(|byte| byte.is_ascii_hexdigit());
    let wide = |text: &str| text.strip_prefix(['u', 'U']).is_some_and(|rest| digits(rest, 4));
    text.split('%').skip(1).any(|rest| digits(rest, 2) || wide(rest))
}

/// True if a segment is dots, or dots with something behind them that some reader cuts off. `.git`
/// and `..a` are names, and a star is part of a pattern.
fn begins_with_dots(segment: &str) -> bool {
    let segment = segment.trim();
    let rest = segment.trim_start_matches('.');
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '~' | '*');
    rest.len() < segment.len() && !rest.starts_with(is_name)
}

/// The plain character that another one may be mapped to: by compatibility forms (NFKC), host names
/// (UTS 46), or code pages.
fn plain(letter: char) -> char {
    match letter {
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = u32::from(letter).checked_sub(0xfee0).and_then(char::from_u32);
            ascii.unwrap_or(letter)
        }
        '\u{2024}'..='\u{2026}' | '\u{3002}' | '\u{fe12}' | '\u{fe19}' | '\u{fe30}' | '\u{fe52}' | '\u{ff61}' => '.',
        '\u{2044}' | '\u{2215}' | '\u{2571}' | '\u{29f8}' => '/',
        '\u{a5}' | '\u{20a9}' | '\u{2216}' | '\u{2572}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' => '\\',
        '\u{66a}' | '\u{fe6a}' => '%',
        letter => letter,
    }
}

/// A character's last byte, which remains if a reader truncates characters to bytes.
fn cut(letter: char) -> char {
    u8::try_from(u32::from(letter) & 0xff).map_or(letter, char::from)
}

/// Characters that normalization, or address parsing, removes.
const fn is_ignored(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::super::path::normal;

    fn ambiguous(path: &str) -> bool {
        normal(path).ambiguous
    }

    #[test]
    fn what_may_be_read_as_dots_or_as_a_slash_is_ambiguous() {
        let dots = [
            "..;",
            "..;a=b",
            "..%3b",
            "..%3B",
            ".%3bx",
            "%2e%2e%3b",
            "..%00",
            "..%09",
            "..%20",
            "..%c2%a0",
            "%20..",
            "...",
            "....",
            ". .",
            "..%3f",
            "..%23",
            "..:",
            "..%2c",
            "%c0%ae%c0%ae",
            "%c0%2e%c0%2e",
            "%e0%80%ae",
            "%f0%80%80%ae",
            "%f8%80%80%80%ae",
            "%fc%80%80%80%80%ae",
            "%ff",
            "%ed%a0%80",
            "%80",
            "%252e%252e",
            "%25252e",
            "%%32%65",
            "%25u002e",
            "%u002e",
            "%2",
            "%zz",
            "%ef%bc%8e%ef%bc%8e",
            "．．",
            "．%ef%bc%8e",
            "․․",
            "‥",
            "…",
            "。。",
            "%ef%bc%852e",
            "％２ｅ",
            "..；",
            "..%ef%bc%9b",
            ".\u{ad}.",
            ".\u{200b}.",
            "\u{feff}..",
            ".\u{fe0f}.",
            "ĮĮ",
            "%c4%ae%c4%ae",
            "..\u{338}",
        ];
        for dots in dots.iter().filter(|dots| !dots.contains(' ')) {
            for path in [format!("/v1/{dots}/admin"), format!("/v1/{dots}"), format!("/v1/a/{dots}/b/{dots}")] {
                assert!(ambiguous(&path), "{path}");
            }
        }
        for slash in [
            "%2f",
            "%2F",
            "%5c",
            "%255c",
            "%c0%af",
            "%c1%9c",
            "%e0%80%af",
            "%f0%80%80%af",
            "%252f",
            "%c0%2f",
            "／",
            "＼",
            "∕",
            "⁄",
            "%ef%bc%8f",
            "%ef%bc%8f",
            "¥",
            "%c2%a5",
            "%25c0%25af",
            "%u2215",
            "%00",
        ] {
            for path in [format!("/v1/a{slash}b"), format!("/v1/..{slash}admin"), format!("/v1/{slash}")] {
                assert!(ambiguous(&path), "{path}");
            }
        }
    }

    #[test]
    fn names_are_not() {
        for path in [
            "/",
            "/v1/now",
            "/v1/",
            "/v1//a",
            "/v1/é",
            "/v1/%C3%A9/x",
            "/v1/東京/天気",
            "/v1/įrašai",
            "/v1/a;b=c/d",
            "/v1/;/x",
            "/v1/.well-known/x",
            "/v1/..a",
            "/v1/.git",
            "/v1/a..",
            "/v1/a.b.c",
            "/v1/100%25",
            "/v1/a%20b",
            "/v1/%7Eme",
            "/v1/.%2A",
            "/v1/a%2Bb",
            "/v1/{id}",
            "/v1/x:y",
            "/v1/@me",
            "/v1/../v2/now",
            "/v1/%2e/now",
            "/v1\\now",
        ] {
            assert!(!ambiguous(path), "{path}");
        }
    }
}
