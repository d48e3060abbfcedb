//! Reading a JSONPath query (the grammar of RFC 9535), with errors that point at the place and say what would be
//! right there. Filters are read in `filter`; characters in `cursor`. Holds no evaluation.

mod cursor;
mod filter;

use crate::query::{Query, Segment, Selector};
use cursor::Cursor;
pub use cursor::SyntaxError;

/// Brackets and parentheses within each other, so that a hostile path cannot use up the stack.
const DEPTH_MAX: usize = 32;

/// Reads a query. Blanks around it do not matter.
///
/// # Errors
/// [`SyntaxError`] with the place and what would be right there.
pub fn query(text: &str) -> Result<Query, SyntaxError> {
    let mut cursor = Cursor::new(text.trim());
    if !cursor.take('$') {
        return Err(cursor.error("a path begins with $, which stands for the whole document"));
    }
    let segments = segments(&mut cursor, 0)?;
    if cursor.at_end() {
        return Ok(Query { relative: false, segments });
    }
    Err(cursor.error(match cursor.peek() {
        Some('(') => "functions are only known in filters, such as $[?length(@.name) > 3]",
        Some('-' | '@' | '/' | '#' | ' ' | ':') => {
            "this does not continue a path; a name with such characters goes into brackets and quotes: ['a-b']"
        }
        _ => "this does not continue a path: .name, ..name or [ would",
    }))
}

fn segments(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Segment>, SyntaxError> {
    let mut segments = Vec::new();
    loop {
        // Blanks belong to what follows them: they end the query where no segment does.
        let before = cursor.position();
        cursor.skip_blanks();
        let Some(segment) = segment(cursor, depth)? else {
            cursor.return_to(before);
            return Ok(segments);
        };
        segments.push(segment);
    }
}

fn segment(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<Segment>, SyntaxError> {
    let descendants = cursor.take_all("..");
    let dotted = descendants || cursor.take('.');
    let selectors = match cursor.peek() {
        Some('[') if descendants || !dotted => bracketed(cursor, depth)?,
        Some('*') if dotted => {
            cursor.next();
            vec![Selector::Wildcard]
        }
        Some(letter) if dotted && is_name_start(letter) => vec![Selector::Name(name(cursor))],
        _ if descendants => return Err(cursor.error("after .. comes a name, * or [")),
        Some('[') => return Err(cursor.error("no dot comes before [ : write $.a[0], not $.a.[0]")),
        _ if dotted => {
            return Err(cursor.error("after a dot comes a name or *; any other name goes into brackets: ['a-b']"));
        }
        _ => return Ok(None),
    };
    Ok(Some(Segment { descendants, selectors }))
}

fn is_name_start(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_' || !letter.is_ascii()
}

fn name(cursor: &mut Cursor<'_>) -> String {
    cursor.take_while(|letter| is_name_start(letter) || letter.is_ascii_digit()).to_owned()
}

fn bracketed(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Selector>, SyntaxError> {
    if depth >= DEPTH_MAX {
        return Err(cursor.error("brackets and parentheses are nested too deeply here"));
    }
    cursor.next();
    let mut selectors = Vec::new();
    loop {
        cursor.skip_blanks();
        selectors.push(selector(cursor, depth + 1)?);
        cursor.skip_blanks();
        if cursor.take(']') {
            return Ok(selectors);
        }
        if !cursor.take(',') {
            return Err(cursor.error("a selector is followed by , or ]"));
        }
    }
}

fn selector(cursor: &mut Cursor<'_>, depth: usize) -> Result<Selector, SyntaxError> {
    match cursor.peek() {
        Some('\'' | '"') => Ok(Selector::Name(cursor.quoted()?)),
        Some('*') => {
            cursor.next();
            Ok(Selector::Wildcard)
        }
        Some('?') => {
            cursor.next();
            cursor.skip_blanks();
            Ok(Selector::Filter(filter::test(cursor, depth)?))
        }
        Some('-' | ':' | '0'..='9') => index_or_slice(cursor),
        Some(letter) if is_name_start(letter) => Err(cursor.error("a name in brackets needs quotes: ['name']")),
        Some('(') => Err(cursor.error("a filter begins with ? : [?(@.price < 10)]")),
        Some(_) => Err(cursor.error("here a selector should be: a name in quotes, an index, a slice, * or ?")),
        None => {
            Err(cursor.error("the path ends where a selector should be: a name in quotes, an index, a slice, * or ?"))
        }
    }
}

fn index_or_slice(cursor: &mut Cursor<'_>) -> Result<Selector, SyntaxError> {
    let start = optional_integer(cursor)?;
    let before = cursor.position();
    cursor.skip_blanks();
    if !cursor.take(':') {
        cursor.return_to(before);
        return start.map(Selector::Index).ok_or_else(|| cursor.error("an index is a whole number"));
    }
    cursor.skip_blanks();
    let end = optional_integer(cursor)?;
    cursor.skip_blanks();
    let mut step = None;
    if cursor.take(':') {
        cursor.skip_blanks();
        step = optional_integer(cursor)?;
    }
    Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
}

fn optional_integer(cursor: &mut Cursor<'_>) -> Result<Option<i64>, SyntaxError> {
    match cursor.peek() {
        Some('-' | '0'..='9') => cursor.integer().map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_mistake_is_pointed_at() {
        for (path, message) in [
            ("", "a path begins with $, which stands for the whole document\n  \n  ^"),
            ("a.b", "a path begins with $, which stands for the whole document\n  a.b\n  ^"),
            ("$.", "after a dot comes a name or *; any other name goes into brackets: ['a-b']\n  $.\n    ^"),
            (
                "$.a-b",
                "this does not continue a path; a name with such characters goes into brackets and quotes: ['a-b']\n  $.a-b\n     ^",
            ),
            ("$.a.[0]", "no dot comes before [ : write $.a[0], not $.a.[0]\n  $.a.[0]\n      ^"),
            ("$[name]", "a name in brackets needs quotes: ['name']\n  $[name]\n    ^"),
            ("$[01]", "a number has no leading zero\n  $[01]\n     ^"),
            ("$[-0]", "zero has no sign here\n  $[-0]\n    ^"),
            (
                "$[9007199254740992]",
                "a number here lies between -9007199254740991 and 9007199254740991\n  $[9007199254740992]\n    ^",
            ),
            ("$['é", "the quote that begins here does not end\n  $['é\n    ^"),
            ("$['\\x']", "there is no escape \\x; a backslash itself is written \\\\\n  $['\\x']\n     ^"),
            ("$[?@.a = 1]", "equality is written ==\n  $[?@.a = 1]\n         ^"),
            (
                "$[?@.a =~ 'x']",
                "a regular expression is matched with match(@.name, 'pattern') or search(…)\n  $[?@.a =~ 'x']\n         ^",
            ),
            (
                "$[?@.a == 1 and @.b]",
                "a test is followed by &&, ||, ) , ] or a comma\n  $[?@.a == 1 and @.b]\n              ^",
            ),
            ("$[?1]", "a value alone is not a test: compare it with something\n  $[?1]\n     ^"),
            (
                "$[?@.* == 1]",
                "only a path that leads to one place can be compared: no *, .., slice or filter\n  $[?@.* == 1]\n     ^",
            ),
            (
                "$[?length(@.*) == 1]",
                "length takes a value: a literal, a path that leads to one place, or another function\n  $[?length(@.*) == 1]\n            ^",
            ),
            (
                "$[?length(@.a)]",
                "length gives a value, which is not a test: compare it with something\n  $[?length(@.a)]\n     ^",
            ),
            (
                "$[?match(@.a, 'x') == true]",
                "match is a test by itself and cannot be compared\n  $[?match(@.a, 'x') == true]\n     ^",
            ),
            (
                "$[?size(@.a) == 1]",
                "there is no function size; there are length, count, value, match and search\n  $[?size(@.a) == 1]\n     ^",
            ),
            ("$[?match(@.a)]", "match takes two arguments\n  $[?match(@.a)]\n              ^"),
            (
                "$[?!@.a == 1]",
                "! applies to a whole test: put the comparison in parentheses, !(…)\n  $[?!@.a == 1]\n          ^",
            ),
            (
                "$[?match(@.a, '(')]",
                "this is not a regular expression: found open group without closing ')'\n  $[?match(@.a, '(')]\n                ^",
            ),
            (
                "$[?search(@.a, '\\\\p{Lu}')]",
                "this is not a regular expression: Unicode character classes are not supported\n  $[?search(@.a, '\\\\p{Lu}')]\n                 ^",
            ),
            ("$[(@.length-1)]", "a filter begins with ? : [?(@.price < 10)]\n  $[(@.length-1)]\n    ^"),
        ] {
            let shown = query(path).unwrap_err().to_string();
            assert_eq!(shown, message, "{path}");
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        for (open, close) in [("[?@", "]"), ("[?(@", ")]")] {
            let path = format!("${}{}", open.repeat(200), close.repeat(200));
            assert!(query(&path).unwrap_err().to_string().contains("nested too deeply"), "{open}");
        }
        let parentheses = format!("$[?{}@.a{}]", "(".repeat(200), ")".repeat(200));
        assert!(query(&parentheses).unwrap_err().to_string().contains("nested too deeply"));
    }

    #[test]
    fn a_long_path_is_shown_around_the_mistake() {
        let path = format!("${}.", ".abcdefghi".repeat(40));
        let shown = query(&path).unwrap_err().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 100), "{shown}");
        assert!(shown.contains("…ghi.abcdefghi") || shown.contains('…'), "{shown}");
    }
}
