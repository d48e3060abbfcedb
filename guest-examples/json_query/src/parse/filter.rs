//! Reading the expression of a filter: tests, comparisons, functions, and which of them fit together (the types of
//! RFC 9535, section 2.4.3). Holds no evaluation.

use super::cursor::{Cursor, SyntaxError};
use super::{DEPTH_MAX, segments};
use crate::query::{Comparison, Operand, Pattern, Query, RegexCall, Test};
use crate::regexp;
use serde_json::Value;

/// What may stand at either side of a comparison, or alone as a test: which of the two is found out later.
enum Term {
    Literal(Value),
    Path(Query),
    Function(&'static str, Operand),
    Regex(RegexCall),
}

/// Comparisons as they are written, the longer first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Reads a test: one or several, joined by `&&` and, less tightly, `||`.
pub fn test(cursor: &mut Cursor<'_>, depth: usize) -> Result<Test, SyntaxError> {
    if depth >= DEPTH_MAX {
        return Err(cursor.error("brackets and parentheses are nested too deeply here"));
    }
    let test =
        joined(cursor, "||", Test::Any, |cursor| joined(cursor, "&&", Test::All, |cursor| single(cursor, depth + 1)))?;
    let end = cursor.position();
    cursor.skip_blanks();
    match cursor.peek() {
        Some(')' | ']' | ',') | None => {
            cursor.return_to(end);
            Ok(test)
        }
        Some(_) => Err(cursor.error("a test is followed by &&, ||, ) , ] or a comma")),
    }
}

fn joined(
    cursor: &mut Cursor<'_>,
    operator: &str,
    join: impl Fn(Vec<Test>) -> Test,
    one: impl Fn(&mut Cursor<'_>) -> Result<Test, SyntaxError>,
) -> Result<Test, SyntaxError> {
    let first = one(cursor)?;
    let mut tests = vec![first];
    loop {
        let before = cursor.position();
        cursor.skip_blanks();
        if !cursor.take_all(operator) {
            cursor.return_to(before);
            break;
        }
        cursor.skip_blanks();
        tests.push(one(cursor)?);
    }
    Ok(if tests.len() > 1 { join(tests) } else { tests.remove(0) })
}

fn single(cursor: &mut Cursor<'_>, depth: usize) -> Result<Test, SyntaxError> {
    if cursor.take('!') {
        cursor.skip_blanks();
        let negated = if cursor.peek() == Some('(') { parenthesized(cursor, depth)? } else { alone(cursor, depth)? };
        return Ok(Test::Not(Box::new(negated)));
    }
    if cursor.peek() == Some('(') {
        return parenthesized(cursor, depth);
    }
    let start = cursor.position();
    let left = term(cursor, depth)?;
    let end = cursor.position();
    cursor.skip_blanks();
    let Some(comparison) = comparison(cursor)? else {
        cursor.return_to(end);
        return as_test(cursor, left, start);
    };
    let left = as_operand(cursor, left, start)?;
    cursor.skip_blanks();
    let start = cursor.position();
    let right = term(cursor, depth)?;
    let right = as_operand(cursor, right, start)?;
    Ok(Test::Compare(left, comparison, right))
}

fn parenthesized(cursor: &mut Cursor<'_>, depth: usize) -> Result<Test, SyntaxError> {
    let start = cursor.position();
    cursor.next();
    cursor.skip_blanks();
    let inner = test(cursor, depth)?;
    cursor.skip_blanks();
    if !cursor.take(')') {
        return Err(cursor.error_at("the parenthesis that begins here does not end", start));
    }
    Ok(inner)
}

/// What follows `!` without a parenthesis: a path or a function, not a comparison.
fn alone(cursor: &mut Cursor<'_>, depth: usize) -> Result<Test, SyntaxError> {
    let start = cursor.position();
    let term = term(cursor, depth)?;
    let test = as_test(cursor, term, start)?;
    let end = cursor.position();
    cursor.skip_blanks();
    let operator = cursor.position();
    if comparison(cursor)?.is_some() {
        return Err(cursor.error_at("! applies to a whole test: put the comparison in parentheses, !(…)", operator));
    }
    cursor.return_to(end);
    Ok(test)
}

fn comparison(cursor: &mut Cursor<'_>) -> Result<Option<Comparison>, SyntaxError> {
    for (written, comparison) in COMPARISONS {
        if cursor.take_all(written) {
            return Ok(Some(comparison));
        }
    }
    if cursor.rest().starts_with("=~") {
        return Err(cursor.error("a regular expression is matched with match(@.name, 'pattern') or search(…)"));
    }
    if cursor.peek() == Some('=') {
        return Err(cursor.error("equality is written =="));
    }
    Ok(None)
}

fn as_test(cursor: &Cursor<'_>, term: Term, start: usize) -> Result<Test, SyntaxError> {
    match term {
        Term::Path(query) => Ok(Test::Exists(query)),
        Term::Regex(call) => Ok(Test::Matches(Box::new(call))),
        Term::Literal(_) => Err(cursor.error_at("a value alone is not a test: compare it with something", start)),
        Term::Function(name, _) => {
            Err(cursor.error_at(format!("{name} gives a value, which is not a test: compare it with something"), start))
        }
    }
}

fn as_operand(cursor: &Cursor<'_>, term: Term, start: usize) -> Result<Operand, SyntaxError> {
    match term {
        Term::Literal(value) => Ok(Operand::Literal(value)),
        Term::Function(_, operand) => Ok(operand),
        Term::Path(query) if query.is_singular() => Ok(Operand::Singular(query)),
        Term::Path(_) => {
            let message = "only a path that leads to one place can be compared: no *, .., slice or filter";
            Err(cursor.error_at(message, start))
        }
        Term::Regex(call) => {
            let name = if call.whole { "match" } else { "search" };
            Err(cursor.error_at(format!("{name} is a test by itself and cannot be compared"), start))
        }
    }
}

fn term(cursor: &mut Cursor<'_>, depth: usize) -> Result<Term, SyntaxError> {
    match cursor.peek() {
        Some('@' | '$') => path(cursor, depth).map(Term::Path),
        Some('\'' | '"') => cursor.quoted().map(|text| Term::Literal(Value::String(text))),
        Some('-' | '0'..='9') => number(cursor).map(Term::Literal),
        Some('a'..='z') => word(cursor, depth),
        _ => Err(cursor.error("here a path (@.name or $.name), a value or a function should be")),
    }
}

fn path(cursor: &mut Cursor<'_>, depth: usize) -> Result<Query, SyntaxError> {
    let relative = cursor.next() == Some('@');
    Ok(Query { relative, segments: segments(cursor, depth)? })
}

/// A number as JSON writes it, and also `-0`.
fn number(cursor: &mut Cursor<'_>) -> Result<Value, SyntaxError> {
    let start = cursor.position();
    cursor.take('-');
    let digits = cursor.take_while(|letter| letter.is_ascii_digit());
    let mut well_formed = digits == "0" || (!digits.is_empty() && !digits.starts_with('0'));
    if cursor.take('.') {
        well_formed &= !cursor.take_while(|letter| letter.is_ascii_digit()).is_empty();
    }
    if cursor.take('e') || cursor.take('E') {
        let _ = cursor.take('-') || cursor.take('+');
        well_formed &= !cursor.take_while(|letter| letter.is_ascii_digit()).is_empty();
    }
    let number = serde_json::from_str(cursor.since(start)).ok().filter(|_| well_formed);
    number.ok_or_else(|| cursor.error_at("this is not a number as JSON writes it", start))
}

/// `true`, `false`, `null`, or a function.
fn word(cursor: &mut Cursor<'_>, depth: usize) -> Result<Term, SyntaxError> {
    let start = cursor.position();
    let word = cursor.take_while(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '_'));
    if cursor.take('(') {
        return function(cursor, word, start, depth);
    }
    match word {
        "true" => Ok(Term::Literal(Value::Bool(true))),
        "false" => Ok(Term::Literal(Value::Bool(false))),
        "null" => Ok(Term::Literal(Value::Null)),
        _ => Err(cursor.error_at("a path in a filter begins with @ (what is tested) or $ (the document)", start)),
    }
}

fn function(cursor: &mut Cursor<'_>, name: &str, start: usize, depth: usize) -> Result<Term, SyntaxError> {
    if depth >= DEPTH_MAX {
        return Err(cursor.error("brackets and parentheses are nested too deeply here"));
    }
    cursor.skip_blanks();
    let term = match name {
        "length" => Term::Function("length", Operand::Length(Box::new(value_argument(cursor, name, depth)?))),
        "count" => Term::Function("count", Operand::Count(path_argument(cursor, name, depth)?)),
        "value" => Term::Function("value", Operand::Value(path_argument(cursor, name, depth)?)),
        "match" | "search" => {
            let text = value_argument(cursor, name, depth)?;
            cursor.skip_blanks();
            if !cursor.take(',') {
                return Err(cursor.error(format!("{name} takes two arguments")));
            }
            cursor.skip_blanks();
            let pattern = pattern_argument(cursor, name, depth)?;
            Term::Regex(RegexCall { text, pattern, whole: name == "match" })
        }
        _ => {
            let message = format!("there is no function {name}; there are length, count, value, match and search");
            return Err(cursor.error_at(message, start));
        }
    };
    cursor.skip_blanks();
    if !cursor.take(')') {
        return Err(cursor.error(format!("the arguments of {name} end with )")));
    }
    Ok(term)
}

fn value_argument(cursor: &mut Cursor<'_>, function: &str, depth: usize) -> Result<Operand, SyntaxError> {
    let start = cursor.position();
    match term(cursor, depth + 1)? {
        Term::Literal(value) => Ok(Operand::Literal(value)),
        Term::Function(_, operand) => Ok(operand),
        Term::Path(query) if query.is_singular() => Ok(Operand::Singular(query)),
        Term::Path(_) | Term::Regex(_) => {
            let message =
                format!("{function} takes a value: a literal, a path that leads to one place, or another function");
            Err(cursor.error_at(message, start))
        }
    }
}

/// A regular expression. One that is written in the query and not valid would never match: that is a mistake.
fn pattern_argument(cursor: &mut Cursor<'_>, function: &str, depth: usize) -> Result<Pattern, SyntaxError> {
    let start = cursor.position();
    match value_argument(cursor, function, depth)? {
        Operand::Literal(Value::String(written)) => regexp::compile(&written, function == "match")
            .map(Pattern::Written)
            .map_err(|error| cursor.error_at(format!("this is not a regular expression: {error}"), start)),
        operand => Ok(Pattern::Computed(operand)),
    }
}

fn path_argument(cursor: &mut Cursor<'_>, function: &str, depth: usize) -> Result<Query, SyntaxError> {
    match cursor.peek() {
        Some('@' | '$') => path(cursor, depth + 1),
        _ => Err(cursor.error(format!("{function} takes a path, such as @.*"))),
    }
}
