//! The answers, in the shape that the output schemas promise. Holds no matching of names.

use climate::{CITIES, City, Depth, Units, month_name};
use serde::Serialize;

/// The answer of `weather_normals`.
#[derive(Serialize)]
pub struct Normals {
    city: &'static str,
    country: &'static str,
    units: Units,
    months: Vec<Month>,
    year: Year,
}

#[derive(Serialize)]
struct Month {
    month: usize,
    name: &'static str,
    high: i32,
    low: i32,
    precipitation: Depth,
}

#[derive(Serialize)]
struct Year {
    warmest_month: &'static str,
    coldest_month: &'static str,
    wettest_month: &'static str,
    precipitation: Depth,
}

/// What `weather_find` is asked for.
pub struct Wanted {
    /// 1 for January to 12 for December.
    pub month: usize,
    /// The lowest mean daily maximum, in `units`.
    pub min_high: i32,
    /// The highest mean daily maximum, in `units`.
    pub max_high: i32,
    /// The most precipitation, in `units`.
    pub max_precipitation: f64,
    /// What the wanted is written in and the answer is given in.
    pub units: Units,
}

/// The answer of `weather_find`.
#[derive(Serialize)]
pub struct Found {
    month: &'static str,
    units: Units,
    found: usize,
    cities: Vec<Fitting>,
}

#[derive(Serialize)]
struct Fitting {
    city: &'static str,
    country: &'static str,
    high: i32,
    low: i32,
    precipitation: Depth,
}

/// The answer of `weather_cities`.
#[derive(Serialize)]
pub struct Cities {
    cities: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    city: &'static str,
    country: &'static str,
}

impl Normals {
    /// The usual weather of a city in one month (1 to 12) or, with `None`, in all of them.
    pub fn of(city: &City, month: Option<usize>, units: Units) -> Self {
        let months = months(city, units).filter(|known| month.is_none_or(|wanted| wanted == known.month)).collect();
        Self { city: city.name, country: city.country, units, months, year: Year::of(city, units) }
    }
}

impl Year {
    fn of(city: &City, units: Units) -> Self {
        let rain: u32 = city.rain_mm.iter().copied().map(u32::from).sum();
        // Highs and lows together, so that two months with the same high are told apart.
        let warmth =
            || city.high_celsius.iter().zip(&city.low_celsius).map(|(high, low)| i32::from(*high) + i32::from(*low));
        Self {
            warmest_month: name_of_first(warmth(), |best, other| other > best),
            coldest_month: name_of_first(warmth(), |best, other| other < best),
            wettest_month: name_of_first(city.rain_mm.iter().map(|mm| i32::from(*mm)), |best, other| other > best),
            precipitation: units.depth(rain),
        }
    }
}

impl Found {
    /// The cities that fulfil a wanted, the driest first, at most `limit` of them.
    pub fn by(wanted: &Wanted, limit: usize) -> Self {
        let mut cities: Vec<Fitting> = CITIES.iter().filter_map(|city| Fitting::to(wanted, city)).collect();
        cities.sort_by(|one, other| one.precipitation.0.total_cmp(&other.precipitation.0));
        let found = cities.len();
        cities.truncate(limit);
        Self { month: month_name(wanted.month), units: wanted.units, found, cities }
    }
}

impl Fitting {
    fn to(wanted: &Wanted, city: &City) -> Option<Self> {
        let month = months(city, wanted.units).find(|known| known.month == wanted.month)?;
        let fits = (wanted.min_high..=wanted.max_high).contains(&month.high)
            && month.precipitation.0 <= wanted.max_precipitation;
        fits.then_some(Self {
            city: city.name,
            country: city.country,
            high: month.high,
            low: month.low,
            precipitation: month.precipitation,
        })
    }
}

impl Cities {
    /// The names of these cities.
    pub fn of(cities: &[&'static City]) -> Self {
        Self { cities: cities.iter().map(|city| Named { city: city.name, country: city.country }).collect() }
    }
}

fn months(city: &City, units: Units) -> impl Iterator<Item = Month> {
    let temperatures = city.high_celsius.iter().zip(&city.low_celsius);
    temperatures.zip(&city.rain_mm).zip(1..).map(move |(((high, low), rain), month)| Month {
        month,
        name: month_name(month),
        high: units.temperature(*high),
        low: units.temperature(*low),
        precipitation: units.depth(u32::from(*rain)),
    })
}

/// The month whose value no other beats; of equals the first.
fn name_of_first(values: impl Iterator<Item = i32>, beats: impl Fn(i32, i32) -> bool) -> &'static str {
    let best = values.zip(1..).reduce(|best, other| if beats(best.0, other.0) { other } else { best });
    best.map_or("", |(_, month)| month_name(month))
}
