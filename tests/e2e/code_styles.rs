//! Scripts in the styles that models write for other code modes: whatever form they have, they run
//! here, with the tools of the examples.
//!
//! Promise: a nested call is a call.

use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Folder, TestHost};

/// The examples with scripts, served from a folder of their own.
fn host() -> TestHost {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples");
    let folder = Folder::with_manifest(&std::fs::read_to_string(examples.join("code.toml")).unwrap());
    for name in ["weather", "units"] {
        let built = examples.join(format!("components/{name}.wasm"));
        let bytes = std::fs::read(&built).unwrap_or_else(|error| panic!("{}: {error}; `make guests`", built.display()));
        folder.write(&format!("components/{name}.wasm"), bytes);
    }
    TestHost::recording_in(folder, &[])
}

fn returned(host: &mut TestHost, code: &str, input: &Value) -> Value {
    host.call("run_code", json!({"code": code, "input": input})).structured()["result"].clone()
}

/// One arrow function, with a loop whose calls depend on what the one before gave.
#[test]
fn an_arrow_function_that_loops_until_it_has_found_something() {
    let mut host = host();
    let code = "async () => {
        const { cities } = await tools.weather_cities({});
        let warmest = null;
        for (const { city } of cities.slice(0, 8)) {
            const { months } = await tools.weather_normals({ city, month: 7 });
            if (warmest === null || months[0].high > warmest.high) {
                warmest = { city, high: months[0].high };
            }
        }
        return warmest;
    };";
    let warmest = returned(&mut host, code, &json!(null));
    let all = returned(
        &mut host,
        "const { cities } = await tools.weather_cities({}); const names = cities.slice(0, 8).map(one => one.city); \
         return (await Promise.all(names.map(city => tools.weather_normals({city, month: 7})))).map(one => one.months[0].high)",
        &json!(null),
    );
    let most = all.as_array().unwrap().iter().map(|high| high.as_f64().unwrap()).fold(f64::MIN, f64::max);
    assert_eq!(warmest["high"].as_f64(), Some(most), "{warmest} {all}");
}

/// Find a tool, look at its schema, call it by its name.
#[test]
fn a_script_that_searches_looks_and_calls_by_name() {
    let mut host = host();
    let code = "
        const hits = await tools.find('usual weather of a city', 3);
        const hit = hits.find(one => one.name.endsWith('normals'));
        const { inputSchema } = await tools.describe(hit.name);
        if (!inputSchema.required.includes('city')) throw new Error('no city');
        const answer = await tools.call(hit.name, { city: input.city, month: 1 });
        return { tool: hit.name, via: hit.property, months: answer.months.length };";
    let found = returned(&mut host, code, &json!({"city": "Lisbon"}));
    assert_eq!(found, json!({"tool": "weather_normals", "via": "weather_normals", "months": 1}));
}

/// Several at once; each failure is caught where it comes from, and becomes a part of the result.
#[test]
fn failures_are_caught_one_by_one_and_reported_beside_what_worked() {
    let mut host = host();
    let code = "
        const places = ['Oslo', 'Atlantis', 'Cairo'];
        const reports = await Promise.all(places.map(async (city) => {
            try {
                const { months } = await tools.weather_normals({ city, month: 12 });
                const warm = await tools.units_convert({ value: months[0].high, from: 'celsius', to: 'fahrenheit' });
                return { city, ok: true, warm: JSON.stringify(warm) };
            } catch (err) {
                console.error('failed:', city, err.message);
                return { city, ok: false, error: err instanceof Error && err.message.length > 0 };
            }
        }));
        const good = reports.filter((one) => one.ok);
        return { good: good.length, failed: reports.filter((one) => !one.ok), converted: good.every(one => one.warm !== '{}') };";
    let answer = host.call("run_code", json!({"code": code}));
    let expected = json!({"good": 2, "failed": [{"city": "Atlantis", "ok": false, "error": true}], "converted": true});
    assert_eq!(answer.structured()["result"], expected, "{}", answer.everything());
    assert!(answer.structured()["console"].as_str().unwrap().starts_with("failed: Atlantis weather_normals: "));
}

/// A named function that is the whole program, with a reduction of much data to a few numbers.
#[test]
fn a_named_function_that_reduces_what_it_read() {
    let mut host = host();
    let code = "async function run({ countries }) {
        const lists = await Promise.allSettled(countries.map((country) => tools.weather_cities({ country })));
        const cities = lists.flatMap((end) => end.status === 'fulfilled' ? end.value.cities : []);
        const byCountry = {};
        for (const one of cities) {
            (byCountry[one.country] ??= []).push(one.city);
        }
        const [first] = cities;
        const { months } = await tools.weather_normals({ city: first.city });
        const wet = months.reduce((sum, month) => sum + month.precipitation, 0);
        return { countries: Object.keys(byCountry).length, first: typeof first.city, wet: wet > 0, months: months.length };
    }";
    let known = "const { cities } = await tools.weather_cities({}); return [...new Set(cities.map(one => one.country))].slice(0, 2)";
    let countries = returned(&mut host, known, &json!(null));
    let found = returned(&mut host, code, &json!({"countries": countries}));
    assert_eq!(found, json!({"countries": 2, "first": "string", "wet": true, "months": 12}));
}
