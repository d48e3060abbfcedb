//! Each rule of `apis.json` against its sample, the bounds, and the page that shows the table.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell_schema::{
    ApiRule, ApiWarning, ApiWarnings, ListedDefinition, PORTABLE_INTEGER_MAX, SchemaForms, SchemaUse, ShownParts,
    TOOL_WARNINGS_MAX, api_warnings, portable,
};

/// Places of one rule in one schema, and bytes of a pointer, at most.
const PLACES_MAX: usize = 8;
const POINTER_BYTES_MAX: usize = 256;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn table() -> Value {
    serde_json::from_str(&std::fs::read_to_string(here().join("apis.json")).unwrap()).unwrap()
}

fn rules() -> Vec<Value> {
    table()["rules"].as_array().unwrap().clone()
}

fn rule_of(row: &Value) -> ApiRule {
    serde_json::from_value(row["code"].clone()).unwrap()
}

/// The warnings about a tool that lacks nothing, with these schemas.
fn of_schemas(input: SchemaForms<'_>, output: &Value) -> ApiWarnings {
    api_warnings(&ListedDefinition {
        server: "s",
        name: "t",
        description: "Does it.",
        shown: Some(ShownParts { has_title: true, has_hints: true }),
        input,
        output: Some(SchemaForms { written: output, served: output }),
    })
}

/// The warnings about such a tool whose arguments are served in the portable form.
fn warned(written: &Value) -> ApiWarnings {
    let served = portable(written, SchemaUse::Arguments);
    of_schemas(SchemaForms { written, served: &served }, &json!({}))
}

/// The rules that arguments break as they are written, with the places.
fn in_arguments(schema: &Value) -> Vec<(ApiRule, String)> {
    let warnings = of_schemas(SchemaForms { written: schema, served: schema }, &json!({}));
    warnings.found.into_iter().map(|one| (one.rule, one.pointer)).collect()
}

/// The rules that the schema of a result breaks.
fn in_result(schema: &Value) -> Vec<ApiRule> {
    let nothing = json!({});
    let warnings = of_schemas(SchemaForms { written: &nothing, served: &nothing }, schema);
    warnings.found.into_iter().map(|one| one.rule).collect()
}

#[test]
fn the_table_has_each_rule_once_and_names_only_apis_that_it_has() {
    let table = table();
    let apis = table["apis"].as_object().unwrap();
    let mut codes = Vec::new();
    let mut named = BTreeSet::new();
    for row in rules() {
        assert_eq!(row["code"], rule_of(&row).code());
        codes.push(rule_of(&row));
        for key in row.as_object().unwrap().keys() {
            let known =
                ["code", "finds", "most", "keywords", "results", "clients", "served", "instead", "bad", "at", "good"];
            assert!(known.contains(&key.as_str()), "{key}");
        }
        let clients = row["clients"].as_array().unwrap();
        assert!(!clients.is_empty(), "{row}");
        for client in clients {
            let api = client["api"].as_str().unwrap();
            assert!(apis.contains_key(api), "{api}");
            // What any model needs is nobody's report.
            let is_reported = client["sources"].as_array().is_some_and(|sources| !sources.is_empty());
            assert!(is_reported || api == "models", "{row}");
            named.insert(api.to_owned());
        }
    }
    let last = ApiRule::NoHints;
    assert!(codes.is_sorted() && codes.len() == last as usize + 1, "{codes:?}");
    assert_eq!(named, apis.keys().cloned().collect());
    assert!(codes.iter().all(|rule| !rule.hint().is_empty()), "the host reads it, too");
    assert_eq!(rules()[0]["most"].as_i64(), Some(PORTABLE_INTEGER_MAX));
}

#[test]
fn each_rule_finds_its_sample_at_its_place_and_nothing_in_the_other() {
    for row in rules().iter().filter(|row| !row["bad"].is_null()) {
        let at = format!("/inputSchema{}", row["at"].as_str().unwrap());
        let found = in_arguments(&row["bad"]);
        assert!(found.contains(&(rule_of(row), at)), "{row}: {found:?}");
        assert_eq!(in_arguments(&row["good"]), [], "{row}");
        assert_eq!(in_result(&row["bad"]).contains(&rule_of(row)), row["results"] == true, "{row}");
    }
}

#[test]
fn what_the_served_form_avoids_is_said_with_what_clients_get() {
    for row in rules().iter().filter(|row| !row["bad"].is_null()) {
        let warnings = warned(&row["bad"]);
        let found: Vec<&ApiWarning> = warnings.found.iter().filter(|warning| warning.rule == rule_of(row)).collect();
        let [found] = found.as_slice() else { panic!("{row}: {warnings:?}") };
        let clients = row["clients"].as_array().unwrap();
        assert_eq!(found.who.len(), clients.len(), "{row}");
        let text = found.text();
        assert!(text.starts_with(row["finds"].as_str().unwrap()) && text.contains(found.who[0]), "{text}");
        assert_eq!(found.is_served, !text.contains("; clients get"), "{text}");
        let avoided = ["inexact_number", "const", "reference", "array_without_items", "irregular_pattern"];
        assert_eq!(!found.is_served, avoided.contains(&found.rule.code()), "{text}");
        assert!(found.pointer.starts_with("/inputSchema"), "{found:?}");
        assert!(!found.rule.hint().is_empty());
    }
    let recursive = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
    let found = warned(&recursive).found;
    assert_eq!(found.iter().map(|one| (one.rule, one.is_served)).collect::<Vec<_>>(), [(ApiRule::Reference, true)]);
}

#[test]
fn parts_that_are_missing_or_long_are_said_by_whom_they_concern() {
    let schema = json!({"type": "object", "properties": {}});
    let forms = SchemaForms { written: &schema, served: &schema };
    let of = |name: &str, description: &str, output: Option<SchemaForms<'_>>, shown: Option<ShownParts>| {
        let server = "acme-tools";
        let definition = ListedDefinition { server, name, description, shown, input: forms, output };
        let warnings = api_warnings(&definition);
        let said = warnings.found.iter().map(|one| (one.rule.code(), one.who.join(", "), one.pointer.clone()));
        said.map(|(code, who, pointer)| format!("{code} {who} {pointer}")).collect::<Vec<_>>()
    };
    let whole = Some(ShownParts { has_title: true, has_hints: true });
    let none = Some(ShownParts { has_title: false, has_hints: false });
    assert_eq!(of("t", "Does it.", Some(forms), whole), [""; 0]);
    assert_eq!(of(&"n".repeat(49), &"d".repeat(1_024), Some(forms), None), [""; 0]);
    assert_eq!(
        of("t", " ", None, none),
        [
            "no_output_schema code mode /outputSchema",
            "no_description any model /description",
            "no_title Anthropic's directory /title",
            "no_hints Anthropic's directory /annotations",
        ]
    );
    assert_eq!(of("t", &"ä".repeat(1_025), Some(forms), whole), ["long_description OpenAI /description"]);
    let long = of(&"n".repeat(50), &"d".repeat(2_049), Some(forms), whole);
    assert_eq!(long, ["long_description OpenAI, Claude Code /description", "long_name Cursor /name"]);
    let warning = ApiWarning {
        rule: ApiRule::LongDescription,
        who: vec!["Claude Code"],
        pointer: String::new(),
        is_served: true,
    };
    assert_eq!(warning.text(), "a long description: cut by Claude Code past 2048 characters");
}

#[test]
fn names_of_members_are_no_keywords_and_pointers_are_escaped() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "const": {"type": "string"},
        "a/b~c": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"const": 1}]}},
        "": {"type": "object", "properties": {"not": {"type": ["array"], "items": false}}, "additionalProperties": false},
    }});
    let expected = [
        (ApiRule::PropertyName, "a~1b~0c"),
        (ApiRule::PropertyName, ""),
        (ApiRule::Const, "a~1b~0c/items/anyOf/1/const"),
        (ApiRule::ArrayWithoutItems, "/properties/not"),
        (ApiRule::TypeList, "/properties/not/type"),
    ];
    assert_eq!(in_arguments(&schema), expected.map(|(rule, at)| (rule, format!("/inputSchema/properties/{at}"))));
}

#[test]
fn warnings_places_and_pointers_are_bounded_and_counted() {
    let names = (0..1_000).map(|number| (format!("{number} {}", "ä".repeat(200)), json!({"const": number})));
    let properties: Value = names.collect::<serde_json::Map<_, _>>().into();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let warnings = warned(&schema);
    assert_eq!(warnings.found.len(), 2 * PLACES_MAX);
    assert_eq!(warnings.left_out, 2 * (1_000 - PLACES_MAX));
    assert!(warnings.found.iter().all(|one| one.pointer.len() <= POINTER_BYTES_MAX), "{warnings:?}");
    assert!(warnings.found.iter().all(|one| one.pointer.ends_with('…')), "{warnings:?}");
    let all = json!({"type": ["array"], "const": 1e300, "enum": [1e300], "not": {}, "if": {}, "anyOf": [], "$ref": "#",
        "pattern": "(?=a)", "additionalProperties": true, "properties": {" ": {}}});
    let branches: Vec<Value> = (0..PLACES_MAX).map(|_| all.clone()).collect();
    let mut many = all.as_object().unwrap().clone();
    many.insert("allOf".to_owned(), branches.into());
    let many = Value::Object(many);
    let warnings = warned(&many);
    assert_eq!(warnings.found.len(), TOOL_WARNINGS_MAX);
    assert!(warnings.left_out > 0);
    let nested = |levels: usize| (0..levels).fold(json!({"type": ["null"]}), |inner, _| json!({"anyOf": [inner]}));
    let found = |levels: usize| in_arguments(&nested(levels)).len();
    assert_eq!((found(100), found(130)), (2, 1), "the deepest part is not looked at");
}

/// The page's table, between its two marks.
fn shown_table() -> String {
    let table = table();
    let mut text = String::from("| code | what it finds | who, and the reports | |\n|---|---|---|---|\n");
    for row in rules() {
        let clients: Vec<String> =
            row["clients"].as_array().unwrap().iter().map(|client| shown_client(&table, client)).collect();
        let served = row["served"].as_str().unwrap_or_default();
        let finds = row["finds"].as_str().unwrap();
        text.push_str(&format!(
            "| `{}` | {finds} | {} | {served} |\n",
            row["code"].as_str().unwrap(),
            clients.join("; ")
        ));
    }
    text
}

fn shown_client(table: &Value, client: &Value) -> String {
    let name = table["apis"][client["api"].as_str().unwrap()]["name"].as_str().unwrap();
    let past = client["past"].as_u64().map_or_else(String::new, |past| format!(" past {past} characters"));
    let sources: Vec<&str> = client["sources"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let sources = if sources.is_empty() { String::new() } else { format!(" ({})", sources.join(", ")) };
    format!("{} {name}{past}{sources}", client["does"].as_str().unwrap())
}

#[test]
fn the_page_shows_the_table() {
    let page = here().join("../docs/model-apis.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- the table of host/schema/apis.json -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- its end -->\n").unwrap();
    let marked = format!("<!-- the table of host/schema/apis.json -->\n\n{}\n<!-- its end -->\n", shown_table());
    let wanted = format!("{before}{marked}{after}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    assert!(wanted == std::fs::read_to_string(&page).unwrap(), "run UPDATE_GOLDEN=1 cargo test -p toolcell-schema");
    // A page of reference is read on a phone.
    for cell in shown_table().lines().flat_map(|line| line.split(" | ")) {
        assert!(cell.chars().count() <= 200, "{cell}");
    }
}
