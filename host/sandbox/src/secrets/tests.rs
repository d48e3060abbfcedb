//! A value in every form that JSON, HTML, URLs, base64 and hexadecimal digits can give it, and
//! texts that are costly to read.
//!
//! Promise: a secret that the host adds does not come back.
use std::time::{Duration, Instant};

use super::Redactor;
use super::forms::base64;

/// A value with every character that some encoding escapes.
const KEY: &str = "s3cr3t/Key+with \"odd\" <b>ytes</b>&é\\n=%41'`";

type Encoding = (&'static str, fn(&[u8]) -> String);

fn each(text: &[u8], form: impl Fn(char) -> String) -> String {
    String::from_utf8_lossy(text).chars().map(form).collect()
}

fn units(text: &[u8], form: impl Fn(u16) -> String) -> String {
    String::from_utf8_lossy(text).encode_utf16().map(form).collect()
}

fn json(text: &[u8]) -> String {
    each(text, |letter| match letter {
        '"' | '\\' | '/' => format!("\\{letter}"),
        '&' | '<' | '>' | '+' | '\'' | '`' | '=' => format!("\\u{:04X}", u32::from(letter)),
        '\n' => "\\n".to_owned(),
        letter => letter.to_string(),
    })
}

fn html(text: &[u8]) -> String {
    each(text, |letter| match letter {
        '"' => "&quot;".to_owned(),
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '\'' => "&#39;".to_owned(),
        '/' => "&sol;".to_owned(),
        '+' => "&plus;".to_owned(),
        '=' => "&equals;".to_owned(),
        '\\' => "&bsol;".to_owned(),
        '%' => "&percnt;".to_owned(),
        '`' => "&grave;".to_owned(),
        'é' => "&eacute;".to_owned(),
        letter => letter.to_string(),
    })
}

fn percent(text: &[u8]) -> String {
    text.iter()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Ways to write a text that do not change it for a reader of that form.
const ENCODINGS: &[Encoding] = &[
    ("json", json),
    ("json, all letters", |text| units(text, |unit| format!("\\u{unit:04x}"))),
    ("json, every other letter", |text| {
        let letters = String::from_utf8_lossy(text).into_owned();
        let form = |(at, letter): (usize, char)| {
            if at % 2 == 0 { format!("\\u{:04X}", u32::from(letter)) } else { json(letter.to_string().as_bytes()) }
        };
        letters.chars().enumerate().map(form).collect()
    }),
    ("html", html),
    ("html, decimal", |text| each(text, |letter| format!("&#{};", u32::from(letter)))),
    ("html, hexadecimal with zeros", |text| each(text, |letter| format!("&#x{:06X};", u32::from(letter)))),
    ("percent", percent),
    ("percent, all bytes in mixed case", |text| {
        text.iter()
            .enumerate()
            .map(|(at, byte)| if at % 2 == 0 { format!("%{byte:02x}") } else { format!("%{byte:02X}") })
            .collect()
    }),
    ("encodeURIComponent", |text| {
        text.iter()
            .map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(*byte).to_string(),
                b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => char::from(*byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect()
    }),
    ("base64", |text| text_of(&base64(text, b"+/"))),
    ("base64 for URLs, one on", |text| text_of(&base64(&[b"u", text, b"::"].concat(), b"-_"))),
    ("base64, two on, in lines", |text| {
        let whole = text_of(&base64(&[b"u:", text, b"and what follows"].concat(), b"+/"));
        whole.as_bytes().chunks(20).map(|line| text_of(line) + "\r\n").collect()
    }),
    ("digits", |text| text.iter().map(|byte| format!("{byte:02x}")).collect()),
    ("digits in mixed case and apart", |text| {
        let digits = text
            .iter()
            .enumerate()
            .map(|(at, byte)| if at % 2 == 0 { format!("{byte:02X}") } else { format!("{byte:02x}") });
        digits.collect::<Vec<_>>().join(":")
    }),
];

fn redactor() -> Redactor {
    Redactor::new([("KEY", KEY.as_bytes())].into_iter())
}

/// Redacts a text whole and in pieces, which must be the same.
fn redacted(redactor: &Redactor, text: &str) -> String {
    let whole = redactor.text(text).into_owned();
    for piece_bytes in [1, 2, 3, 7, 64] {
        let mut stream = redactor.stream();
        let mut clean: Vec<u8> = text.as_bytes().chunks(piece_bytes).flat_map(|piece| stream.push(piece)).collect();
        clean.extend(stream.finish());
        let mut clean = String::from_utf8_lossy(&clean).into_owned();
        // A letter with a few bits of a twice-encoded value is passed on at once.
        if clean.len() == whole.len() + 1 {
            clean.remove(clean.find("[redacted:").unwrap() - 1);
        }
        assert_eq!(clean, whole, "in pieces of {piece_bytes}: {text}");
    }
    whole
}

#[track_caller]
fn assert_gone(text: &str, how: &str) {
    let clean = redacted(&redactor(), &format!("{{\"before\": \"{text}\", \"after\": 1}}"));
    assert!(clean.starts_with("{\"before\": \"") && clean.ends_with("\", \"after\": 1}"), "{how}: {text}: {clean}");
    assert_eq!(clean.matches("[redacted:KEY]").count(), 1, "{how}: {text}: {clean}");
    assert!(clean.len() < 110 + text.len() / 2, "{how}: {text}: {clean}");
}

#[test]
fn a_value_is_found_in_each_encoding() {
    assert_gone(KEY, "as it is");
    for (how, encode) in ENCODINGS {
        assert_gone(&encode(KEY.as_bytes()), how);
    }
}

#[test]
fn a_value_is_found_in_each_encoding_of_each_encoding() {
    for (inner_name, inner) in ENCODINGS {
        for (outer_name, outer) in ENCODINGS {
            assert_gone(&outer(inner(KEY.as_bytes()).as_bytes()), &format!("{outer_name} of {inner_name}"));
        }
    }
}

#[test]
fn a_value_is_found_in_escapes_of_escapes_of_escapes_and_of_what_is_decoded() {
    let named = |name: &str| ENCODINGS.iter().find(|(known, _)| *known == name).unwrap().1;
    for names in [
        ["json", "json", "json"],
        ["percent", "percent", "percent"],
        ["html", "html", "html"],
        ["json", "html", "percent"],
        ["percent", "json", "html"],
        ["json, all letters", "html", "json"],
        ["json", "base64", "percent"],
        ["base64", "json", "base64 for URLs, one on"],
        ["html", "digits", "json, all letters"],
        ["digits", "base64", "json"],
        ["percent", "base64", "base64 for URLs, one on"],
    ] {
        let text = names.iter().fold(KEY.to_owned(), |text, name| named(name)(text.as_bytes()));
        assert_gone(&text, &format!("{names:?}"));
    }
}

#[test]
fn what_stands_beside_a_value_does_not_hide_it() {
    let redactor = Redactor::new(
        [("KEY", b"41c0ffee;amp;/x".as_slice()), ("ODD", br"\u0041\\/%2B-odd&amp".as_slice())].into_iter(),
    );
    for value in ["41c0ffee;amp;/x", r"\u0041\\/%2B-odd&amp"] {
        for (how, form) in
            [("as it is", None)].into_iter().chain(ENCODINGS.iter().map(|(name, form)| (*name, Some(form))))
        {
            let written = form.map_or(value.to_owned(), |form| form(value.as_bytes()));
            for before in
                ["", "%", "%4", "\\", "\\\\", "\\\\\\", "\\u00", "&", "&#", "&#x", "&am", "%25", "\\u002", "\\ud83d"]
            {
                for after in ["", ";", "41", "\\", "%"] {
                    // Letters right next to base64 would belong to it.
                    let border = if how.contains("base64") || how.contains("digits") { " " } else { "" };
                    let clean = redacted(&redactor, &format!("{before}{border}{written}{border}{after}"));
                    assert!(clean.contains("[redacted:"), "{how}, {before} {after}: {clean}");
                    assert!(!clean.contains("c0ffee") && !clean.contains("odd"), "{how}, {before} {after}: {clean}");
                }
            }
        }
    }
}

#[test]
fn ordinary_text_is_passed_on_as_it_is_and_at_once() {
    let texts = [
        "data: {\"text\": \"a \\u00e9 \\\"b\\\" &amp; 100% %41 \\\\n\"}\n\n",
        "<p>Ernte &auml;hnlich &#8212; s3cr3t/Ke &lt;b&gt;</p>\n",
        "QmFzZTY0IG9mIG9yZGluYXJ5IHRleHQgd2l0aG91dCBhbnl0aGluZw==\n",
        "deadbeef:00:11 %zz %u12 \\q \\ud83d &none; &#x; &#99999999;\n",
        "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\ %25%25%2525 &amp;amp;amp;amp;\n",
    ];
    let redactor = redactor();
    let mut stream = redactor.stream();
    for text in texts {
        assert!(matches!(redactor.text(text), std::borrow::Cow::Borrowed(_)), "{text}");
        assert_eq!(String::from_utf8(stream.push(text.as_bytes())).unwrap(), text, "nothing of a line is kept back");
    }
    assert_eq!(stream.finish(), b"");
}

#[test]
fn a_value_in_the_name_of_a_field_is_found_without_its_capitals() {
    let redactor = Redactor::new([("KEY", b"Sk-Live-0123456789".as_slice())].into_iter());
    let encoded = text_of(&base64(b"Sk-Live-0123456789", b"-_")).to_ascii_lowercase();
    let names = [
        "sk-live-0123456789",
        "x-sk-live-0123456789-y",
        "x-%73k-live-0123456789",
        "x-536b2d4c6976652d30313233343536373839",
    ];
    for name in names.into_iter().chain([encoded.as_str()]) {
        assert!(redactor.is_in_name(name), "{name}");
    }
    for name in ["x-live", "content-type", "sk-live-012345678"] {
        assert!(!redactor.is_in_name(name), "{name}");
    }
}

/// Texts in which every byte may begin something.
fn costly(bytes: usize) -> Vec<(&'static str, String)> {
    let base64_of = |text: &[u8]| text_of(&base64(text, b"+/"));
    let mut texts: Vec<(&str, String)> = [
        ("backslashes", "\\"),
        ("percent signs", "%25"),
        ("ampersands", "&amp;"),
        ("more ampersands", "&amp;amp"),
        ("numbers", "&#0"),
        ("zeros", "0"),
        ("units", "\\u005c"),
        ("mixed", "\\u0026#x25;&#92;%5c"),
        ("halves", "\\ud83d"),
        ("beginnings", "s3cr3t/Key+with \"odd\" <b>ytes</b>&é\\n=%41'"),
        ("repeated", "a"),
        ("words", "and so on, "),
        ("digits", "7333 "),
    ]
    .into_iter()
    .map(|(name, text)| (name, text.repeat(bytes / text.len())))
    .collect();
    let inner = KEY[..40].repeat(bytes / 100);
    texts.push(("base64 of beginnings", base64_of(inner.as_bytes())));
    texts.push(("base64 of base64 of beginnings", base64_of(base64_of(inner.as_bytes()).as_bytes())));
    texts.push(("escapes in base64", base64_of("\\\\%25".repeat(bytes / 10).as_bytes())));
    texts
}

#[test]
fn texts_made_to_be_costly_are_read_in_linear_time_and_bounded_memory() {
    // 256 of the same letter, so that each place of such a text begins as many values.
    let same = "a".repeat(256);
    let redactor = Redactor::new([("KEY", KEY.as_bytes()), ("SAME", same.as_bytes())].into_iter());
    // Some tens of milliseconds each on an idle machine: at most two microseconds for a byte.
    const BYTES: usize = 128 << 10;
    const TIME_MAX: Duration = Duration::from_secs(20);
    for (name, text) in costly(BYTES) {
        let began = Instant::now();
        let mut stream = redactor.stream();
        let mut most = 0;
        for piece in text.as_bytes().chunks(4_000) {
            stream.push(piece);
            most = most.max(stream.kept_back_bytes());
        }
        stream.finish();
        println!("{name}: {:?} for {} bytes, {most} kept back", began.elapsed(), text.len());
        assert!(began.elapsed() < TIME_MAX, "{name}: {:?}", began.elapsed());
        assert!(most <= 64 * 256 + (8 << 10), "{name}: {most} bytes kept back");
    }
}

#[test]
fn a_value_that_repeats_itself_is_not_missed() {
    let same = format!("{}b", "a".repeat(300));
    let redactor = Redactor::new([("SAME", same.as_bytes())].into_iter());
    let clean = redacted(&redactor, &format!("<{}b>", "a".repeat(5_000)));
    assert!(clean.starts_with("<[redacted:SAME]") && !clean.contains(&"a".repeat(100)), "{clean}");
}
