//! `calibrate` and `bench`. The proposed limits hold for the calls they came from, and the measured
//! figures are those of the calls. The manifest's limits on the number of calls hinder neither
//! command.

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, manifest_of};

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

fn serving(fixtures: &[&str]) -> Folder {
    Folder::with_manifest(&manifest_of(fixtures))
}

fn append(folder: &Folder, text: &str) {
    let manifest = std::fs::read_to_string(folder.manifest()).unwrap();
    folder.write("toolcell.toml", format!("{manifest}\n{text}"));
}

/// This tool's limits, as `list` shows them.
fn limits(folder: &Folder, tool: &str) -> Value {
    let listed = run(folder, &["list", "--json"]).json();
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().find(|listed| listed["definition"]["name"] == tool).unwrap()["limits"].clone()
}

#[test]
fn what_is_proposed_is_a_manifest_s_table_and_lets_the_samples_pass() {
    let folder = Folder::with_manifest(&format!("{}prefix = \"my_\"\n", manifest_of(&["hungry", "good"])));
    let rows: [(&str, &[&str]); 3] = [
        ("my_echo", &[r#"{"text":"short"}"#, r#"{"text":"a text that is rather longer than the other one"}"#]),
        ("long_text", &[r#"{"bytes":10}"#, r#"{"bytes":20000}"#]),
        ("grow_and_settle", &[r#"{"mib":3}"#]),
    ];
    for (tool, samples) in rows {
        let proposed = run(&folder, &[&["calibrate", tool, "--runs", "2", "--with"], samples].concat());
        let proposed = proposed.succeeded();
        append(&folder, proposed);
        assert_eq!(run(&folder, &["check"]).code(), 0, "{proposed}");
        let table = proposed.lines().filter_map(|line| line.split('#').next().unwrap().split_once(" = "));
        let now = limits(&folder, tool);
        let mut keys = Vec::new();
        for (key, value) in table {
            keys.push(key);
            assert_eq!(now[key], value.trim().trim_matches('"'), "{tool}: {key}");
        }
        assert_eq!(keys, ["fuel", "deadline", "memory", "output", "output_items", "log", "arguments"]);
        // What was measured at rest is too short for a machine that is busy now.
        folder
            .write("toolcell.toml", folder.read("toolcell.toml").replace("deadline = \"100ms\"", "deadline = \"30s\""));
        for sample in samples {
            assert_eq!(run(&folder, &["call", tool, sample]).code(), 0, "{tool} {sample} under\n{proposed}");
        }
    }
    let own = "[components.good.tools.echo.limits]";
    assert!(std::fs::read_to_string(folder.manifest()).unwrap().contains(own), "the tool's own name, without prefix");
}

#[test]
fn what_is_proposed_bounds_calls_that_are_much_larger() {
    let folder = serving(&["hungry"]);
    let proposed = run(&folder, &["calibrate", "long_text", "--with", r#"{"bytes":2000}"#]);
    append(&folder, &proposed.succeeded().replace("deadline = \"100ms\"", "deadline = \"30s\""));
    assert_eq!(run(&folder, &["call", "long_text", r#"{"bytes":8000}"#]).code(), 0);
    let refused = run(&folder, &["call", "long_text", r#"{"bytes":9000}"#]);
    assert_eq!(refused.failed_with(1), "the result is larger than 8KiB (limit \"output\")\n");
}

#[test]
fn the_most_that_any_sample_used_counts() {
    let folder = serving(&["hungry"]);
    folder.write("large.json", r#"{"bytes": 3000}"#);
    let arguments = ["calibrate", "long_text", "--json", "--runs", "3", "--with", "@large.json", "-"];
    let report = Command::in_folder(&folder, &arguments).with_input(r#"{"bytes": 5}"#).run();
    assert_eq!(report.code(), 0, "{report:?}");
    let report = report.json();
    let part = |key: &str| report[key].clone();
    assert_eq!(
        [part("tool"), part("component"), part("samples"), part("runs")],
        [json!("long_text"), json!("hungry"), json!(2), json!(3)]
    );
    let used = &report["used"];
    assert_eq!(used["output_bytes"], 3000);
    assert_eq!(used["output_items"], 1);
    assert_eq!(used["arguments_bytes"], r#"{"bytes": 3000}"#.len());
    assert_eq!(report["limits"]["output"], "12KiB", "four times, in whole KiB");
    assert!(report["manifest"].as_str().unwrap().contains("\noutput = \"12KiB\""), "{report}");
    let fuel = used["fuel"].as_u64().unwrap();
    assert!(report["limits"]["fuel"].as_u64().unwrap() >= 4 * fuel, "{report}");
}

#[test]
fn what_a_tool_logs_past_its_limit_is_measured_too() {
    let folder = serving(&["hungry"]);
    append(&folder, "[components.hungry.limits]\nlog = \"1KiB\"\n");
    let report = run(&folder, &["calibrate", "log_line", "--json", "--with", r#"{"bytes":5000}"#]).json();
    // A line counts for 32 bytes besides its text.
    assert_eq!(report["used"]["log_bytes"], 5032);
    assert_eq!(report["limits"]["log"], "20KiB");
}

#[test]
fn a_sample_that_meets_a_limit_or_is_an_error_is_said_to() {
    let folder = serving(&["good", "loops", "hungry", "liar"]);
    for (tool, samples, expected) in [
        (
            "spin",
            &["{}"][..],
            "sample 1 meets a limit: out of fuel: the call used its whole budget of 20_000_000 units",
        ),
        ("sleep_hour", &["{}"], "sample 1 meets a limit: deadline exceeded: the call took longer than 5s"),
        ("grow_steadily", &["{}"], "sample 1 meets a limit: out of memory: the call needed more than 16MiB"),
        ("long_text", &[r#"{"bytes":1}"#, r#"{"bytes":70000}"#], "sample 2 meets a limit: the result is larger than"),
        ("says_error", &["{}"], "sample 1 is an error: the shop is closed"),
        ("add", &[r#"{"a":1,"b":2}"#, r#"{"a":1}"#], "sample 2 is an error: The arguments do not fit the input schema"),
        ("not_json", &["{}"], "sample 1 is an error: "),
    ] {
        let finished = run(&folder, &[&["calibrate", tool, "--with"], samples].concat());
        assert!(finished.failed_with(1).contains(expected), "{tool}: no {expected:?} in {}", finished.stderr);
        assert!(finished.stderr.contains("hint: "), "{tool}: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{tool}: nothing is proposed");
    }
}

#[test]
fn a_table_that_is_there_is_to_be_merged() {
    let folder = serving(&["good"]);
    let arguments = ["calibrate", "echo", "--with", r#"{"text":"x"}"#];
    let first = run(&folder, &arguments);
    assert_eq!(first.stderr, "");
    append(&folder, first.succeeded());
    let again = run(&folder, &arguments);
    assert_eq!(again.code(), 0);
    assert_eq!(again.stderr, "\nThe manifest has [components.good.tools.echo] already: merge the two.\n");
}

#[test]
fn neither_rate_nor_places_stand_in_the_way() {
    let folder = serving(&["good"]);
    append(&folder, "[components.good.limits]\nrate = \"1/h\"\nconcurrency = 1\nqueue = 0\n");
    let arguments = r#"{"text":"x"}"#;
    assert_eq!(run(&folder, &["calibrate", "echo", "--runs", "20", "--with", arguments]).code(), 0);
    let measured = run(&folder, &["bench", "echo", arguments, "--runs", "200", "--json"]).json();
    assert_eq!(measured["one_by_one"]["calls"], 200, "{measured}");
    assert_eq!(measured["on_every_core"]["calls"], 200, "{measured}");
}

#[test]
fn a_bench_measures_what_calls_take() {
    let folder = serving(&["good"]);
    let arguments = r#"{"steps":1,"step_ms":20}"#;
    let report = run(&folder, &["bench", "slow", arguments, "--runs", "10", "--json"]);
    assert_eq!(report.code(), 0, "{report:?}");
    let report = report.json();
    for series in ["one_by_one", "on_every_core"] {
        let latency = ["p50", "p90", "p99", "max"].map(|key| report[series]["latency_us"][key].as_f64().unwrap());
        assert!(latency.is_sorted(), "{report}");
        assert!(latency[0] >= 20_000.0, "it sleeps 20 ms: {report}");
        let rate = report[series]["calls_per_second"].as_f64().unwrap();
        assert!(rate > 0.0, "{report}");
    }
    assert!(report["one_by_one"]["calls_per_second"].as_f64().unwrap() <= 50.0, "one sleeps after the other: {report}");
    assert!(report["fuel_min"].as_u64().unwrap() > 0 && report["fuel_min"] == report["fuel_max"], "{report}");
    assert!(report["memory_peak_bytes"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_bench_shows_a_table_to_people() {
    let folder = serving(&["good"]);
    let shown = run(&folder, &["bench", "echo", r#"{"text":"x"}"#, "--runs", "100"]);
    let text = shown.succeeded();
    for part in ["calls", "p50 ms", "p90 ms", "p99 ms", "max ms", "calls/s", "one by one", "\nfuel ", "peak memory"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert_eq!(shown.stderr, "", "no progress but on a terminal");
}

#[test]
fn a_bench_of_a_tool_that_answers_with_errors_is_refused() {
    let folder = serving(&["good", "loops"]);
    for (tool, arguments, expected) in [
        ("says_error", "{}", "the tool answers with an error: the shop is closed"),
        ("spin", "{}", "the tool answers with an error: out of fuel"),
        ("add", r#"{"a":1}"#, "The arguments do not fit the input schema of add"),
    ] {
        let finished = run(&folder, &["bench", tool, arguments]);
        assert!(finished.failed_with(1).contains(expected), "{tool}: no {expected:?} in {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{tool}");
    }
}

#[test]
fn a_command_line_that_is_wrong_is_said_to_be() {
    let folder = serving(&["good"]);
    for (arguments, expected) in [
        (&["calibrate", "echo"][..], "--with"),
        (&["calibrate", "echo", "--with", "{text:1}"], "JSON"),
        (&["calibrate", "echo", "--with", "-", "-"], "stdin can be read only once"),
        (&["calibrate", "echo", "--with", "{}", "--runs", "0"], "0"),
        (&["calibrate", "ecko", "--with", "{}"], "did you mean \"echo\"?"),
        (&["bench", "ecko"], "did you mean \"echo\"?"),
        (&["bench", "echo", "@missing.json"], "missing.json"),
        (&["bench", "echo", "{}", "--runs", "0"], "0"),
    ] {
        let finished = run(&folder, arguments);
        assert!(finished.failed_with(2).contains(expected), "{arguments:?}: no {expected:?} in {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
