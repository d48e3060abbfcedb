//! The answer, in the shape that the output schema promises. Holds no request.

use climate::{City, Depth, Units, known_as, month_name};
use serde::Serialize;
use toolkit::Failure;

use crate::conditions;
use crate::forecast::{Daily, Forecast};
use crate::place::{Chosen, Place};

#[derive(Serialize)]
pub struct Weather<'a> {
    place: Taken<'a>,
    also_called_so: &'a [String],
    units: Units,
    now: Now<'a>,
    days: Vec<Day<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usual: Option<Usual>,
}

#[derive(Serialize)]
struct Taken<'a> {
    name: &'a str,
    region: &'a str,
    country: &'a str,
    latitude: f64,
    longitude: f64,
    timezone: &'a str,
}

#[derive(Serialize)]
struct Now<'a> {
    time: &'a str,
    conditions: &'static str,
    temperature: f64,
    feels_like: f64,
    humidity: f64,
    precipitation: f64,
    wind_speed: f64,
    wind_from: &'static str,
}

#[derive(Serialize)]
struct Day<'a> {
    date: &'a str,
    conditions: &'static str,
    high: f64,
    low: f64,
    precipitation: f64,
}

#[derive(Serialize)]
struct Usual {
    month: &'static str,
    high: i32,
    low: i32,
    precipitation: Depth,
    high_today_above_usual: f64,
}

impl<'a> Weather<'a> {
    /// # Errors
    /// [`Failure::Failed`] where the forecast has no day.
    pub fn of(chosen: &'a Chosen, forecast: &'a Forecast, units: Units) -> Result<Self, Failure> {
        let place = &chosen.place;
        let current = &forecast.current;
        let days = days(&forecast.daily);
        let Some(today) = days.first() else {
            return Err(Failure::Failed("Open-Meteo answered with a forecast of no days".to_owned()));
        };
        let usual = usual(chosen, forecast.month(), units, today.high);
        Ok(Self {
            place: Taken::of(place, &forecast.timezone),
            also_called_so: &chosen.others,
            units,
            now: Now {
                time: &current.time,
                conditions: conditions::in_words(current.weather_code),
                temperature: current.temperature_2m,
                feels_like: current.apparent_temperature,
                humidity: current.relative_humidity_2m,
                precipitation: current.precipitation,
                wind_speed: current.wind_speed_10m,
                wind_from: conditions::wind_from(current.wind_direction_10m),
            },
            days,
            usual,
        })
    }
}

impl<'a> Taken<'a> {
    fn of(place: &'a Place, timezone: &'a str) -> Self {
        let Place { name, admin1: region, country, latitude, longitude, .. } = place;
        Self { name, region, country, latitude: *latitude, longitude: *longitude, timezone }
    }
}

fn days(daily: &Daily) -> Vec<Day<'_>> {
    let warmth = daily.temperature_2m_max.iter().zip(&daily.temperature_2m_min);
    let known = daily.time.iter().zip(&daily.weather_code).zip(warmth).zip(&daily.precipitation_sum);
    known
        .map(|(((date, code), (high, low)), precipitation)| Day {
            date,
            conditions: conditions::in_words(*code),
            high: *high,
            low: *low,
            precipitation: *precipitation,
        })
        .collect()
}

/// The usual weather of the month, for a city of the table. A smaller place of the same name and country is not it.
fn usual(chosen: &Chosen, month: Option<usize>, units: Units, high_today: f64) -> Option<Usual> {
    let city: &City = known_as(&chosen.place.name, &chosen.place.country).filter(|_| chosen.is_largest)?;
    let month = month?;
    let at = month.checked_sub(1)?;
    let high = units.temperature(*city.high_celsius.get(at)?);
    Some(Usual {
        month: month_name(month),
        high,
        low: units.temperature(*city.low_celsius.get(at)?),
        precipitation: units.depth(u32::from(*city.rain_mm.get(at)?)),
        high_today_above_usual: ((high_today - f64::from(high)) * 10.0).round() / 10.0,
    })
}
