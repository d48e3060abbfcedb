//! Open-Meteo: its addresses, the two requests, and its errors in words. Holds no choice of a place.

use climate::Units;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolkit::Failure;
use toolkit::http::{self, Target, escaped};

use crate::forecast::{self, Forecast};
use crate::place::{Found, Place};

/// Matches asked for: enough to find one of a region among its namesakes; the service gives up to 100.
const MATCHES: u8 = 20;

/// The most of an answer that is read, in bytes. Twenty matches take 12 KB, a week's forecast 2 KB.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The most of a reason that is repeated, in characters.
const REASON_CHARACTERS_MAX: usize = 200;

/// Where the service is. The manifest's variables may name another: one's own server, or the one for customers.
fn address(variable: &str, usual: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| usual.to_owned()).trim_end_matches('/').to_owned()
}

/// The places of a name.
pub fn places(name: &str) -> Result<Found, Failure> {
    let service = address("GEOCODING_URL", "https://geocoding-api.open-meteo.com");
    asked(&format!("{service}/v1/search?name={}&count={MATCHES}&language=en&format=json", escaped(name)))
}

/// The forecast of a place.
pub fn forecast(place: &Place, days: u8, units: Units) -> Result<Forecast, Failure> {
    let service = address("FORECAST_URL", "https://api.open-meteo.com");
    let Place { latitude, longitude, .. } = place;
    let units = match units {
        Units::Metric => "",
        Units::Imperial => "&temperature_unit=fahrenheit&wind_speed_unit=mph&precipitation_unit=inch",
    };
    let current = forecast::CURRENT;
    let daily = forecast::DAILY;
    asked(&format!(
        "{service}/v1/forecast?latitude={latitude}&longitude={longitude}&current={current}&daily={daily}&timezone=auto&forecast_days={days}{units}"
    ))
}

fn asked<T: DeserializeOwned>(url: &str) -> Result<T, Failure> {
    let answer = http::get(Target::of(url)?, &[("accept", "application/json")])?;
    let status = answer.status;
    let body = answer.read(ANSWER_BYTES_MAX)?;
    if status == 200 { read(&body) } else { Err(Failure::Failed(problem(status, &body))) }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let how = if body.len() >= ANSWER_BYTES_MAX { "more than it should be".to_owned() } else { error.to_string() };
        Failure::Failed(format!("Open-Meteo answered with something that is not a forecast or search result: {how}"))
    })
}

/// The meaning of a status and the body of an error: `{"error": true, "reason": "…"}`.
fn problem(status: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        reason: String,
    }
    let reason = serde_json::from_slice::<Problem>(body).map(|problem| problem.reason).unwrap_or_default();
    let reason: String = reason.chars().filter(|letter| !letter.is_control()).take(REASON_CHARACTERS_MAX).collect();
    let said = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match status {
        429 => format!("Open-Meteo takes no more requests from here for now{said}"),
        500.. => format!("Open-Meteo is out of order (status {status}){said}; try again later"),
        _ => format!("Open-Meteo refused the request (status {status}){said}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_problem_is_said_with_its_reason() {
        let body = br#"{"error":true,"reason":"Minutely API request limit exceeded. Please try again in one minute."}"#;
        for (status, body, said) in [
            (
                429,
                &body[..],
                "Open-Meteo takes no more requests from here for now: Minutely API request limit exceeded. Please try again in one minute.",
            ),
            (503, b"<html>", "Open-Meteo is out of order (status 503); try again later"),
            (
                400,
                br#"{"reason":"bad\u0000\nthing","error":true}"#,
                "Open-Meteo refused the request (status 400): badthing",
            ),
        ] {
            assert_eq!(problem(status, body), said);
        }
    }

    #[test]
    fn a_search_without_a_match_has_no_results() {
        assert!(read::<Found>(br#"{"generationtime_ms":0.5}"#).unwrap().results.is_empty());
        let failure = read::<Found>(b"<html>").err().unwrap();
        assert!(failure.message().starts_with("Open-Meteo answered with something"), "{}", failure.message());
    }
}
