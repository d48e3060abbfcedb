//! Applying a query to a document. Holds no syntax, and no tests of filters.

use crate::condition;
use crate::place::{Place, Places, TooMany};
use crate::query::{Query, Segment, Selector};

/// The places that a query matches, in the order of RFC 9535; one that matches twice is there twice.
///
/// # Errors
/// [`TooMany`] where it looks at more places than a query may.
pub fn select<'document>(query: &Query, places: &Places<'document>) -> Result<Vec<Place<'document>>, TooMany> {
    select_from(query, &places.root(), places)
}

/// The same, with a place that `@` stands for.
///
/// # Errors
/// As [`select`].
pub fn select_from<'document>(
    query: &Query,
    current: &Place<'document>,
    places: &Places<'document>,
) -> Result<Vec<Place<'document>>, TooMany> {
    let mut found = vec![if query.relative { current.clone() } else { places.root() }];
    for segment in &query.segments {
        let mut next = Vec::new();
        for place in &found {
            apply_segment(segment, place, places, &mut next)?;
        }
        found = next;
    }
    Ok(found)
}

fn apply_segment<'document>(
    segment: &Segment,
    place: &Place<'document>,
    places: &Places<'document>,
    found: &mut Vec<Place<'document>>,
) -> Result<(), TooMany> {
    for selector in &segment.selectors {
        apply_selector(selector, place, places, found)?;
    }
    if segment.descendants {
        // As deep as the document, whose depth its parser bounds.
        for child in place.children() {
            places.look()?;
            apply_segment(segment, &child, places, found)?;
        }
    }
    Ok(())
}

fn apply_selector<'document>(
    selector: &Selector,
    place: &Place<'document>,
    places: &Places<'document>,
    found: &mut Vec<Place<'document>>,
) -> Result<(), TooMany> {
    let before = found.len();
    match selector {
        Selector::Name(name) => found.extend(place.member(name)),
        Selector::Wildcard => found.extend(place.children()),
        Selector::Index(index) => {
            found.extend(from_end(*index, elements(place)).and_then(|index| place.element(index)))
        }
        Selector::Slice { start, end, step } => {
            found.extend(slice(*start, *end, *step, elements(place)).filter_map(|index| place.element(index)));
        }
        Selector::Filter(test) => {
            for child in place.children() {
                places.look()?;
                if condition::passes(test, &child, places)? {
                    found.push(child);
                }
            }
        }
    }
    (before..found.len()).try_for_each(|_| places.look())
}

/// How many elements an array has; no other value has any.
fn elements(place: &Place<'_>) -> usize {
    place.value().as_array().map_or(0, Vec::len)
}

fn from_end(index: i64, elements: usize) -> Option<usize> {
    let length = i64::try_from(elements).ok()?;
    usize::try_from(if index < 0 { length + index } else { index }).ok()
}

/// The indexes of a slice (RFC 9535, section 2.3.4.2).
fn slice(start: Option<i64>, end: Option<i64>, step: i64, elements: usize) -> impl Iterator<Item = usize> {
    let length = i64::try_from(elements).unwrap_or(i64::MAX);
    let normal = |index: i64| if index < 0 { length + index } else { index };
    let (first, stop) = if step >= 0 {
        (normal(start.unwrap_or(0)).clamp(0, length), normal(end.unwrap_or(length)).clamp(0, length))
    } else {
        (
            normal(start.unwrap_or(length - 1)).clamp(-1, length - 1),
            end.map_or(-1, |end| normal(end).clamp(-1, length - 1)),
        )
    };
    let more = move |index: i64| (step > 0 && index < stop) || (step < 0 && index > stop);
    std::iter::successors(Some(first), move |index| index.checked_add(step))
        .take_while(move |index| more(*index))
        .filter_map(|index| usize::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::parse;
    use serde_json::{Value, json};

    fn values(path: &str, document: &Value) -> Value {
        let query = parse::query(path).unwrap();
        let places = Places::of(document);
        select(&query, &places).unwrap().iter().map(|place| place.value().clone()).collect()
    }

    #[test]
    fn selectors_select() {
        let document = json!({"a": [0, 1, 2, 3, 4], "b": {"c": "x", "d": ["y"]}, "é": null, "": 7});
        for (path, expected) in [
            ("$.a[0]", json!([0])),
            ("$.a[-1]", json!([4])),
            ("$.a[5]", json!([])),
            ("$.a[-6]", json!([])),
            ("$.a[1:3]", json!([1, 2])),
            ("$.a[::2]", json!([0, 2, 4])),
            ("$.a[::-1]", json!([4, 3, 2, 1, 0])),
            ("$.a[3:0:-2]", json!([3, 1])),
            ("$.a[-2:]", json!([3, 4])),
            ("$.a[:-9]", json!([])),
            ("$.a[::0]", json!([])),
            ("$.a[9007199254740991:-9007199254740991:-9007199254740991]", json!([4])),
            ("$.a[0, 0, 4]", json!([0, 0, 4])),
            ("$['b']['c']", json!(["x"])),
            ("$[\"b\"].d[*]", json!(["y"])),
            ("$.é", json!([null])),
            ("$['']", json!([7])),
            ("$.b.*", json!(["x", ["y"]])),
            ("$.b['d','c']", json!([["y"], "x"])),
            ("$..c", json!(["x"])),
            ("$..[0]", json!([0, "y"])),
            ("$.b..*", json!(["x", ["y"], "y"])),
            ("$.missing.deeper", json!([])),
            ("$.b.c.length", json!([])),
        ] {
            assert_eq!(values(path, &document), expected, "{path}");
        }
    }

    #[test]
    fn filters_filter() {
        let document = json!([
            {"n": 1, "s": "apple", "t": [1, 2]}, {"n": 2.0, "s": "banana"}, {"n": 30, "s": "añil", "t": []}, {"s": null}
        ]);
        for (path, expected) in [
            ("$[?@.n].n", json!([1, 2.0, 30])),
            ("$[?!@.n].s", json!([null])),
            ("$[?@.n > 1].n", json!([2.0, 30])),
            ("$[?@.n == 2].n", json!([2.0])),
            ("$[?@.n >= 2 && @.n < 30].n", json!([2.0])),
            ("$[?@.n == 1 || @.n == 30].n", json!([1, 30])),
            ("$[?(@.n == 1 || @.n == 30) && @.t[0]].n", json!([1])),
            ("$[?@.s == null].s", json!([null])),
            ("$[?@.missing == @.absent].s", json!(["apple", "banana", "añil", null])),
            ("$[?@.s < 'b'].s", json!(["apple", "añil"])),
            ("$[?length(@.s) == 4].s", json!(["añil"])),
            ("$[?length(@.t) == 0].s", json!(["añil"])),
            ("$[?count(@.*) == 3].n", json!([1, 30])),
            ("$[?value(@..[1]) == 2].n", json!([1])),
            ("$[?match(@.s, '[ab].*a')].s", json!(["banana"])),
            ("$[?search(@.s, 'an')].s", json!(["banana"])),
            ("$[?search(@.s, 'p{2}')].s", json!(["apple"])),
            ("$[?match(@.s, $[0].n)].s", json!([])),
            ("$[?@.n == $[0].n].s", json!(["apple"])),
            ("$[?@.t == $[0].t].s", json!(["apple"])),
            ("$[?@.t[?@ > 1]].s", json!(["apple"])),
        ] {
            assert_eq!(values(path, &document), expected, "{path}");
        }
    }

    #[test]
    fn a_query_that_multiplies_places_is_stopped() {
        let document = json!(vec![vec![vec![1; 20]; 20]; 20]);
        let query = parse::query("$..*..*..*..*[?@..*]").unwrap();
        let places = Places::of(&document);
        let deep = json!(vec![document.clone(); 20]);
        let deeper = Places::of(&deep);
        assert!(select(&query, &deeper).is_err());
        assert!(select(&parse::query("$..*").unwrap(), &places).is_ok());
    }
}
