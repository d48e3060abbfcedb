//! A reader of our own markup, which accepts no other: the elements and attributes that pages use,
//! addresses within the console, and texts without characters that hide or turn others.

const ELEMENTS: &[&str] = &[
    "a",
    "article",
    "b",
    "bdi",
    "body",
    "br",
    "button",
    "caption",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "head",
    "header",
    "html",
    "i",
    "img",
    "input",
    "ins",
    "label",
    "legend",
    "li",
    "line",
    "link",
    "main",
    "meta",
    "nav",
    "ol",
    "option",
    "p",
    "path",
    "pre",
    "rect",
    "script",
    "section",
    "select",
    "span",
    "strong",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "textarea",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
    "wbr",
];

const ATTRIBUTES: &[&str] = &[
    "action",
    "alt",
    "aria-current",
    "aria-describedby",
    "aria-hidden",
    "aria-invalid",
    "aria-label",
    "autocomplete",
    "charset",
    "class",
    "content",
    "d",
    "data-copy",
    "data-drawn",
    "data-events",
    "data-label",
    "data-none",
    "data-lines",
    "data-live",
    "datetime",
    "defer",
    "download",
    "for",
    "height",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "inputmode",
    "lang",
    "max",
    "maxlength",
    "method",
    "min",
    "name",
    "open",
    "placeholder",
    "preserveAspectRatio",
    "rel",
    "required",
    "role",
    "rows",
    "rx",
    "scope",
    "selected",
    "spellcheck",
    "src",
    "tabindex",
    "text-anchor",
    "title",
    "type",
    "value",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];

const VOID: &[&str] = &["br", "img", "input", "link", "meta", "wbr"];

/// Ok where all markup of a page or a part is of ours, and closed in its order.
pub fn check(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap_or(page);
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start])?;
        let tag = &rest[start + 1..];
        if let Some(tag) = tag.strip_prefix('/') {
            let end = tag.find('>').ok_or("a tag never ends")?;
            let expected = open.pop().ok_or_else(|| format!("</{}> closes nothing", &tag[..end]))?;
            if tag[..end] != *expected {
                return Err(format!("</{}> closes <{expected}>", &tag[..end]));
            }
            rest = &tag[end + 1..];
            continue;
        }
        let (name, behind) = start_tag(tag)?;
        if !VOID.contains(&name) {
            open.push(name);
        }
        // What a person typed stands in a field as it is.
        if name == "textarea" {
            rest = &behind[behind.find('<').ok_or("a text area never ends")?..];
            continue;
        }
        if name == "script" && !behind.starts_with("</script>") {
            return Err("a script has a text".to_owned());
        }
        rest = behind;
    }
    check_text(rest)?;
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} stay open")) }
}

/// The name of an element, and what follows its tag.
fn start_tag(tag: &str) -> Result<(&str, &str), String> {
    let end = tag.find(|letter: char| !letter.is_ascii_alphanumeric()).ok_or("a tag never ends")?;
    let (name, mut rest) = tag.split_at(end);
    if !ELEMENTS.contains(&name) {
        return Err(format!("<{name}> is none of ours"));
    }
    loop {
        if let Some(behind) = rest.strip_prefix('>') {
            return Ok((name, behind));
        }
        let attribute = rest.strip_prefix(' ').ok_or_else(|| format!("<{name}{:.40}", rest))?;
        let end = attribute.find(['=', ' ', '>']).ok_or("an attribute never ends")?;
        let (key, behind) = attribute.split_at(end);
        if !ATTRIBUTES.contains(&key) {
            return Err(format!("{key} is none of our attributes, in <{name}>"));
        }
        let Some(quoted) = behind.strip_prefix("=\"") else {
            rest = behind;
            continue;
        };
        let end = quoted.find('"').ok_or("a value never ends")?;
        check_value(name, key, &quoted[..end])?;
        rest = &quoted[end + 1..];
    }
}

fn check_value(element: &str, key: &str, value: &str) -> Result<(), String> {
    let good = match key {
        "href" | "action" | "data-events" => {
            let within = value.starts_with('/') && !value.starts_with("//");
            (within || value.starts_with('#')) && value.is_ascii() && !value.contains([' ', '<', '\\'])
        }
        "src" if element == "img" => {
            ["png", "jpeg", "gif", "webp"].iter().any(|kind| value.starts_with(&format!("data:image/{kind};base64,")))
        }
        "src" => value.starts_with("/assets/"),
        "id" | "for" | "class" | "name" | "data-copy" | "data-live" => {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b' '))
        }
        "title" => {
            check_text(value)?;
            !value.contains('<')
        }
        _ => !value.contains('<'),
    };
    if good { Ok(()) } else { Err(format!("{key}={value:.80} in <{element}>")) }
}

fn check_text(text: &str) -> Result<(), String> {
    let hidden = |letter: char| {
        matches!(letter, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    match text.chars().find(|letter| hidden(*letter)) {
        Some(letter) => Err(format!("{letter:?} is hidden in a text")),
        None => Ok(()),
    }
}
