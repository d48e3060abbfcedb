//! Icons: pictures for the user interfaces of clients.

use crate::diagnostic::{Diagnostic, Span};
use crate::quantity::show_bytes;
use crate::read::{Entry, Problems, Section};
use crate::settings::accessors;
use crate::table::table;
use crate::words::{Word as _, words};

/// The most icons of one thing: one for each size and background.
pub(crate) const ICONS_MAX: usize = 8;

/// The longest address of an icon, in bytes. A small picture fits a `data:` address, and clients
/// get it with each answer.
const SRC_BYTES_MAX: usize = 8 << 10;

/// The most sizes of one icon.
const SIZES_MAX: usize = 8;

/// The longest MIME type, in characters.
const MIME_TYPE_CHARS_MAX: usize = 127;

words! {
    /// The background that an icon is drawn for.
    #[derive(Clone, Copy, PartialEq)]
    enum Theme {
        Light "light",
        Dark "dark",
    }
}

accessors! {
    /// One icon. Nothing is fetched: clients do.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct IconRule {
        /// Its `https:` or `data:` address.
        src: String => &str,
        /// Its media type.
        mime_type: Option<String> => Option<&str>,
        /// Its sizes, such as `48x48`, or `any`.
        sizes: Vec<String> => &[String],
        /// True for a dark background, false for a light one; `None` for any.
        is_for_dark: Option<bool> => Option<bool>,
    }
}

table! {
    /// A picture for user interfaces.
    pub(crate) ICON "Icon" {
        /// Its address, which clients fetch: `https:`, or `data:` with the picture itself.
        "src" required: Text,
            {"pattern": "^(https://|data:image/)", "maxLength": SRC_BYTES_MAX, "examples": ["https://acme.example/icon.png"]};
        /// Its media type.
        "mime_type": Text, {"maxLength": MIME_TYPE_CHARS_MAX, "examples": ["image/png"]};
        /// Its sizes in pixels, or `any` for one that scales.
        "sizes": List(&Text), {"maxItems": SIZES_MAX, "examples": [["48x48"], ["any"]]};
        /// The background that it is drawn for.
        "theme": Words(Theme::WORDS), {"examples": ["dark"]};
    }
    other names { "url" => "src", "type" => "mime_type", "mimeType" => "mime_type", "size" => "sizes" }
}

/// The icons of one thing.
pub(crate) fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<IconRule>> {
    let sections = entry.sections(ICONS_MAX, problems)?;
    Some(sections.iter().filter_map(|(section, span)| read_one(section, span, problems)).collect())
}

fn read_one(section: &Section<'_>, span: &Span, problems: &mut Problems) -> Option<IconRule> {
    section.check_keys(&ICON, problems);
    let Some(entry) = section.get("src") else {
        let problem = Diagnostic::error("manifest::missing", "an icon needs a src").at(span.clone());
        return problems.refuse(problem.hint("add src = \"https://…\", or \"data:image/png;base64,…\""));
    };
    let src = src(&entry, problems);
    let mime_type = section.get("mime_type").and_then(|entry| mime_type(&entry, problems));
    let sizes = section.get("sizes").map(|entry| sizes(&entry, problems)).unwrap_or_default();
    let theme: Option<Theme> = section.get("theme").and_then(|entry| entry.word(problems));
    Some(IconRule { src: src?, mime_type, sizes, is_for_dark: theme.map(|theme| theme == Theme::Dark) })
}

fn src(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.len() > SRC_BYTES_MAX {
        format!("must have at most {}", show_bytes(SRC_BYTES_MAX as u64))
    } else if !(text.starts_with("https://") || text.starts_with("data:image/")) {
        "must begin with https:// or data:image/".to_owned()
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\')) {
        "has characters that are not allowed in an address".to_owned()
    } else {
        return Some(text.to_owned());
    };
    problems.refuse(entry.error("icons::src", format!("src {wrong}")))
}

fn mime_type(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let is_plain = text.starts_with("image/") && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && text.len() <= MIME_TYPE_CHARS_MAX {
        return Some(text.to_owned());
    }
    problems.refuse(entry.error("icons::mime_type", format!("{text:?} is not the media type of a picture: image/…")))
}

fn sizes(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut sizes = Vec::new();
    for (text, span) in entry.strings(SIZES_MAX, problems).unwrap_or_default() {
        let is_number = |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if text == "any" || text.split_once('x').is_some_and(|(width, height)| is_number(width) && is_number(height)) {
            sizes.push(text.to_owned());
            continue;
        }
        let problem = Diagnostic::error("icons::sizes", format!("{text:?} is not a picture size")).at(span);
        problems.add(problem.hint("write \"48x48\", or \"any\""));
    }
    sizes
}
