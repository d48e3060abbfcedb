//! A thousand tools and the questions of `tests/search`: how often a question finds its tool among
//! the first five, and how large the list is before and after.

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{SearchBounds, SearchError, ToolGroups};
use crate::revision::Revision;
use crate::tool::{McpTool, ToolDefinition, ToolList};

const TOOLS: &str = include_str!("../../../tests/search/tools.txt");
const QUESTIONS: &str = include_str!("../../../tests/search/questions.txt");

/// As many tools as the figures are of.
const TOOLS_IN_ALL: usize = 1_000;

/// Further tools are made of these: every service has the same objects and verbs.
const SERVICES: [&str; 11] = [
    "Salesforce",
    "HubSpot",
    "Zoho",
    "NetSuite",
    "Odoo",
    "Dynamics",
    "Pipedrive",
    "Freshdesk",
    "Zendesk",
    "Intercom",
    "Workday",
];
const OBJECTS: [[&str; 2]; 16] = [
    ["contact", "contacts"],
    ["account", "accounts"],
    ["lead", "leads"],
    ["opportunity", "opportunities"],
    ["campaign", "campaigns"],
    ["ticket", "tickets"],
    ["product", "products"],
    ["order", "orders"],
    ["quote", "quotes"],
    ["contract", "contracts"],
    ["invoice", "invoices"],
    ["vendor", "vendors"],
    ["shipment", "shipments"],
    ["employee", "employees"],
    ["timesheet", "timesheets"],
    ["asset", "assets"],
];

fn tool(name: &str, description: &str, parameters: &[(&str, &str)]) -> Arc<McpTool> {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!({"type": "string", "description": text})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    Arc::new(McpTool::compile(ToolDefinition::new(name, description, schema)).unwrap())
}

fn written() -> impl Iterator<Item = Arc<McpTool>> {
    TOOLS.lines().map(|line| {
        let [name, description, parameters] = line.splitn(3, " | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let parameters: Vec<(&str, &str)> =
            parameters.split("; ").filter_map(|parameter| parameter.split_once(": ")).collect();
        tool(name.trim(), description, &parameters)
    })
}

fn made() -> impl Iterator<Item = Arc<McpTool>> {
    SERVICES.into_iter().flat_map(|service| {
        OBJECTS.into_iter().flat_map(move |[one, many]| {
            let id = ("id", "Identifier of the record.");
            let fields = ("fields", "Values by field name.");
            [
                (
                    "list",
                    many,
                    format!("Lists {many} in {service}, newest first."),
                    vec![("filter", "Conditions."), ("limit", "Most records.")],
                ),
                ("get", one, format!("Returns one {one} of {service} with all fields."), vec![id]),
                ("create", one, format!("Adds a new {one} to {service}."), vec![fields]),
                ("update", one, format!("Changes fields of a {one} in {service}."), vec![id, fields]),
                ("delete", one, format!("Deletes a {one} from {service} for good."), vec![id]),
            ]
            .map(|(verb, object, text, parameters)| {
                tool(&format!("{}_{verb}_{object}", service.to_lowercase()), &text, &parameters)
            })
        })
    })
}

fn thousand() -> ToolList {
    ToolList::new(1, written().chain(made()).take(TOOLS_IN_ALL).collect()).unwrap()
}

fn searched(list: ToolList) -> ToolList {
    list.searched(SearchBounds::default(), |_| false).unwrap()
}

fn found(list: &ToolList, query: &str, limit: usize) -> Vec<String> {
    let arguments = RawValue::from_string(json!({"query": query, "limit": limit}).to_string()).unwrap();
    let answer = list.find_tools(&arguments, Revision::V2026_07_28);
    let value: Value = serde_json::from_str(answer.structured.unwrap().get()).unwrap();
    value["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_client_learns_which_found_tools_run_as_tasks() {
    let plain = tool("count", "Counts sheep.", &[]);
    let long = tool("sleep", "Sleeps and counts sheep.", &[]);
    let long = Arc::new(Arc::try_unwrap(long).unwrap().in_tasks(crate::task::TaskPlan::Always));
    let support = |list: &ToolList, revision: Revision| {
        let page = list.page(crate::tool::ListedEntries::Tools, revision, None, usize::MAX).unwrap();
        let listed: Vec<Value> = serde_json::from_str(&format!("[{}]", str::from_utf8(&page.json).unwrap())).unwrap();
        let arguments = RawValue::from_string(r#"{"query":"sheep"}"#.to_owned()).unwrap();
        let found = list.find_tools(&arguments, revision).structured.unwrap();
        let found: Value = serde_json::from_str(found.get()).unwrap();
        let of = |tools: &[Value]| -> Map<String, Value> {
            let supported = tools.iter().filter(|tool| !tool["execution"].is_null());
            let named = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
            supported.map(|tool| (named(tool), tool["execution"]["taskSupport"].clone())).collect()
        };
        Value::from(vec![of(&listed), of(found["tools"].as_array().unwrap())])
    };
    let with = searched(ToolList::new(1, vec![Arc::clone(&plain), Arc::clone(&long)]).unwrap());
    let both = json!([{"call_tool": "optional"}, {"sleep": "required"}]);
    assert_eq!(support(&with, Revision::V2025_11_25), both);
    assert_eq!(support(&with, Revision::V2025_06_18), json!([{}, {}]));
    assert_eq!(support(&with, Revision::V2026_07_28), json!([{}, {}]), "the server decides");
    assert_eq!(support(&with.part(|place| place == 0), Revision::V2025_11_25), json!([{}, {}]), "the part has none");
    assert_eq!(support(&searched(ToolList::new(1, vec![plain]).unwrap()), Revision::V2025_11_25), json!([{}, {}]));
}

/// `SEARCH_FIGURES=FOLDER` writes both lists there, for counting their tokens.
#[test]
fn most_questions_find_their_tool_among_a_thousand() {
    let plain = thousand();
    let before =
        plain.page(crate::tool::ListedEntries::Tools, Revision::V2026_07_28, None, usize::MAX).unwrap().json.to_vec();
    let began = Instant::now();
    let list = searched(plain);
    let built = began.elapsed();
    let after =
        list.page(crate::tool::ListedEntries::Tools, Revision::V2026_07_28, None, usize::MAX).unwrap().json.to_vec();
    let mut first = 0;
    let mut in_five = 0;
    let mut questions = 0;
    let mut answers = 0;
    let began = Instant::now();
    for line in QUESTIONS.lines() {
        let (question, meant) = line.split_once(" | ").unwrap();
        let meant: Vec<&str> = meant.split(", ").collect();
        assert!(meant.iter().all(|name| list.find(name).is_some()), "{line}");
        let found = found(&list, question, 5);
        let place = found.iter().position(|name| meant.contains(&name.as_str()));
        questions += 1;
        first += usize::from(place == Some(0));
        in_five += usize::from(place.is_some());
        answers += found.len();
        if place.is_none() {
            println!("missed: {question}: {meant:?} not in {found:?}");
        }
    }
    let took = began.elapsed() / questions;
    println!("{in_five} of {questions} among five, {first} first; {answers} definitions");
    println!("{} bytes before, {} after; indexed in {built:?}, {took:?} a question", before.len(), after.len());
    if let Some(folder) = std::env::var_os("SEARCH_FIGURES") {
        for (name, json) in [("before.json", &before), ("after.json", &after)] {
            std::fs::write(std::path::Path::new(&folder).join(name), json).unwrap();
        }
    }
    assert!(questions >= 60 && list.tools().len() == TOOLS_IN_ALL);
    assert!(after.len() * 100 < before.len(), "{} of {}", after.len(), before.len());
    assert!(in_five >= IN_FIVE_LEAST, "{in_five} of {questions}");
}

/// Measured: a change of the search for the worse shows here.
const IN_FIVE_LEAST: usize = 54;

#[test]
fn a_part_of_a_list_is_searched_as_if_it_were_all_there_is() {
    let tools: Vec<Arc<McpTool>> = written().collect();
    let whole = searched(ToolList::new(1, tools.clone()).unwrap());
    let kept = |place: usize| place.is_multiple_of(3);
    let part = whole.part(kept);
    let alone = tools.iter().enumerate().filter(|(place, _)| kept(*place)).map(|(_, tool)| Arc::clone(tool));
    let alone = searched(ToolList::new(1, alone.collect()).unwrap());
    for line in QUESTIONS.lines() {
        let question = line.split(" | ").next().unwrap();
        assert_eq!(found(&part, question, 20), found(&alone, question, 20), "{question}");
    }
}

#[test]
fn tools_for_views_alone_are_neither_found_nor_counted_nor_described() {
    let mut for_views = ToolDefinition::new("redraw", "Draws the chart again.", json!({"type": "object"}));
    for_views.meta = json!({"ui": {"visibility": ["app"]}}).as_object().unwrap().clone();
    let for_views = Arc::new(McpTool::compile(for_views).unwrap());
    let all = vec![tool("chart", "Draws a chart.", &[]), for_views, tool("run_code", "x", &[])];
    let groups = ToolGroups { components: vec![Arc::from("charts"); all.len()], text: None };
    let bounds = SearchBounds::default();
    let list = ToolList::new(1, all).unwrap().searched_in_groups(bounds, |_| false, groups.clone()).unwrap();
    let list = list.scripted(bounds, |_| true, groups).unwrap();
    for list in [list.part(|_| true), list] {
        assert_eq!(found(&list, "draws a chart", 5), ["chart"]);
        let find = &list.shown().tools()[0].definition().description;
        assert!(find.contains("There are 2: charts (2, such as chart)."), "{find}");
        let arguments = RawValue::from_string(json!({"names": ["redraw"]}).to_string()).unwrap();
        let answer = list.answer_own("describe_tools", &arguments, Revision::V2026_07_28);
        let said = format!("{:?}", answer.content);
        assert!(said.contains("there is no tool redraw"), "{said}");
    }
}

#[test]
fn the_hosts_own_names_are_taken() {
    for name in ["find_tools", "call_tool"] {
        let list = ToolList::new(1, vec![tool(name, "x", &[])]).unwrap();
        let refused = list.searched(SearchBounds::default(), |_| true).err();
        assert_eq!(refused, Some(SearchError::Taken { names: vec![name.to_owned()] }));
    }
}

#[test]
fn a_query_of_many_words_costs_no_more_than_the_first_32() {
    let list = searched(thousand());
    let words: Vec<String> = (0..32).map(|number| format!("w{number}")).collect();
    assert!(found(&list, &format!("{} weather", words.join(" ")), 5).is_empty());
    assert!(!found(&list, &format!("{} weather", words[..31].join(" ")), 5).is_empty());
}

#[test]
fn texts_past_the_bound_are_not_searched() {
    let text = format!("{} zeppelin", "word ".repeat(20));
    let bounds = SearchBounds { text_bytes_max: 110, ..SearchBounds::default() };
    for (bounds, expected) in
        [(SearchBounds::default(), 1), (bounds, 1), (SearchBounds { text_bytes_max: 100, ..bounds }, 0)]
    {
        let list = ToolList::new(1, vec![tool("t", &text, &[])]).unwrap().searched(bounds, |_| false).unwrap();
        assert_eq!(found(&list, "zeppelin", 5).len(), expected, "{bounds:?}");
    }
}
