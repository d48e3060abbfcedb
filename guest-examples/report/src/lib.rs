//! `report`: a tool that calls other tools, and writes one text of what they say.
//! The lesson: calls in the middle of a call, one by one and as a list, and what to do where one of them fails.
//!
//! Holds what is asked and what is written; must hold no data of its own.

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolkit::{CallResult, Failure, Guest, Tool};

struct Report;

toolkit::export!(Report);

/// Degrees by which a city may be warmer or colder and still be about as warm.
const ABOUT: i64 = 2;

#[derive(Deserialize)]
struct TripArguments {
    from: String,
    to: String,
    month: u8,
}

#[derive(Deserialize)]
struct CitiesArguments {
    cities: Vec<String>,
    month: u8,
}

/// What `weather_normals` gives.
#[derive(Deserialize)]
struct Normals {
    city: String,
    months: Vec<Month>,
}

#[derive(Deserialize)]
struct Month {
    name: String,
    high: i64,
    precipitation: f64,
}

/// What `weather_find` gives.
#[derive(Deserialize)]
struct Found {
    cities: Vec<City>,
}

#[derive(Serialize, Deserialize)]
struct City {
    city: String,
    high: i64,
}

/// What `units_convert` gives: its result, or what is wrong.
#[derive(Deserialize)]
struct Quantity {
    value: f64,
}

impl Guest for Report {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "report_trip",
                "Writes a few lines on the usual weather where somebody goes, beside what it is like at home, with \
                 drier cities that are about as warm.",
                include_str!("../schemas/trip.input.json"),
            )
            .title("Report on a trip")
            .output(include_str!("../schemas/trip.output.json"))
            .read_only(),
            Tool::new(
                "report_cities",
                "Puts cities in the order of how warm their days usually are in a month.",
                include_str!("../schemas/cities.input.json"),
            )
            .title("Cities by warmth")
            .output(include_str!("../schemas/cities.output.json"))
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "report_trip" => trip(&toolkit::arguments(&arguments_json)?),
            "report_cities" => cities(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

/// Three tools: what both cities are like, degrees for people who count in Fahrenheit, and other cities.
fn trip(arguments: &TripArguments) -> Result<CallResult, Failure> {
    let TripArguments { from, to, month } = arguments;
    let normals = [from, to].map(|city| json!({"city": city, "month": month}));
    let mut normals = toolkit::calling::call_all::<Normals>("weather_normals", &normals)?.into_iter();
    let (Some(home), Some(there)) = (normals.next(), normals.next()) else {
        return Err(Failure::Failed("weather_normals gave no answer".to_owned()));
    };
    // A report needs these. Where they are missing, the caller reads what the tool said.
    let home = home?;
    let there = there?;
    let at_home = only_month(&home)?;
    let in_there = only_month(&there)?;
    let celsius = json!({"value": in_there.high, "from": "celsius", "to": "fahrenheit"});
    let fahrenheit = toolkit::calling::call::<Quantity>("units_convert", &celsius)?;
    let wanted = json!({
        "month": month, "min_high": in_there.high - ABOUT, "max_high": in_there.high + ABOUT,
        "max_precipitation": in_there.precipitation, "limit": 4,
    });
    // Without other cities there still is a report.
    let alike = toolkit::calling::call::<Found>("weather_find", &wanted).map(|found| found.cities).unwrap_or_default();
    let alike: Vec<String> = alike.into_iter().map(|city| city.city).filter(|city| *city != there.city).collect();
    let report = written(&home, &there, fahrenheit.value, &alike)?;
    CallResult::structured(&json!({"report": report, "warmer": in_there.high - at_home.high, "alike": alike}))
}

fn only_month(normals: &Normals) -> Result<&Month, Failure> {
    normals.months.first().ok_or_else(|| Failure::Failed("weather_normals gave no month".to_owned()))
}

/// The text of the report.
fn written(home: &Normals, there: &Normals, fahrenheit: f64, alike: &[String]) -> Result<String, Failure> {
    let at_home = only_month(home)?;
    let in_there = only_month(there)?;
    let warmer = in_there.high - at_home.high;
    let beside = match warmer {
        0 => format!("as warm as in {}", home.city),
        1.. => format!("{warmer} degrees warmer than in {}", home.city),
        _ => format!("{} degrees colder than in {}", -warmer, home.city),
    };
    let mut text = format!(
        "{} in {}: days of {} °C ({fahrenheit:.0} °F), {beside}, and {} mm of rain.",
        in_there.name, there.city, in_there.high, in_there.precipitation
    );
    if !alike.is_empty() {
        text.push_str(&format!(" About as warm and no wetter: {}.", alike.join(", ")));
    }
    Ok(text)
}

/// One tool for each item of a list, as many at once as the host allows.
fn cities(arguments: &CitiesArguments) -> Result<CallResult, Failure> {
    let month = arguments.month;
    let asked: Vec<_> = arguments.cities.iter().map(|city| json!({"city": city, "month": month})).collect();
    let ends = toolkit::calling::call_all::<Normals>("weather_normals", &asked)?;
    CallResult::structured(&sorted(ends))
}

/// The cities that are known, the warmest first, and why the others are not.
fn sorted(ends: Vec<Result<Normals, Failure>>) -> serde_json::Value {
    let mut known = Vec::new();
    let mut not_found = Vec::new();
    for end in ends {
        match end.and_then(|normals| Ok(City { high: only_month(&normals)?.high, city: normals.city })) {
            Ok(city) => known.push(city),
            Err(failure) => not_found.push(failure.message().to_owned()),
        }
    }
    known.sort_by_key(|city| std::cmp::Reverse(city.high));
    json!({"warmest_first": known, "not_found": not_found})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn normals(city: &str, high: i64) -> Normals {
        let month = Month { name: "July".to_owned(), high, precipitation: 4.0 };
        Normals { city: city.to_owned(), months: vec![month] }
    }

    #[test]
    fn a_report_compares_with_home() {
        let lisbon = normals("Lisbon", 28);
        let alike = ["Athens".to_owned(), "Tunis".to_owned()];
        let expected = "July in Lisbon: days of 28 °C (82 °F), 6 degrees warmer than in Oslo, and 4 mm of rain. About \
                        as warm and no wetter: Athens, Tunis.";
        assert_eq!(written(&normals("Oslo", 22), &lisbon, 82.4, &alike).unwrap(), expected);
        let same = written(&normals("Rome", 28), &lisbon, 82.4, &[]).unwrap();
        assert!(same.ends_with("(82 °F), as warm as in Rome, and 4 mm of rain."), "{same}");
        let colder = written(&normals("Cairo", 35), &lisbon, 82.4, &[]).unwrap();
        assert!(colder.contains("7 degrees colder than in Cairo"), "{colder}");
    }

    #[test]
    fn a_city_that_is_not_known_is_left_out_with_its_reason() {
        let ends =
            vec![Ok(normals("Oslo", 22)), Err(Failure::Failed("no climate".to_owned())), Ok(normals("Rome", 31))];
        let expected = json!({
            "warmest_first": [{"city": "Rome", "high": 31}, {"city": "Oslo", "high": 22}],
            "not_found": ["no climate"],
        });
        assert_eq!(sorted(ends), expected);
    }
}
