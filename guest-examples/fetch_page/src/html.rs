//! HTML to text with Markdown's marks: headings, lists, links, code. Holds no entities' names but the usual ones, and no scripts.

use std::mem;

use crate::page::Shown;
use crate::url;

/// Elements whose content nobody reads.
const UNREAD: [&str; 9] = ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "textarea"];

/// Elements that stand on lines of their own, with a blank line around them.
const PARAGRAPHS: [&str; 21] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "ul",
    "ol",
    "dl",
    "table",
    "form",
    "figure",
    "blockquote",
    "pre",
    "h1",
    "h2",
    "h3",
    "h4",
];

/// Elements that begin a new line.
const LINES: [&str; 11] = ["br", "li", "tr", "dt", "dd", "hr", "h5", "h6", "option", "caption", "figcaption"];

/// Reads a page of this URL.
pub fn read(html: &str, base: &str) -> Shown {
    let mut reader = Reader { base, out: String::new(), title: None, link: None, is_pre: false, depth: 0 };
    let mut rest = html;
    while !rest.is_empty() {
        rest = reader.step(rest);
    }
    reader.close_link();
    let title = reader.title.map(|title| words(&title)).filter(|title| !title.is_empty());
    Shown { title, text: reader.out.trim().to_owned() }
}

struct Reader<'a> {
    base: &'a str,
    out: String,
    title: Option<String>,
    /// Where the open link leads, and where its text begins.
    link: Option<(String, usize)>,
    is_pre: bool,
    /// How many lists are open.
    depth: usize,
}

impl Reader<'_> {
    /// Takes the next piece, text or tag, and gives what follows it.
    fn step<'h>(&mut self, html: &'h str) -> &'h str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, rest)| rest);
        }
        let is_tag = html
            .strip_prefix('<')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)));
        if !is_tag {
            // A lone < is text; so is everything up to the next one.
            let end = html.char_indices().skip(1).find(|(_, letter)| *letter == '<').map_or(html.len(), |(at, _)| at);
            let (text, rest) = html.split_at_checked(end).unwrap_or((html, ""));
            self.text(text);
            return rest;
        }
        let end = tag_end(html);
        let (tag, rest) = html.split_at_checked(end).unwrap_or((html, ""));
        let tag = tag.trim_start_matches('<').trim_end_matches('>');
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name_end = tag.find(|letter: char| letter.is_whitespace() || letter == '/').unwrap_or(tag.len());
        let (name, attributes) = tag.split_at_checked(name_end).unwrap_or((tag, ""));
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "title" if !is_end => {
                let (title, rest) = upto_end(rest, "title");
                self.title.get_or_insert_with(|| entities(title));
                rest
            }
            // A page's head is left out, but for its title.
            "head" => rest,
            name if !is_end && UNREAD.contains(&name) => upto_end(rest, name).1,
            name => {
                if is_end {
                    self.close(name)
                } else {
                    self.open(name, attributes)
                }
                rest
            }
        }
    }

    fn text(&mut self, text: &str) {
        let text = entities(text);
        if self.is_pre {
            self.out.push_str(&text);
            return;
        }
        for letter in text.chars() {
            let is_blank = letter.is_whitespace() && letter != '\u{a0}';
            if !is_blank {
                self.out.push(letter);
            } else if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
        }
    }

    /// Ends the line, and leaves `blank` lines free.
    fn line(&mut self, blank: usize) {
        if !self.is_pre {
            let kept = self.out.trim_end_matches(' ').len();
            self.out.truncate(kept);
        }
        if self.out.is_empty() {
            return;
        }
        let there = self.out.len() - self.out.trim_end_matches('\n').len();
        self.out.push_str(&"\n".repeat((blank + 1).saturating_sub(there)));
    }

    fn open(&mut self, name: &str, attributes: &str) {
        if PARAGRAPHS.contains(&name) {
            self.line(usize::from(self.depth == 0));
        } else if LINES.contains(&name) {
            self.line(0);
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.chars().nth(1).and_then(|digit| digit.to_digit(10)).unwrap_or(1);
                self.out.push_str(&"#".repeat(level as usize));
                self.out.push(' ');
            }
            "ul" | "ol" => self.depth += 1,
            "li" => {
                self.out.push_str(&"  ".repeat(self.depth.saturating_sub(1).min(8)));
                self.out.push_str("- ");
            }
            "td" | "th" if !self.out.is_empty() && !self.out.ends_with('\n') => self.out.push_str(" | "),
            "hr" => self.out.push_str("---\n"),
            "pre" => {
                self.out.push_str("```\n");
                self.is_pre = true;
            }
            "code" if !self.is_pre => self.out.push('`'),
            "a" => {
                self.close_link();
                self.link = attribute(attributes, "href").map(|href| (href, self.out.len()));
            }
            "img" => {
                let alt = attribute(attributes, "alt").map(|alt| words(&alt)).unwrap_or_default();
                if !alt.is_empty() {
                    self.text(&format!("[image: {alt}]"));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "a" => self.close_link(),
            "code" if !self.is_pre => self.out.push('`'),
            "pre" if self.is_pre => {
                self.line(0);
                self.out.push_str("```");
                self.is_pre = false;
            }
            "ul" | "ol" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if PARAGRAPHS.contains(&name) {
            self.line(usize::from(self.depth == 0));
        }
    }

    /// Puts a link's text and goal as Markdown has them; one without text, or to a place in the page, is only its text.
    fn close_link(&mut self) {
        let Some((href, start)) = mem::take(&mut self.link) else { return };
        let text = words(self.out.get(start..).unwrap_or_default());
        let is_worth = ["http://", "https://", "/", "."].iter().any(|begin| href.starts_with(begin))
            || !href.contains(':') && !href.starts_with('#');
        if text.is_empty() || !is_worth || text.contains('\n') {
            return;
        }
        let blank = if self.out.get(start..).is_some_and(|text| text.starts_with(' ')) { " " } else { "" };
        self.out.truncate(start);
        self.out.push_str(&format!("{blank}[{text}]({})", url::joined(self.base, href.trim())));
    }
}

/// Where a tag ends: at the first `>` that is not quoted.
fn tag_end(html: &str) -> usize {
    let mut quote = None;
    for (at, letter) in html.char_indices() {
        match (quote, letter) {
            (None, '>') => return at + 1,
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    // A quote that is never closed: up to the first >, as it stands.
    html.find('>').map_or(html.len(), |at| at + 1)
}

/// What an element holds, and what follows its end.
fn upto_end<'h>(html: &'h str, name: &str) -> (&'h str, &'h str) {
    let mut from = 0;
    while let Some(at) = html.get(from..).and_then(|rest| rest.find("</")) {
        let after = html.get(from + at + 2..).unwrap_or("");
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            let rest = after.find('>').and_then(|end| after.get(end + 1..)).unwrap_or("");
            return (html.get(..from + at).unwrap_or(""), rest);
        }
        from += at + 2;
    }
    (html, "")
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some(at) = rest.to_ascii_lowercase().find(name) {
        let before = rest.get(..at).unwrap_or("");
        let after = rest.get(at + name.len()..).unwrap_or("").trim_start();
        if let Some(value) =
            after.strip_prefix('=').filter(|_| before.is_empty() || before.ends_with(char::is_whitespace))
        {
            let value = value.trim_start();
            let value = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => value.get(1..).and_then(|value| value.split(quote).next()),
                _ => value.split(char::is_whitespace).next().map(|value| value.trim_end_matches('/')),
            };
            return value.map(entities);
        }
        rest = rest.get(at + name.len()..).unwrap_or("");
    }
    None
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The usual named entities, and all numbered ones.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.char_indices().take(12).find(|(_, letter)| *letter == ';').map(|(at, _)| at);
        match end.and_then(|end| Some((entity(after.get(..end)?)?, after.get(end + 1..)?))) {
            Some((letter, after)) => {
                out.push(letter);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|letter| !letter.is_control() || *letter == '\n');
    }
    let known = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", '\u{a0}'),
        ("copy", '©'),
        ("reg", '®'),
        ("hellip", '…'),
        ("mdash", '—'),
        ("ndash", '–'),
        ("lsquo", '‘'),
        ("rsquo", '’'),
        ("ldquo", '“'),
        ("rdquo", '”'),
        ("laquo", '«'),
        ("raquo", '»'),
        ("bull", '•'),
        ("middot", '·'),
        ("times", '×'),
        ("deg", '°'),
        ("euro", '€'),
        ("auml", 'ä'),
        ("ouml", 'ö'),
        ("uuml", 'ü'),
        ("Auml", 'Ä'),
        ("Ouml", 'Ö'),
        ("Uuml", 'Ü'),
        ("szlig", 'ß'),
        ("eacute", 'é'),
        ("egrave", 'è'),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, letter)| *letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_a_person_would_read() {
        for (html, text) in [
            ("<p>One &amp; two</p><p>three</p>", "One & two\n\nthree"),
            ("a\n  b\t c", "a b c"),
            ("<h2>Tea</h2>is hot", "## Tea\n\nis hot"),
            ("<ul><li>a<li>b<ul><li>c</ul></ul>d", "- a\n- b\n  - c\n\nd"),
            ("<a href='/x'>go <b>there</b></a>", "[go there](https://a.example/x)"),
            ("<a href=\"#top\">up</a> <a href='javascript:x()'>run</a>", "up run"),
            ("<pre>x\n  y</pre>z", "```\nx\n  y\n```\n\nz"),
            ("<code>a()</code>", "`a()`"),
            ("x<script>if (a < b) { '</p>' }</script>y<style>p{}</style>", "xy"),
            ("x<!-- <p>no --> y", "x y"),
            ("1 < 2 and a<b", "1 < 2 and a"),
            ("<table><tr><td>a<td>b<tr><td>c</table>", "a | b\nc"),
            ("<img alt='a cat' src=x>", "[image: a cat]"),
            ("&#65;&#x42;&nope;&", "AB&nope;&"),
            ("<p title='a > b'>c", "c"),
            ("<script>never closed", ""),
            ("<", "<"),
            ("line<br>break<hr>end", "line\nbreak\n---\nend"),
        ] {
            assert_eq!(read(html, "https://a.example/").text, text, "{html}");
        }
    }

    #[test]
    fn the_title_is_the_first_one() {
        let page = "<head><title> A\n page &amp; more </title><meta charset=utf-8></head><body>b<svg><title>no</title></svg></body>";
        let shown = read(page, "https://a.example/");
        assert_eq!((shown.title.as_deref(), shown.text.as_str()), (Some("A page & more"), "b"));
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        let pieces = [
            "<", ">", "</", "<!--", "-->", "<a href=", "\"", "'", "&", "&#", ";", "é", "<pre>", "</pre>", "<ul>",
            "title", " ",
        ];
        let mut seed = 7_u64;
        for _ in 0..2_000 {
            let mut html = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                html.push_str(pieces.get(usize::try_from(seed >> 33).unwrap_or(0) % pieces.len()).unwrap_or(&""));
            }
            let shown = read(&html, "https://a.example/");
            assert!(shown.text.len() <= 40 * html.len() + 40, "{html}");
        }
    }
}
