//! `weather_live` against a server that answers as Open-Meteo does.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, Scripted, Seen};

use super::{error_of, folder};

/// The value of a part of a query. Nothing but ASCII and `%20` comes here.
fn part(seen: &Seen, name: &str) -> Option<String> {
    let (_, query) = seen.target().split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value.replace("%20", " "))
}

fn json_of(value: &Value) -> Scripted {
    Scripted::Whole(200, "application/json", value.to_string())
}

fn refusal(status: u16, reason: &str) -> Scripted {
    Scripted::Whole(status, "application/json", json!({"error": true, "reason": reason}).to_string())
}

fn match_of(name: &str, region: &str, country: &str, code: &str, latitude: f64) -> Value {
    let mut place = json!({
        "id": 2267057, "name": name, "latitude": latitude, "longitude": -9.13333, "elevation": 45.0,
        "feature_code": "PPLC", "country_code": code, "timezone": "Europe/Lisbon", "population": 517802,
        "country_id": 2264397, "country": country, "admin1": region,
    });
    if region.is_empty() {
        place.as_object_mut().unwrap().remove("admin1");
    }
    place
}

/// The geocoding: no `results` where there is no match, and fields that are missing where a place
/// has none.
fn search(seen: &Seen) -> Scripted {
    let found: Vec<Value> = match part(seen, "name").as_deref() {
        Some("Lisbon") => vec![match_of("Lisbon", "Lisbon District", "Portugal", "PT", 38.71667)],
        Some("Paris") => vec![
            match_of("Paris", "Île-de-France", "France", "FR", 48.85341),
            match_of("Paris", "Texas", "United States", "US", 33.66094),
            match_of("Paris", "", "Kiribati", "KI", 1.9),
        ],
        _ => return json_of(&json!({"generationtime_ms": 0.55})),
    };
    json_of(&json!({"results": found, "generationtime_ms": 0.71}))
}

fn forecast(seen: &Seen) -> Scripted {
    let Some(days) = part(seen, "forecast_days").and_then(|days| days.parse::<usize>().ok()) else {
        return refusal(400, "Forecast days is invalid. Allowed range 0 to 16. Given nothing.");
    };
    let list = |value: Value| vec![value; days];
    let dates: Vec<String> = (22..22 + days).map(|day| format!("2026-11-{day}")).collect();
    json_of(&json!({
        "latitude": 38.72, "longitude": -9.14, "generationtime_ms": 0.1, "utc_offset_seconds": 0,
        "timezone": "Europe/Lisbon", "timezone_abbreviation": "WET", "elevation": 45.0,
        "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°C"},
        "current": {
            "time": "2026-11-22T10:30", "interval": 900, "temperature_2m": 15.2, "relative_humidity_2m": 71,
            "apparent_temperature": 14.1, "precipitation": 0.0, "weather_code": 2, "wind_speed_10m": 12.4,
            "wind_direction_10m": 318,
        },
        "daily_units": {"time": "iso8601", "temperature_2m_max": "°C"},
        "daily": {
            "time": dates, "weather_code": list(json!(61)), "temperature_2m_max": list(json!(19.6)),
            "temperature_2m_min": list(json!(11.0)), "precipitation_sum": list(json!(1.4)),
        },
    }))
}

fn open_meteo(seen: &Seen) -> Scripted {
    match seen.target().split('?').next() {
        Some("/v1/search") => search(seen),
        Some("/v1/forecast") => forecast(seen),
        _ => refusal(404, "Not Found"),
    }
}

/// The example with this server instead of both services, and less time for a request.
fn serving(server: &HttpServer) -> TestHost {
    let address = server.address();
    let url = server.url("");
    let network = format!(
        "[components.weather_live.env]\nGEOCODING_URL = \"{url}\"\nFORECAST_URL = \"{url}/\"\n\n\
         [components.weather_live.network]\nprivate = [\"{address}\"]\n"
    );
    let changes = [
        ("[components.weather_live.network]\n", network.as_str()),
        ("https://geocoding-api.open-meteo.com", &url),
        ("https://api.open-meteo.com", &url),
        ("http_time = \"8s\"", "http_time = \"5s\""),
    ];
    TestHost::recording_in(folder("weather_live", &changes), &[])
}

fn weather(host: &mut TestHost, location: &str) -> Result<Value, String> {
    let answer = host.call("get_weather", json!({"location": location}));
    if answer.is_error() { Err(error_of(&answer).to_owned()) } else { Ok(answer.structured().clone()) }
}

#[test]
fn the_weather_stands_beside_what_is_usual() {
    let server = HttpServer::scripted(open_meteo);
    let mut host = serving(&server);
    let answer = host.call("get_weather", json!({"location": "Lisbon, PT", "days": 1, "units": "metric"}));
    let expected = json!({
        "place": {
            "name": "Lisbon", "region": "Lisbon District", "country": "Portugal",
            "latitude": 38.71667, "longitude": -9.13333, "timezone": "Europe/Lisbon",
        },
        "also_called_so": [],
        "units": "metric",
        "now": {
            "time": "2026-11-22T10:30", "conditions": "partly cloudy", "temperature": 15.2, "feels_like": 14.1,
            "humidity": 71.0, "precipitation": 0.0, "wind_speed": 12.4, "wind_from": "NW",
        },
        "days": [{"date": "2026-11-22", "conditions": "light rain", "high": 19.6, "low": 11.0, "precipitation": 1.4}],
        "usual": {"month": "November", "high": 18, "low": 12, "precipitation": 121, "high_today_above_usual": 1.6},
    });
    assert_eq!(answer.structured(), &expected);
    let [search, forecast] = &server.seen()[..] else { panic!("two requests were expected: {:?}", server.seen()) };
    assert_eq!(search.target(), "/v1/search?name=Lisbon&count=20&language=en&format=json");
    assert!(forecast.target().starts_with("/v1/forecast?latitude=38.71667&longitude=-9.13333&current="));
    assert!(forecast.target().ends_with("&timezone=auto&forecast_days=1"), "{}", forecast.target());
    let imperial = host.call("get_weather", json!({"location": "Lisbon", "units": "imperial"}));
    assert_eq!(imperial.structured()["days"].as_array().unwrap().len(), 3);
    assert_eq!(imperial.structured()["usual"]["high"], 64);
    let units = "&temperature_unit=fahrenheit&wind_speed_unit=mph&precipitation_unit=inch";
    assert!(server.seen().pop().unwrap().target().ends_with(units));
}

#[test]
fn a_name_that_several_places_have_leads_to_one_and_says_so() {
    let server = HttpServer::scripted(open_meteo);
    let mut host = serving(&server);
    let found = weather(&mut host, "Paris").unwrap();
    assert_eq!(found["place"]["country"], "France");
    assert_eq!(found["also_called_so"], json!(["Paris, Texas, United States", "Paris, Kiribati"]));
    assert_eq!(found["usual"]["month"], "November");
    let found = weather(&mut host, "Paris, texas").unwrap();
    assert_eq!(found["place"]["region"], "Texas");
    assert_eq!(found.get("usual"), None, "the table's Paris is another");
}

#[test]
fn a_place_that_is_not_known_is_said_with_those_that_are() {
    let server = HttpServer::scripted(open_meteo);
    let mut host = serving(&server);
    let said = weather(&mut host, "Gotham & City=1#").unwrap_err();
    assert!(said.contains("no place called \"Gotham & City=1#\" is known"), "{said}");
    assert!(server.only_seen().target().starts_with("/v1/search?name=Gotham%20%26%20City%3D1%23&count="));
    let said = weather(&mut host, "Paris, Spain").unwrap_err();
    assert!(
        said.contains("no \"Paris\" is known in \"Spain\"; there is Paris, Île-de-France, France; Paris, Texas"),
        "{said}"
    );
    for location in ["P", " , France", ""] {
        weather(&mut host, location).unwrap_err();
    }
    assert_eq!(server.seen().len(), 2, "what is too short is not asked for");
}

#[test]
fn what_the_service_says_of_itself_is_told() {
    let many = "Minutely API request limit exceeded. Please try again in one minute.";
    let answers = [
        (refusal(429, many), format!("Open-Meteo takes no more requests from here for now: {many}")),
        (
            Scripted::Whole(503, "text/html", "<html>".to_owned()),
            "Open-Meteo is out of order (status 503); try again later".to_owned(),
        ),
        (
            refusal(400, "Latitude must be in range"),
            "Open-Meteo refused the request (status 400): Latitude must".to_owned(),
        ),
        (
            Scripted::Whole(200, "text/html", "<html>".to_owned()),
            "Open-Meteo answered with something that is no".to_owned(),
        ),
        (json_of(&json!({"results": "none"})), "Open-Meteo answered with something that is no".to_owned()),
        (Scripted::As("/cut"), "cannot be fetched".to_owned()),
        (Scripted::As("/silent"), "cannot be fetched".to_owned()),
        (Scripted::As("/endless"), "more than it should be".to_owned()),
        (Scripted::As("/redirect?http://169.254.169.254/"), "Open-Meteo refused the request (status 302)".to_owned()),
    ];
    let next = AtomicUsize::new(0);
    let scripts = answers.clone();
    let server = HttpServer::scripted(move |_| scripts[next.fetch_add(1, Ordering::SeqCst)].0.clone());
    let mut host = serving(&server);
    for (script, said) in &answers {
        let error = weather(&mut host, "Lisbon").unwrap_err();
        assert!(error.contains(said), "{script:?}: {error}");
    }
    assert_eq!(server.seen().len(), answers.len(), "nothing is tried twice, and no redirect is followed");
}

#[test]
fn a_forecast_that_fails_is_no_weather() {
    let server = HttpServer::scripted(|seen| match seen.target().starts_with("/v1/search") {
        true => search(seen),
        false => refusal(500, "Internal Server Error"),
    });
    let error = weather(&mut serving(&server), "Lisbon").unwrap_err();
    assert_eq!(error, "Open-Meteo is out of order (status 500): Internal Server Error; try again later");
}

#[test]
fn nothing_but_the_two_requests_is_allowed() {
    let server = HttpServer::scripted(open_meteo);
    let address = server.address();
    let url = server.url("");
    // The forecast's variable leads to a path that no rule names.
    let network = format!(
        "[components.weather_live.env]\nGEOCODING_URL = \"{url}\"\nFORECAST_URL = \"{url}/admin\"\n\n\
         [components.weather_live.network]\nprivate = [\"{address}\"]\n"
    );
    let changes = [
        ("[components.weather_live.network]\n", network.as_str()),
        ("https://geocoding-api.open-meteo.com", &url),
        ("https://api.open-meteo.com", &url),
    ];
    let mut host = TestHost::recording_in(folder("weather_live", &changes), &[]);
    let answer = host.call("get_weather", json!({"location": "Lisbon"}));
    assert!(answer.everything().contains("no rule of tool \\\"get_weather\\\" allows it"), "{}", answer.everything());
    assert_eq!(server.seen().len(), 1);
}
