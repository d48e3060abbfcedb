//! A forecast as Open-Meteo has it. Holds the shape, and no request.

use serde::Deserialize;

/// The variables that are asked for as they are now.
pub const CURRENT: &str = "temperature_2m,relative_humidity_2m,apparent_temperature,precipitation,weather_code,wind_speed_10m,wind_direction_10m";

/// The variables that are asked for of each day.
pub const DAILY: &str = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum";

#[derive(Debug, Deserialize)]
pub struct Forecast {
    pub timezone: String,
    pub current: Current,
    pub daily: Daily,
}

#[derive(Debug, Deserialize)]
pub struct Current {
    /// Local time, such as `2026-11-22T10:30`.
    pub time: String,
    pub temperature_2m: f64,
    pub apparent_temperature: f64,
    pub relative_humidity_2m: f64,
    pub precipitation: f64,
    pub weather_code: u8,
    pub wind_speed_10m: f64,
    pub wind_direction_10m: f64,
}

/// One list for each variable, all of the same length.
#[derive(Debug, Deserialize)]
pub struct Daily {
    pub time: Vec<String>,
    pub weather_code: Vec<u8>,
    pub temperature_2m_max: Vec<f64>,
    pub temperature_2m_min: Vec<f64>,
    pub precipitation_sum: Vec<f64>,
}

impl Forecast {
    /// The month of the local date, 1 to 12; `None` where the time is not a date.
    pub fn month(&self) -> Option<usize> {
        let month = self.current.time.split('-').nth(1)?.parse().ok()?;
        (1..=12).contains(&month).then_some(month)
    }
}
