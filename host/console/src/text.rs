//! Foreign texts made visible: clipped, escaped, with names in place of characters that would hide
//! or reorder text.

use maud::{Escaper, Markup, Render, html};
use std::fmt::Write as _;

use crate::bounds::{BLOCK_BYTES, COMBINING_MARKS, LINE_BYTES, NAME_BYTES};

/// What a character that is written as an entity, such as `<`, counts in bytes.
const ENTITY_COST: usize = 5;
/// What a character that is shown by its name counts in bytes.
const NAMED_COST: usize = 12;
/// Least number of letters before a break within a word: no line ends after `a_`, and breaks add
/// little to a page.
const BREAK_LETTERS: usize = 4;
/// Letters between two breaks up to which a column widens. Longer words break at any letter at the
/// end of a line: they may be hostile, and the page keeps its width.
const WORD_LETTERS: usize = 20;

/// A text from elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a> {
    text: &'a str,
    max: usize,
    lines: bool,
}

/// A text that stands in a line or a cell: at most [`LINE_BYTES`], line breaks shown by name.
#[must_use]
pub fn line(text: &str) -> Foreign<'_> {
    Foreign { text, max: LINE_BYTES, lines: false }
}

/// A name in a row: at most [`NAME_BYTES`].
#[must_use]
pub fn name(text: &str) -> Foreign<'_> {
    Foreign { text, max: NAME_BYTES, lines: false }
}

/// A text with lines of its own, for an element that keeps white space: at most [`BLOCK_BYTES`].
#[must_use]
pub fn block(text: &str) -> Foreign<'_> {
    block_of(text, BLOCK_BYTES)
}

/// A text with lines of its own and a bound of its own, in bytes.
#[must_use]
pub fn block_of(text: &str, max: usize) -> Foreign<'_> {
    Foreign { text, max, lines: true }
}

/// True if a text is shown whole, and every character of it as itself: what is copied from the page
/// is the text.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let mut cost = 0;
    let mut marks = 0;
    letters(text, true).all(|(_, letter, named)| {
        marks = if is_mark(letter) { marks + 1 } else { 0 };
        cost += cost_of(letter, false);
        cost <= LINE_BYTES && marks <= COMBINING_MARKS && !named
    })
}

/// [`is_plain`] of a text in a block of its own.
#[must_use]
pub fn is_plain_block(text: &str) -> bool {
    text.len() * ENTITY_COST <= BLOCK_BYTES && !letters(text, true).any(|(_, _, named)| named)
}

/// A text for a place without elements, such as a title: clipped, with names for characters that
/// would hide or reorder text.
#[must_use]
pub fn words(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (_, letter, named) in letters(text, false) {
        if shown.len() >= max {
            shown.push('…');
            break;
        }
        if named {
            push_name(&mut shown, letter);
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Several names in one cell, separated by commas; at most
/// [`CELL_ITEMS`](crate::bounds::CELL_ITEMS).
#[must_use]
pub fn list(items: &[String]) -> Markup {
    let max = crate::bounds::CELL_ITEMS;
    html! {
        @for (index, item) in items.iter().take(max).enumerate() {
            @if index > 0 { ", " }
            (name(item))
        }
        @if items.len() > max { span.more { " … " (items.len() - max) " more" } }
    }
}

impl Render for Foreign<'_> {
    fn render_to(&self, page: &mut String) {
        let class_at = page.len() + "<bdi".len();
        page.push_str("<bdi>");
        let shown = self.render_part(page);
        page.push_str("</bdi>");
        if shown.longest_word > WORD_LETTERS {
            page.insert_str(class_at, " class=\"long\"");
        }
        let left = shown.bytes_left;
        if left > 0 {
            let unit = if left == 1 { "byte" } else { "bytes" };
            html! { span.more { " … " (crate::figure::count(as_u64(left))) " more " (unit) } }.render_to(page);
        }
    }
}

impl Foreign<'_> {
    /// True if it is shown whole.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.render_part(&mut String::new()).bytes_left == 0
    }

    /// Writes what fits.
    fn render_part(&self, page: &mut String) -> ShownPart {
        let mut cost = 0;
        let mut marks = 0;
        let mut named: Option<SignRun> = None;
        let mut word = Word::default();
        for (at, letter, hides) in letters(self.text, self.lines) {
            marks = if is_mark(letter) { marks + 1 } else { 0 };
            let by_name = hides || marks > COMBINING_MARKS;
            let repeats = by_name && named.as_ref().is_some_and(|run| run.letter == letter);
            cost += if repeats { 0 } else { cost_of(letter, by_name) };
            if cost > self.max {
                end(&mut named, page);
                return ShownPart { bytes_left: self.text.len() - at, longest_word: word.longest };
            }
            if let (true, Some(run)) = (repeats, named.as_mut()) {
                run.times += 1;
                continue;
            }
            end(&mut named, page);
            if by_name {
                named = Some(SignRun { letter, times: 1 });
                word.ends();
            } else if letter != '\r' {
                // Lines of a block end where the text says, or at any letter.
                if !self.lines && word.breaks_before(letter) {
                    page.push_str("<wbr>");
                }
                let _ = Escaper::new(page).write_char(letter);
            }
        }
        end(&mut named, page);
        ShownPart { bytes_left: 0, longest_word: word.longest }
    }
}

/// The part of a text that was written.
struct ShownPart {
    /// Bytes that are left out.
    bytes_left: usize,
    /// Letters of its longest word, up to a break.
    longest_word: usize,
}

/// A word that is being written. Its line may break after `_`, `-`, `.` and `/`, and nowhere else:
/// `weather_` and `normals`, never `weather_norma` and `ls`.
#[derive(Default)]
struct Word {
    /// Letters since the last possible break.
    letters: usize,
    longest: usize,
    last: Option<char>,
    /// The last letter that is not a separator.
    inner: Option<char>,
}

impl Word {
    /// Takes the next letter. True if a line may break before it.
    fn breaks_before(&mut self, letter: char) -> bool {
        if letter.is_whitespace() {
            self.ends();
            return false;
        }
        let is_separator = |letter: char| matches!(letter, '_' | '-' | '.' | '/');
        // Versions, dates and addresses stay whole.
        let joins_digits = letter.is_ascii_digit() && self.inner.is_some_and(|inner| inner.is_ascii_digit());
        let breaks = self.letters >= BREAK_LETTERS
            && self.last.is_some_and(is_separator)
            && letter.is_alphanumeric()
            && !joins_digits;
        if breaks {
            self.letters = 0;
        }
        self.letters += 1;
        self.longest = self.longest.max(self.letters);
        self.last = Some(letter);
        self.inner = if is_separator(letter) { self.inner } else { Some(letter) };
        breaks
    }

    fn ends(&mut self) {
        *self = Self { longest: self.longest, ..Self::default() };
    }
}

/// A character that is shown by its name, and how often it occurs in a row.
struct SignRun {
    letter: char,
    times: usize,
}

fn end(named: &mut Option<SignRun>, page: &mut String) {
    let Some(run) = named.take() else { return };
    page.push_str("<b class=\"u\">");
    push_name(page, run.letter);
    if run.times > 1 {
        let _ = write!(page, "×{}", run.times);
    }
    page.push_str("</b>");
}

const fn cost_of(letter: char, by_name: bool) -> usize {
    match letter {
        _ if by_name => NAMED_COST,
        '<' | '>' | '&' | '"' => ENTITY_COST,
        _ => letter.len_utf8(),
    }
}

/// The picture of a control character, or the number of any other: `␛`, `U+202E`.
fn push_name(page: &mut String, letter: char) {
    match u32::from(letter) {
        code @ 0..=0x1f => page.extend(char::from_u32(0x2400 + code)),
        0x7f => page.push('␡'),
        code => {
            let _ = write!(page, "U+{code:04X}");
        }
    }
}

/// The letters of a text with their places, and true for those that are shown by name.
fn letters(text: &str, lines: bool) -> impl Iterator<Item = (usize, char, bool)> {
    let mut previous = None;
    text.char_indices().map(move |(at, letter)| {
        let before = previous.replace(letter);
        (at, letter, is_named(letter, lines) || is_stray_selector(before, letter))
    })
}

/// True for an emoji variation selector that follows no symbol: each could carry a hidden bit.
fn is_stray_selector(before: Option<char>, letter: char) -> bool {
    let is_selector = |letter: char| matches!(letter, '\u{fe0e}' | '\u{fe0f}');
    let is_symbol = |before: char| match before {
        '0'..='9' | '#' | '*' => true,
        _ => !before.is_ascii() && !before.is_alphanumeric() && !before.is_whitespace() && !is_selector(before),
    };
    is_selector(letter) && !before.is_some_and(is_symbol)
}

/// True for characters that hide, reorder or break text: they are shown by name.
const fn is_named(letter: char, lines: bool) -> bool {
    match letter {
        '\n' | '\t' | '\r' => !lines,
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// True for combining marks, of the blocks that any letter can carry.
const fn is_mark(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use maud::Render;

    use super::{block, is_plain, is_plain_block, line, name, words};

    #[test]
    fn markup_is_escaped_and_hidden_characters_have_names() {
        let shown = [
            ("a<b>&\"'", "a&lt;b&gt;&amp;&quot;'"),
            ("\u{1b}[31m", "<b class=\"u\">␛</b>[31m"),
            ("a\u{202e}b", "a<b class=\"u\">U+202E</b>b"),
            ("a\nb", "a<b class=\"u\">␊</b>b"),
            ("\0\0\0", "<b class=\"u\">␀×3</b>"),
            ("é漢😀", "é漢😀"),
            ("e\u{301}", "e\u{301}"),
            ("♥\u{fe0f}", "♥\u{fe0f}"),
            ("a\u{fe0f}b\u{fe01}", "a<b class=\"u\">U+FE0F</b>b<b class=\"u\">U+FE01</b>"),
        ];
        for (text, expected) in shown {
            assert_eq!(line(text).render().0, format!("<bdi>{expected}</bdi>"), "{text:?}");
        }
        assert_eq!(block("a\r\n\tb").render().0, "<bdi>a\n\tb</bdi>");
    }

    #[test]
    fn a_name_breaks_behind_its_separators_and_within_no_word() {
        for (text, expected) in [
            ("weather_normals", "<bdi>weather_<wbr>normals</bdi>"),
            (
                "GET https://api.open-meteo.com/v1",
                "<bdi>GET https://<wbr>api.<wbr>open-<wbr>meteo.<wbr>com/<wbr>v1</bdi>",
            ),
            ("wx_live", "<bdi>wx_live</bdi>"),
            ("components.weather.network", "<bdi>components.<wbr>weather.<wbr>network</bdi>"),
            ("a_b_c_d_e", "<bdi>a_b_<wbr>c_d_<wbr>e</bdi>"),
            ("names__of____many-", "<bdi>names__<wbr>of____<wbr>many-</bdi>"),
            ("0.10.2 203.0.113.0/24 2026-07-28", "<bdi>0.10.2 203.0.113.0/24 2026-07-28</bdi>"),
            ("tool_0999", "<bdi>tool_<wbr>0999</bdi>"),
            ("not. A sentence", "<bdi>not. A sentence</bdi>"),
            ("größe_überall", "<bdi>größe_<wbr>überall</bdi>"),
            ("<<<<_a", "<bdi>&lt;&lt;&lt;&lt;_<wbr>a</bdi>"),
            ("abcd_\u{202e}ef", "<bdi>abcd_<b class=\"u\">U+202E</b>ef</bdi>"),
            ("abcdefghijklmnopqrst", "<bdi>abcdefghijklmnopqrst</bdi>"),
            ("a abcdefghijklmnopqrstu", "<bdi class=\"long\">a abcdefghijklmnopqrstu</bdi>"),
        ] {
            assert_eq!(line(text).render().0, expected);
            assert_eq!(name(text).render().0, expected);
        }
        assert_eq!(block("weather_normals").render().0, "<bdi>weather_normals</bdi>");
        // Breaks add a tag to four letters at the least.
        assert!(line(&"abc_".repeat(1_000_000)).render().0.len() < 1_000);
    }

    #[test]
    fn marks_that_pile_up_are_counted_and_not_drawn() {
        let shown = line(&format!("e{}", "\u{301}".repeat(1_000))).render().0;
        assert_eq!(shown, "<bdi>e\u{301}\u{301}\u{301}<b class=\"u\">U+0301×997</b></bdi>");
    }

    #[test]
    fn a_long_text_is_clipped_at_a_character_and_says_how_much_is_missing() {
        let shown = line(&"é".repeat(5_000_000)).render().0;
        assert!(shown.ends_with("é</bdi><span class=\"more\"> … 9,999,600 more bytes</span>"), "{}", shown.len());
        assert!(shown.len() < 600);
        for hostile in ["<", "\u{1b}a", "\u{202e}\u{1b}", "&", "\u{e0001}x"] {
            let shown = line(&hostile.repeat(1_000_000)).render().0;
            assert!(shown.len() < 2_000, "{hostile:?}: {}", shown.len());
        }
        let one_more = format!("{}x", "a".repeat(crate::bounds::LINE_BYTES));
        assert!(line(&one_more).render().0.ends_with(" 1 more byte</span>"));
    }

    #[test]
    fn a_run_of_one_hidden_character_costs_no_more_than_one() {
        let shown = line(&"\u{200b}".repeat(3_000_000)).render().0;
        assert_eq!(shown, "<bdi><b class=\"u\">U+200B×3000000</b></bdi>");
    }

    #[test]
    fn words_hold_no_hidden_characters() {
        assert_eq!(words("a\u{202e}\n\u{1b}", 100), "aU+202E␊␛");
        assert_eq!((words("weather", 7), words("weathers", 7)), ("weather".to_owned(), "weather…".to_owned()));
        assert!(words(&"x".repeat(1_000_000), 40).len() < 60);
        assert!(is_plain("hosts = [\"a.example\"]") && !is_plain("a\u{202e}") && !is_plain(&"a".repeat(9_999)));
        let lines = "fuel = \"1\"  # 1, ×4\n".repeat(20);
        assert!(!is_plain(&lines) && is_plain_block(&lines) && !is_plain_block("a\u{202e}"));
        assert!(!is_plain_block(&"\"".repeat(crate::bounds::BLOCK_BYTES / 2)), "it would be clipped");
    }

    #[test]
    fn a_text_is_plain_exactly_where_a_line_shows_it_whole_and_as_itself() {
        for letter in ["a", "&", "\"", "é", "\u{301}", "\u{202e}"] {
            for count in [1, 3, 4, 79, 80, 81, 200, 201, 400, 401] {
                let text = letter.repeat(count);
                let shown = line(&text).render().0;
                let is_whole = !shown.contains("class=\"more\"") && !shown.contains("class=\"u\"");
                assert_eq!(is_plain(&text), is_whole, "{letter:?} {count}");
            }
        }
    }
}
