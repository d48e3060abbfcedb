//! `weather`: what the weather is usually like, from the table of `climate`, carried inside the component.
//! The lesson: structured results with an output schema, and errors that say what would have been right.
//!
//! Holds the tools' definitions and the way to their answers; must hold no data and no matching of names.

mod answer;

use serde::Deserialize;
use toolkit::{CallResult, Failure, Guest, Tool};

struct Weather;

toolkit::export!(Weather);

/// Cities listed by `weather_find` where the caller does not say; the schema says the same.
const FIND_LIMIT_DEFAULT: usize = 10;

#[derive(Deserialize)]
struct NormalsArguments {
    city: String,
    month: Option<usize>,
    #[serde(default)]
    units: climate::Units,
}

#[derive(Deserialize)]
struct FindArguments {
    month: usize,
    min_high: Option<i32>,
    max_high: Option<i32>,
    max_precipitation: Option<f64>,
    #[serde(default)]
    units: climate::Units,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct CitiesArguments {
    country: Option<String>,
}

impl Guest for Weather {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "weather_normals",
                "What the weather of a city is usually like: mean daily high and low and precipitation for one \
                 month or all twelve. Long-term means, not a forecast.",
                include_str!("../schemas/normals.input.json"),
            )
            .title("Usual weather of a city")
            .output(include_str!("../schemas/normals.output.json"))
            .read_only(),
            Tool::new(
                "weather_find",
                "Finds cities where a month is usually as warm and as dry as asked for, the driest first.",
                include_str!("../schemas/find.input.json"),
            )
            .title("Find a city by its weather")
            .output(include_str!("../schemas/find.output.json"))
            .read_only(),
            Tool::new(
                "weather_cities",
                "Lists the cities that the other weather tools know.",
                include_str!("../schemas/cities.input.json"),
            )
            .title("Cities with known weather")
            .output(include_str!("../schemas/cities.output.json"))
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "weather_normals" => normals(&toolkit::arguments(&arguments_json)?),
            "weather_find" => find(&toolkit::arguments(&arguments_json)?),
            "weather_cities" => cities(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn normals(arguments: &NormalsArguments) -> Result<CallResult, Failure> {
    let city = climate::find(&arguments.city).map_err(|unknown| Failure::invalid(unknown.to_string()))?;
    CallResult::structured(&answer::Normals::of(city, arguments.month, arguments.units))
}

fn find(arguments: &FindArguments) -> Result<CallResult, Failure> {
    if let (Some(min), Some(max)) = (arguments.min_high, arguments.max_high) {
        if min > max {
            return Err(Failure::invalid(format!(
                "min_high is {min} and max_high is {max}: no day is both; swap them"
            )));
        }
    }
    let wanted = answer::Wanted {
        month: arguments.month,
        min_high: arguments.min_high.unwrap_or(i32::MIN),
        max_high: arguments.max_high.unwrap_or(i32::MAX),
        max_precipitation: arguments.max_precipitation.unwrap_or(f64::INFINITY),
        units: arguments.units,
    };
    CallResult::structured(&answer::Found::by(&wanted, arguments.limit.unwrap_or(FIND_LIMIT_DEFAULT)))
}

fn cities(arguments: &CitiesArguments) -> Result<CallResult, Failure> {
    let listed =
        climate::of_country(arguments.country.as_deref()).map_err(|unknown| Failure::invalid(unknown.to_string()))?;
    CallResult::structured(&answer::Cities::of(&listed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use serde_json::{Value, json};

    fn call(tool: &str, arguments: Value) -> Result<Value, String> {
        match Weather::call_tool(tool.to_owned(), arguments.to_string()) {
            Ok(result) => Ok(serde_json::from_str(&result.structured_json.unwrap()).unwrap()),
            Err(failure) => Err(failure.message().to_owned()),
        }
    }

    #[test]
    fn one_month_of_a_city() {
        let answer = call("weather_normals", json!({"city": "lisboa", "month": 7})).unwrap();
        assert_eq!(answer["city"], "Lisbon");
        assert_eq!(answer["months"], json!([{"month": 7, "name": "July", "high": 28, "low": 18, "precipitation": 4}]));
        assert_eq!(answer["year"]["wettest_month"], "November");
    }

    #[test]
    fn imperial_units() {
        let answer = call("weather_normals", json!({"city": "Oslo", "units": "imperial"})).unwrap();
        assert_eq!(answer["months"][0]["high"], 32);
        assert_eq!(answer["months"][0]["precipitation"], 2.3);
        assert_eq!(answer["months"].as_array().unwrap().len(), 12);
    }

    #[test]
    fn an_unknown_city_comes_with_suggestions() {
        let message = call("weather_normals", json!({"city": "Amstelveen"})).unwrap_err();
        assert_eq!(
            message,
            "no climate is known for \"Amstelveen\"; did you mean Amsterdam? weather_cities lists all cities"
        );
    }

    #[test]
    fn finding_warm_and_dry_places() {
        let wanted = json!({"month": 10, "min_high": 22, "max_high": 28, "max_precipitation": 30, "limit": 3});
        let answer = call("weather_find", wanted).unwrap();
        let names: Vec<&str> =
            answer["cities"].as_array().unwrap().iter().map(|c| c["city"].as_str().unwrap()).collect();
        assert_eq!(names, ["Santiago", "Los Angeles", "Tel Aviv"]);
        assert!(answer["found"].as_u64().unwrap() > 3);
    }

    #[test]
    fn a_request_that_nothing_can_fulfil_is_the_callers_mistake() {
        let message = call("weather_find", json!({"month": 1, "min_high": 30, "max_high": 20})).unwrap_err();
        assert_eq!(message, "min_high is 30 and max_high is 20: no day is both; swap them");
    }

    #[test]
    fn cities_of_a_country() {
        let answer = call("weather_cities", json!({"country": "brazil"})).unwrap();
        assert_eq!(
            answer["cities"],
            json!([
                {"city": "Rio de Janeiro", "country": "Brazil"},
                {"city": "São Paulo", "country": "Brazil"},
            ])
        );
        assert_eq!(
            call("weather_cities", json!({"country": "Brasil"})).unwrap_err(),
            "no city of \"Brasil\" is known; did you mean Brazil? weather_cities lists all cities"
        );
    }

    #[test]
    fn definitions_are_complete() {
        for tool in Weather::list_tools() {
            let input: Value = serde_json::from_str(&tool.input_schema_json).unwrap();
            assert_eq!(input["type"], "object", "{}", tool.name);
            assert_eq!(input["additionalProperties"], false, "{}", tool.name);
            let output: Value = serde_json::from_str(tool.output_schema_json.as_deref().unwrap()).unwrap();
            assert_eq!(output["type"], "object", "{}", tool.name);
        }
    }
}
