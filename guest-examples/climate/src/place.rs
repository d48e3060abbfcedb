//! Finding a city by what a person or a model calls it. Holds no weather.

use crate::city::{CITIES, City};
use std::fmt;

/// Other names of countries, and countries within countries, as people write them after a city's name.
const COUNTRY_NAMES: &[(&str, &str)] = &[
    ("america", "United States"),
    ("britain", "United Kingdom"),
    ("czechrepublic", "Czechia"),
    ("england", "United Kingdom"),
    ("greatbritain", "United Kingdom"),
    ("korea", "South Korea"),
    ("scotland", "United Kingdom"),
    ("uae", "United Arab Emirates"),
    ("uk", "United Kingdom"),
    ("us", "United States"),
    ("usa", "United States"),
];

/// Countries whose cities are often named with a state or province: it is not looked at.
const FEDERATIONS: &[&str] = &["Australia", "Brazil", "Canada", "India", "Mexico", "United States"];

/// Suggestions in one message: few enough to read.
const SUGGESTIONS_MAX: usize = 3;

/// Names shorter than this many letters are never matched by their beginning or in spite of a wrong letter.
const LOOSE_LETTERS_MIN: usize = 4;

/// No city is known by a name.
#[derive(Debug)]
pub struct Unknown {
    problem: String,
    suggestions: Vec<&'static str>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; ", self.problem)?;
        if !self.suggestions.is_empty() {
            write!(formatter, "did you mean {}? ", self.suggestions.join(" or "))?;
        }
        write!(formatter, "weather_cities lists all cities")
    }
}

/// The city that a name means: its own or another name of it, its beginning, or one letter wrong, as long as only
/// one city fits. A country after a comma must be the city's.
///
/// # Errors
/// [`Unknown`], with the names that come closest.
pub fn find(text: &str) -> Result<&'static City, Unknown> {
    let (name, region) = text.split_once(',').unwrap_or((text, ""));
    let wanted = fold(name);
    let Some(city) = exact(&wanted)
        .or_else(|| only(|known| begins(known, &wanted)))
        .or_else(|| only(|known| nearly(known, &wanted)))
    else {
        return Err(Unknown {
            problem: format!("no climate is known for {text:?}"),
            suggestions: closest_cities(&wanted),
        });
    };
    if lies_in(city, &fold(region)) {
        return Ok(city);
    }
    Err(Unknown {
        problem: format!("the only {} with a known climate is in {}", city.name, city.country),
        suggestions: Vec::new(),
    })
}

/// The city that has exactly this name, or this other name, and lies in this country. Accents and capitals do not
/// matter; nothing is guessed.
#[must_use]
pub fn known_as(name: &str, country: &str) -> Option<&'static City> {
    let name = fold(name);
    let country = country_named(&fold(country));
    CITIES.iter().find(|city| fold(city.country) == country && names(city).any(|known| fold(known) == name))
}

/// All cities, or those of one country.
///
/// # Errors
/// [`Unknown`], with the country that comes closest, where none is in that country.
pub fn of_country(country: Option<&str>) -> Result<Vec<&'static City>, Unknown> {
    let Some(text) = country else { return Ok(CITIES.iter().collect()) };
    let wanted = country_named(&fold(text));
    let found: Vec<&City> = CITIES.iter().filter(|city| fold(city.country) == wanted).collect();
    if found.is_empty() {
        let countries = CITIES.iter().map(|city| (city.country, fold(city.country)));
        return Err(Unknown {
            problem: format!("no city of {text:?} is known"),
            suggestions: closest(countries, &wanted),
        });
    }
    Ok(found)
}

fn exact(wanted: &str) -> Option<&'static City> {
    CITIES.iter().find(|city| names(city).any(|known| fold(known) == wanted))
}

/// The only city with a name that fits, if there is exactly one.
fn only(fits: impl Fn(&str) -> bool) -> Option<&'static City> {
    let mut fitting = CITIES.iter().filter(|city| names(city).any(|known| fits(&fold(known))));
    let first = fitting.next()?;
    if fitting.next().is_some() { None } else { Some(first) }
}

fn begins(known: &str, wanted: &str) -> bool {
    wanted.len() >= LOOSE_LETTERS_MIN && known.starts_with(wanted)
}

fn nearly(known: &str, wanted: &str) -> bool {
    wanted.len() >= LOOSE_LETTERS_MIN && distance(known, wanted) == 1
}

fn names(city: &'static City) -> impl Iterator<Item = &'static str> {
    std::iter::once(city.name).chain(city.also.iter().copied())
}

fn lies_in(city: &City, region: &str) -> bool {
    let country = country_named(region);
    let is_a_country = CITIES.iter().any(|other| fold(other.country) == country);
    region.is_empty() || fold(city.country) == country || (!is_a_country && FEDERATIONS.contains(&city.country))
}

/// The folded name of the country that a folded name means.
fn country_named(folded: &str) -> String {
    COUNTRY_NAMES
        .iter()
        .find(|(other, _)| *other == folded)
        .map_or_else(|| folded.to_owned(), |(_, country)| fold(country))
}

fn closest_cities(wanted: &str) -> Vec<&'static str> {
    closest(CITIES.iter().flat_map(|city| names(city).map(|known| (city.name, fold(known)))), wanted)
}

/// Those within a third of their letters of what is wanted, the closest first.
fn closest(known: impl Iterator<Item = (&'static str, String)>, wanted: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &str)> = known
        .map(|(name, folded)| (if begins(&folded, wanted) { 0 } else { distance(&folded, wanted) }, name))
        .filter(|(far, _)| *far <= (wanted.len() / 3).max(1) || (*far <= 5 && wanted.len() >= 10))
        .collect();
    near.sort_unstable();
    let mut suggestions: Vec<&str> = Vec::new();
    for (_, name) in near {
        if !suggestions.contains(&name) && suggestions.len() < SUGGESTIONS_MAX {
            suggestions.push(name);
        }
    }
    suggestions
}

/// A name without capitals, accents, blanks and punctuation, so that only its letters are compared.
fn fold(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .filter_map(|letter| match letter {
            'á' | 'à' | 'â' | 'ã' | 'ä' | 'å' => Some('a'),
            'ç' => Some('c'),
            'é' | 'è' | 'ê' | 'ë' => Some('e'),
            'í' | 'ì' | 'î' | 'ï' => Some('i'),
            'ñ' => Some('n'),
            'ó' | 'ò' | 'ô' | 'õ' | 'ö' | 'ø' => Some('o'),
            'ú' | 'ù' | 'û' | 'ü' => Some('u'),
            'ý' | 'ÿ' => Some('y'),
            other => other.is_alphanumeric().then_some(other),
        })
        .collect()
}

/// How many letters must be added, dropped, changed or swapped with their neighbour to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, theirs) in other.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&last, column) + usize::from(letter != *theirs))
                .min(at(&last, column + 1) + 1)
                .min(at(&line, column) + 1);
            let swapped = column > 0 && previous == Some(*theirs) && other.get(column - 1) == Some(&letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            line.push(best);
        }
        before_last = std::mem::replace(&mut last, line);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_city_is_found_by_what_people_call_it() {
        for (text, city) in [
            ("Lisbon", "Lisbon"),
            ("lisboa", "Lisbon"),
            (" SAO PAULO ", "São Paulo"),
            ("Zuerich", "Zürich"),
            ("zurich", "Zürich"),
            ("NYC", "New York"),
            ("new york city", "New York"),
            ("San Fran", "San Francisco"),
            ("Amsterdma", "Amsterdam"),
            ("Helsinky", "Helsinki"),
            ("Paris, France", "Paris"),
            ("London, UK", "London"),
            ("Boston, MA", "Boston"),
            ("Edinburgh, Scotland", "Edinburgh"),
        ] {
            assert_eq!(find(text).unwrap().name, city, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_said_with_what_is_close() {
        for (text, message) in [
            ("Gotham", "no climate is known for \"Gotham\"; weather_cities lists all cities"),
            ("San", "no climate is known for \"San\"; weather_cities lists all cities"),
            (
                "Bostn Towne",
                "no climate is known for \"Bostn Towne\"; did you mean Boston? weather_cities lists all cities",
            ),
            ("Paris, Texas", "the only Paris with a known climate is in France; weather_cities lists all cities"),
            (
                "Boston, England",
                "the only Boston with a known climate is in United States; weather_cities lists all cities",
            ),
        ] {
            assert_eq!(find(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn nothing_is_guessed_of_what_is_known_as() {
        for (name, country, city) in [
            ("Lisboa", "Portugal", Some("Lisbon")),
            ("SAO PAULO", "brazil", Some("São Paulo")),
            ("London", "UK", Some("London")),
            ("London", "Canada", None),
            ("Amsterdma", "Netherlands", None),
            ("Sydney", "Zimbabwe", None),
            ("Lisbon", "", None),
        ] {
            assert_eq!(known_as(name, country).map(|city| city.name), city, "{name}, {country}");
        }
    }

    #[test]
    fn distance_counts_letters() {
        for (one, other, letters) in [
            ("", "", 0),
            ("", "abc", 3),
            ("paris", "paris", 0),
            ("pairs", "paris", 1),
            ("oslo", "olso", 1),
            ("rome", "roma", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), letters, "{one} {other}");
            assert_eq!(distance(other, one), letters, "{other} {one}");
        }
    }

    #[test]
    fn every_name_leads_to_its_own_city() {
        for city in CITIES {
            for name in names(city) {
                assert_eq!(find(name).unwrap().name, city.name, "{name}");
            }
        }
        assert!(CITIES.windows(2).all(|pair| fold(pair[0].name) < fold(pair[1].name)), "cities are sorted by name");
    }

    #[test]
    fn every_day_is_warmer_than_its_night() {
        for city in CITIES {
            assert!(city.high_celsius.iter().zip(&city.low_celsius).all(|(high, low)| high > low), "{}", city.name);
        }
    }
}
