//! A place as Open-Meteo's geocoding has it, and choosing one of several. Holds no request.

use serde::Deserialize;
use toolkit::Failure;

/// Other places of the same name that an answer mentions: enough to see that one was meant that was not taken.
const OTHERS_MAX: usize = 4;

/// The answer to a search. Without a match there are no `results` at all.
#[derive(Deserialize)]
pub struct Found {
    #[serde(default)]
    pub results: Vec<Place>,
}

/// One match. Fields that a place does not have are missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Place {
    pub name: String,
    pub latitude: f64,
    pub longitude: f64,
    pub country: String,
    pub country_code: String,
    pub admin1: String,
    pub admin2: String,
}

/// The place that was taken, and others of its name.
#[derive(Debug)]
pub struct Chosen {
    pub place: Place,
    pub others: Vec<String>,
    /// True where no place before it in the service's order, which is by size, has its name and country.
    pub is_largest: bool,
}

impl Place {
    /// Its name, region and country, as far as it has them and they differ.
    pub fn whole_name(&self) -> String {
        let mut parts = vec![self.name.as_str()];
        for part in [self.admin1.as_str(), self.country.as_str()] {
            if !part.is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(", ")
    }

    fn lies_in(&self, region: &str) -> bool {
        let region = region.to_lowercase();
        [&self.country, &self.country_code, &self.admin1, &self.admin2]
            .iter()
            .any(|known| known.to_lowercase() == region)
    }
}

/// A location as a name and, behind the first comma, a region.
///
/// # Errors
/// [`Failure::InvalidInput`] where the name is too short for the service to search for.
pub fn parts(location: &str) -> Result<(&str, &str), Failure> {
    let (name, region) = location.split_once(',').unwrap_or((location, ""));
    let name = name.trim();
    let region = region.trim();
    if name.chars().count() < 2 {
        return Err(Failure::invalid(format!("{location:?} has no name of two letters or more to search for")));
    }
    Ok((name, region))
}

/// The first match that lies in the region; the service puts the largest and best-known first.
///
/// # Errors
/// [`Failure::InvalidInput`] where there is no match, with those that there are elsewhere.
pub fn choose(found: Found, name: &str, region: &str) -> Result<Chosen, Failure> {
    let places = found.results;
    let fits = |place: &Place| region.is_empty() || place.lies_in(region);
    let Some(at) = places.iter().position(fits) else {
        return Err(Failure::invalid(nowhere(&places, name, region)));
    };
    let Some(place) = places.get(at).cloned() else { return Err(Failure::invalid(nowhere(&places, name, region))) };
    let same_name = |other: &Place| other.name.to_lowercase() == place.name.to_lowercase();
    let is_largest =
        !places.iter().take(at).any(|before| same_name(before) && before.country_code == place.country_code);
    let others = places.iter().enumerate().filter(|(index, other)| *index != at && same_name(other));
    let mut names: Vec<String> = Vec::new();
    for (_, other) in others {
        let whole = other.whole_name();
        if names.len() < OTHERS_MAX && whole != place.whole_name() && !names.contains(&whole) {
            names.push(whole);
        }
    }
    Ok(Chosen { others: names, is_largest, place })
}

fn nowhere(places: &[Place], name: &str, region: &str) -> String {
    if places.is_empty() {
        return format!("no place called {name:?} is known; try another spelling, or a larger place near it");
    }
    let mut known: Vec<String> = Vec::new();
    for place in places {
        let whole = place.whole_name();
        if known.len() < OTHERS_MAX && !known.contains(&whole) {
            known.push(whole);
        }
    }
    format!("no {name:?} is known in {region:?}; there is {}", known.join("; "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found() -> Found {
        let place = |name: &str, admin1: &str, country: &str, country_code: &str| Place {
            name: name.to_owned(),
            admin1: admin1.to_owned(),
            country: country.to_owned(),
            country_code: country_code.to_owned(),
            ..Place::default()
        };
        Found {
            results: vec![
                place("Paris", "Île-de-France", "France", "FR"),
                place("Paris", "Texas", "United States", "US"),
                place("Paris", "Tennessee", "United States", "US"),
                place("Parisot", "Occitanie", "France", "FR"),
            ],
        }
    }

    #[test]
    fn the_first_place_of_the_region_is_taken_and_the_others_are_named() {
        let others = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let france = "Paris, Île-de-France, France";
        let texas = "Paris, Texas, United States";
        let tennessee = "Paris, Tennessee, United States";
        for (region, taken, left, is_largest) in [
            ("", france, [texas, tennessee], true),
            ("texas", texas, [france, tennessee], true),
            ("US", texas, [france, tennessee], true),
            ("Tennessee", tennessee, [france, texas], false),
        ] {
            let chosen = choose(found(), "Paris", region).unwrap();
            assert_eq!(chosen.place.whole_name(), taken, "{region}");
            assert_eq!((chosen.others, chosen.is_largest), (others(&left), is_largest), "{region}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let said = choose(found(), "Paris", "Spain").unwrap_err();
        assert_eq!(
            said.message(),
            "no \"Paris\" is known in \"Spain\"; there is Paris, Île-de-France, France; Paris, Texas, United States; \
             Paris, Tennessee, United States; Parisot, Occitanie, France"
        );
        let said = choose(Found { results: Vec::new() }, "Gotham", "").unwrap_err();
        assert_eq!(
            said.message(),
            "no place called \"Gotham\" is known; try another spelling, or a larger place near it"
        );
    }

    #[test]
    fn a_location_is_a_name_and_a_region() {
        assert_eq!(parts(" Paris , Texas ").unwrap(), ("Paris", "Texas"));
        assert_eq!(parts("Lisbon").unwrap(), ("Lisbon", ""));
        assert!(parts(" , France").is_err() && parts("Å").is_err());
    }
}
