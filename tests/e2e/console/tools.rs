//! The view of tools: a list of a thousand, and of one tool what it reaches, its limits with what
//! calls used of them, its definition, and the result of trying it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of, telling_usage};

use super::{Operator, markup_of};

/// The text of an element's content: without marks, and with entities as the characters they name.
fn text_of(markup: &str) -> String {
    let without_marks: String = markup
        .split('<')
        .enumerate()
        .map(|(place, part)| if place == 0 { part } else { part.split_once('>').unwrap().1 })
        .collect();
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    named.into_iter().fold(without_marks, |text, (entity, letter)| text.replace(entity, letter))
}

/// The text of the element that begins with these words, up to the end of an element of this name.
fn element(page: &str, beginning: &str, name: &str) -> String {
    let rest = page.split_once(beginning).unwrap_or_else(|| panic!("no {beginning}: {page}")).1;
    text_of(rest.split_once('>').unwrap().1.split_once(&format!("</{name}>")).unwrap().0)
}

/// The rows of the table with this caption, as the texts of their cells.
pub(super) fn rows(page: &str, caption: &str) -> Vec<Vec<String>> {
    let table = page.split_once(&format!("<caption>{caption}</caption>")).unwrap_or_else(|| panic!("{page}")).1;
    let body = table.split_once("<tbody").unwrap().1.split_once("</tbody>").unwrap().0;
    let cells =
        |row: &str| row.split("<div>").skip(1).map(|cell| text_of(cell.split("</div>").next().unwrap())).collect();
    body.split("<tr").skip(1).map(cells).collect()
}

/// The cells of one limit: its key and value, three of its use, the share, the proposal, the place.
fn limit(page: &str, key: &str) -> Vec<String> {
    let rows = rows(page, "Limits, and what calls used of them");
    rows.into_iter().find(|row| row[0] == key).unwrap_or_else(|| panic!("no row {key}: {page}"))
}

/// A number in the form of the page: three digits of the largest unit that it reaches.
pub(super) fn shown(number: u64, step: u64, units: &[&str]) -> String {
    let power = (0_u32..).take_while(|power| number >= step.pow(*power)).last().unwrap_or_default();
    let scale = step.pow(power);
    let unit = units[power as usize];
    let hundredths = number % scale * 100 / scale;
    match number / scale {
        _ if power == 0 => format!("{number}{}{unit}", if unit.is_empty() { "" } else { " " }),
        whole @ 0..10 => format!("{whole}.{hundredths:02} {unit}"),
        whole @ 10..100 => format!("{whole}.{} {unit}", hundredths / 10),
        whole => format!("{whole} {unit}"),
    }
}

fn bytes(number: u64) -> String {
    shown(number, 1_024, &["B", "KiB", "MiB", "GiB"])
}

fn fuel(number: u64) -> String {
    shown(number, 1_000, &["", "k", "M", "G"])
}

/// The lines of a proposal, as keys and values.
fn proposed(lines: &str) -> Vec<(String, String)> {
    let setting = |line: &str| {
        let (key, value) = line.split("  #").next().unwrap().split_once(" = ")?;
        Some((key.to_owned(), value.trim().to_owned()))
    };
    lines.lines().filter_map(setting).collect()
}

/// The number of the line of a manifest that begins so.
fn line_of(manifest: &str, beginning: &str) -> usize {
    1 + manifest.lines().position(|line| line.starts_with(beginning)).unwrap_or_else(|| panic!("no {beginning}"))
}

/// The lines for the manifest that the page proposes.
fn proposal_of(page: &str) -> String {
    element(page, "<pre class=\"block\" id=\"proposal\"", "pre")
}

#[test]
fn limits_are_shown_with_what_calls_used_and_what_calibrate_would_say() {
    let mut operator = Operator::of(&telling_usage(&manifest_of(&["hungry"])));
    operator.host.initialize("2025-11-25");
    let page = operator.page("/tools/grow_and_settle");
    assert!(page.contains("No call ran since the server started."), "{page}");
    assert!(limit(&page, "fuel")[2..7].iter().all(|cell| cell == "–none"), "{page}");
    let samples: Vec<Value> = (1..=10).rev().map(|mib| json!({"mib": mib})).collect();
    let answers: Vec<Answer> =
        samples.iter().map(|sample| operator.host.call("grow_and_settle", sample.clone())).collect();
    let page = operator.page("/tools/grow_and_settle");
    for (key, usage, show) in [("fuel", "fuel", fuel as fn(u64) -> String), ("memory", "memory_peak_bytes", bytes)] {
        let mut all: Vec<u64> = answers.iter().map(|answer| answer.used(usage)).collect();
        all.sort_unstable();
        let expected = [all[4], all[9], all[9]].map(show);
        assert_eq!(limit(&page, key)[2..5], expected, "{key}: {all:?}");
    }
    let most = answers.iter().map(|answer| answer.used("memory_peak_bytes")).max().unwrap();
    assert_eq!(limit(&page, "memory")[5], format!("{} %", most * 100 / (16 << 20)));
    let lines = proposal_of(&page);
    let samples: Vec<String> = samples.iter().map(Value::to_string).collect();
    let arguments = ["calibrate", "grow_and_settle", "--with"].into_iter();
    let arguments: Vec<&str> = arguments.chain(samples.iter().map(String::as_str)).collect();
    let printed = Command::in_folder(operator.host.folder(), &arguments).run();
    // Time is that of other calls, on a machine that others use.
    let fixed = |lines: &str| proposed(lines).into_iter().filter(|(key, _)| key != "deadline").collect::<Vec<_>>();
    assert_eq!(fixed(&lines), fixed(printed.succeeded()));
    assert_eq!(proposed(&lines).len(), 7, "{lines}");
    assert!(lines.starts_with("# From 10 calls; next to each limit: "), "{lines}");
    assert!(lines.contains("\n[components.hungry.tools.grow_and_settle.limits]\n"), "{lines}");
}

#[test]
fn a_call_that_meets_a_limit_is_use_and_no_evidence_for_a_proposal() {
    let mut operator = Operator::of(&telling_usage(&manifest_of(&["hungry"])));
    operator.host.initialize("2025-11-25");
    let answered = operator.host.call("long_text", json!({"bytes": 10}));
    let refused = operator.host.call("long_text", json!({"bytes": 70_000}));
    assert!(refused.is_error(), "{refused:?}");
    let page = operator.page("/tools/long_text");
    let words = "of the newest 2 calls that ran, the most is of all 2 since the server started.";
    assert!(page.contains(words) && page.contains("for the 1 of them that were answered"), "{page}");
    let cells = limit(&page, "fuel");
    assert_eq!(cells[2..5], [&answered, &refused, &refused].map(|answer| fuel(answer.used("fuel"))));
    let output = proposed(&proposal_of(&page)).into_iter().find(|(key, _)| key == "output");
    assert_eq!(output, Some(("output".to_owned(), "\"4KiB\"".to_owned())));
}

#[test]
fn use_is_kept_across_reloads_and_a_limit_says_the_line_that_sets_it() {
    let manifest = format!("{}\n[components.hungry.limits]\nqueue = 7\n", manifest_of(&["hungry"]));
    let mut operator = Operator::of(&manifest);
    operator.host.initialize("2025-11-25");
    let _ = operator.host.call("long_text", json!({"bytes": 10}));
    let place = |page: &str, key: &str| limit(page, key)[7].rsplit_once('/').map_or("", |(_, place)| place).to_owned();
    let page = operator.page("/tools/long_text");
    let at = |beginning, table: &str| format!("toolcell.toml:{} {table}", line_of(&manifest, beginning));
    assert_eq!(place(&page, "fuel"), at("fuel = ", "defaults.limits"));
    assert_eq!(place(&page, "queue"), at("queue = ", "components.hungry.limits"));
    assert_eq!(limit(&page, "handles")[7], "default");
    assert_eq!(limit(&page, "rate")[1], "1,000,000/s");
    assert_eq!(limit(&page, "completion_rate")[1], "20/s");
    let served = operator.host.folder().read("toolcell.toml");
    let more = format!("{served}\n[components.hungry.tools.long_text.limits]\nqueue = 8\n");
    operator.host.folder().write("toolcell.toml", &more);
    operator.host.serves_generation(2);
    let page = operator.page("/tools/long_text");
    assert_eq!(limit(&page, "queue")[1], "8");
    let line = format!("toolcell.toml:{} components.hungry.tools.long_text.limits", more.lines().count());
    assert_eq!(place(&page, "queue"), line);
    assert!(page.contains("of the newest 1 calls that ran"), "{page}");
    assert!(page.contains("The manifest has a table for this tool already"), "{page}");
    operator.host.folder().write("toolcell.toml", "what is not a manifest");
    let page = operator.page("/tools/long_text");
    assert_eq!(limit(&page, "queue")[7], "not known", "the file is not what is served");
}

#[test]
fn what_a_tool_reaches_is_drawn_with_the_line_that_grants_it() {
    let manifest = format!(
        "{}\n[components.reach_http.network]\nhttp = [\n    \"GET https://api.example.com/v1/*\",\n    \"POST https://log.example.com/\",\n]\n\
         [components.reach_http.secrets]\nKEY = {{ from = \"file:key\", header = \"X-Key\", for = \"https://api.example.com\" }}\n\
         [components.reach_files.filesystem]\n\"/data\" = {{ path = \"data\" }}\n\"/out\" = {{ path = \"out\", access = \"write\" }}\n\
         [components.reach_state.keyvalue]\nquota = \"16KiB\"\n",
        manifest_of(&["reach_http", "reach_files", "reach_state", "good"])
    );
    let folder = Folder::with_manifest(&format!("{manifest}\n[console]\ndecide = true\n"));
    folder.write("key", "k3y-of-the-test");
    fs::set_permissions(folder.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    ["data", "out"].iter().for_each(|name| folder.make(name));
    let operator = Operator::deciding(folder, &[]);
    for (tool, expected) in [
        (
            "http",
            vec![
                ("host", "GET https://api.example.com/v1/*", "http", "    \"GET https://api"),
                ("host", "POST https://log.example.com/", "http", "    \"POST https://log"),
                ("secret", "KEY from file:key, as x-key of https://api.example.com", "secret", "KEY = "),
            ],
        ),
        (
            "read",
            vec![
                ("folder", "read /data from \"data\"", "filesystem", "\"/data\""),
                ("folder", "write /out from \"out\", 64MiB in 1_000 files", "filesystem", "\"/out\""),
            ],
        ),
        ("keyvalue", vec![("state", "16KiB in 1_000 entries", "keyvalue", "[components.reach_state.keyvalue]")]),
        ("echo", vec![]),
    ] {
        let page = operator.page(&format!("/tools/{tool}"));
        assert_eq!(page.contains("It reaches nothing outside its sandbox"), expected.is_empty(), "{tool}: {page}");
        if expected.is_empty() {
            continue;
        }
        let drawn = page.split_once("<figure class=\"reach\"").unwrap().1.split_once("</figure>").unwrap().0;
        let mut shown = rows(&page, "Grants");
        shown.iter_mut().for_each(|row| row[3] = row[3].rsplit_once('/').unwrap().1.to_owned());
        let lines = expected.iter().map(|(.., beginning)| line_of(&manifest, beginning));
        let table = expected.iter().zip(lines.clone()).map(|((kind, target, how, _), line)| {
            [*target, kind, how, &format!("toolcell.toml:{line} {how}")].map(str::to_owned).to_vec()
        });
        assert_eq!(shown, table.collect::<Vec<_>>(), "{tool}");
        for line in lines {
            assert!(drawn.contains(&format!(">toolcell.toml:{line}</text>")), "{tool}: no line {line} in {drawn}");
        }
        assert!(drawn.contains(&format!("text-anchor=\"middle\">{tool}</text>")), "{drawn}");
    }
}

#[test]
fn a_definition_is_shown_as_a_client_gets_it() {
    let operator = Operator::of(&manifest_of(&["good"]));
    let mut client = TestHost::serving(&["good"]);
    let listed = client.list();
    assert!(listed.len() > 5, "{listed:?}");
    for definition in listed {
        let page = operator.page(&format!("/tools/{}", definition["name"].as_str().unwrap()));
        let shown = element(&page, "aria-label=\"Definition of the tool\"", "pre");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), definition);
    }
}

/// A manifest with a thousand tools of one component, with descriptions as long as they come.
fn a_thousand() -> String {
    let served = "version = 1\n[console]\ndecide = true\n[components.many]\nsource = \"components/program.wasm\"\n";
    let tool = |number: u32| {
        let description = format!("Number {number} of many. {}", "It says a lot. ".repeat(40));
        format!("[components.many.tools.tool_{number:04}]\nargs = [\"show\"]\ndescription = \"{description}\"\n")
    };
    served.to_owned() + &(1..=1_000).map(tool).collect::<String>()
}

#[test]
fn a_thousand_tools_are_searched_and_paged_through() {
    /// Bytes that a page of the list may have, however many tools there are.
    const PAGE_BYTES: usize = 100_000;
    let operator = Operator::deciding(Folder::with_manifest(&a_thousand()), &[]);
    let named = |page: &str| rows(page, "Tools").into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let mut path = "/tools".to_owned();
    let mut all = Vec::new();
    for number in 1..=20 {
        let page = operator.page(&path);
        assert!(page.contains("1,000 tools") && page.contains(&format!("Page {number} of 20")), "{path}: {page}");
        assert!(page.len() < PAGE_BYTES, "{path} has {} bytes", page.len());
        all.extend(named(&page));
        let next = page.split_once("rel=\"next\"").map(|(before, _)| before.rsplit_once("href=\"").unwrap().1);
        match next {
            Some(next) => path = next.split('"').next().unwrap().replace("&amp;", "&"),
            None => assert_eq!(number, 20, "the last page has no further one"),
        }
    }
    let expected: Vec<String> = (1..=1_000).map(|number| format!("tool_{number:04}")).collect();
    assert_eq!(all, expected, "each tool once, in the order of the list");
    let found = operator.page("/tools?q=TOOL_09");
    assert!(found.contains("100 of 1,000 tools match") && found.contains("Page 1 of 2"), "{found}");
    assert_eq!(named(&found).first().map(String::as_str), Some("tool_0900"));
    let one = operator.page("/tools?q=number%20777%20of");
    assert_eq!(named(&one), ["tool_0777"], "{one}");
    let none = operator.page("/tools?q=weather");
    assert!(none.contains("0 of 1,000 tools match") && none.contains("No tool matches."), "{none}");
    for (page, shown) in [("99", "Page 20 of 20"), ("18446744073709551615", "Page 20 of 20"), ("0", "Page 1 of 20")] {
        assert!(operator.page(&format!("/tools?page={page}")).contains(shown), "{page}");
    }
    assert!(operator.page("/tools/tool_1000").contains("Number 1000 of many."));
}

/// A console that serves the example `chart`, and a program whose tool draws in SVG.
fn drawing() -> Operator {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>";
    let manifest = format!(
        "version = 1\n[console]\ndecide = true\n[components.chart]\nsource = \"chart.wasm\"\n\
         [components.p]\nsource = \"components/program.wasm\"\n[components.p.tools.svg]\ndescription = \"Draws.\"\n\
         args = [\"say\", \"{svg}\"]\noutput = {{ type = \"image/svg+xml\" }}\n"
    );
    let folder = Folder::with_manifest(&manifest);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples/components/chart.wasm");
    fs::copy(&built, folder.path().join("chart.wasm"))
        .unwrap_or_else(|error| panic!("{}: {error}; run `make guests`", built.display()));
    Operator::deciding(folder, &[])
}

#[test]
fn a_tool_that_draws_is_tried_from_its_form_and_the_picture_is_shown() {
    let operator = drawing();
    let page = operator.page("/tools/chart");
    let form = page.split_once("action=\"/tools/chart/try\"").unwrap().1.split_once("</form>").unwrap().0;
    let field = |argument: &str| {
        let label = format!(">{argument}<");
        let before = form.split_once(&label).unwrap_or_else(|| panic!("no field for {argument}: {form}")).0;
        before.rsplit_once("for=\"").unwrap().1.split('"').next().unwrap().to_owned()
    };
    let series = "%5B%7B%22values%22%3A%5B1%2C3%2C2%5D%7D%5D";
    let fields = format!("{}=0&{}={series}", field("kind"), field("series"));
    let tried = operator.ask(&operator.form("/tools/chart/try", &fields));
    let page = markup_of(&tried);
    let picture = page.split_once("<img src=\"data:image/png;base64,").unwrap_or_else(|| panic!("{page}")).1;
    let picture = picture.split('"').next().unwrap();
    // The signature of PNG, and the name of its first chunk.
    assert!(picture.starts_with("iVBORw0KGgoAAAANSUhEUg") && picture.len() > 1_000, "{picture}");
    assert_eq!(operator.decided("try")["detail"], "ok");

    let tried = operator.ask(&operator.form("/tools/svg/try", ""));
    let page = markup_of(&tried);
    assert!(page.contains("A picture, <bdi>image/svg+xml</bdi>"), "{page}");
    assert!(page.contains("pictures of this type are not shown"), "{page}");
    let result = page.split_once("id=\"result\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(!result.contains("<img") && !result.contains("<svg") && !page.contains("data:image/svg"), "{result}");
}
