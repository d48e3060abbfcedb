//! `weather_live`: the weather of a place now and in the next days, next to what is usual there.
//! The lesson: a public service behind a tool. Two requests, their shapes read strictly, and errors that a model can
//! act on.
//!
//! Holds the tool's definition and the way to its answer; must hold no URL and no shape of the service's answers.

mod answer;
mod conditions;
mod forecast;
mod place;
mod service;

use climate::Units;
use serde::Deserialize;
use toolkit::{CallResult, Failure, Guest, Hints, Tool};

struct WeatherLive;

toolkit::export!(WeatherLive);

/// Days of forecast where the caller does not say; the schema says the same.
const DAYS_DEFAULT: u8 = 3;

#[derive(Deserialize)]
struct Arguments {
    location: String,
    days: Option<u8>,
    #[serde(default)]
    units: Units,
}

impl Guest for WeatherLive {
    fn list_tools() -> Vec<Tool> {
        let hints =
            Hints { read_only: Some(true), destructive: Some(false), idempotent: Some(true), open_world: Some(true) };
        vec![Tool {
            hints: Some(hints),
            ..Tool::new(
                "get_weather",
                "The weather of a place now and in the next days, from Open-Meteo. For larger cities also what the \
                 month is usually like. Says which place was taken where several have the name.",
                include_str!("../schemas/input.json"),
            )
            .title("Weather now")
            .output(include_str!("../schemas/output.json"))
        }]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "get_weather" => weather(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn weather(arguments: &Arguments) -> Result<CallResult, Failure> {
    let (name, region) = place::parts(&arguments.location)?;
    let chosen = place::choose(service::places(name)?, name, region)?;
    let days = arguments.days.unwrap_or(DAYS_DEFAULT);
    let forecast = service::forecast(&chosen.place, days, arguments.units)?;
    CallResult::structured(&answer::Weather::of(&chosen, &forecast, arguments.units)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::Value;

    #[test]
    fn definitions_are_complete() {
        for tool in WeatherLive::list_tools() {
            let input: Value = serde_json::from_str(&tool.input_schema_json).unwrap();
            assert_eq!(input["properties"]["days"]["default"], DAYS_DEFAULT);
            let output: Value = serde_json::from_str(tool.output_schema_json.as_deref().unwrap()).unwrap();
            assert_eq!(
                (&input["additionalProperties"], &output["additionalProperties"]),
                (&false.into(), &false.into())
            );
        }
    }
}
