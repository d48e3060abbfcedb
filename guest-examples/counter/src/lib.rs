//! `counter`: counters that are still there the next time.
//! The lesson: state between calls. Every call is a fresh instance, so what must last goes to the host's key-value store
//! (`wasi:keyvalue`), which the manifest grants and bounds.
//!
//! Holds the tools' definitions and the way to their answers; must hold no counting and no storing.

mod bindings;
mod counters;
mod storage;

use serde::{Deserialize, Serialize};
use toolkit::{CallResult, Failure, Guest, Hints, Tool};

struct CounterTools;

toolkit::export!(CounterTools);

/// What is added where the caller does not say; the schema says the same.
const BY_DEFAULT: u64 = 1;

#[derive(Deserialize)]
struct AddArguments {
    name: String,
    by: Option<u64>,
}

#[derive(Deserialize)]
struct ListArguments {
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
struct ResetArguments {
    name: String,
}

#[derive(Serialize)]
struct Listing {
    counters: Vec<counters::Counter>,
}

impl Guest for CounterTools {
    fn list_tools() -> Vec<Tool> {
        let mut add = Tool::new(
            "counter_add",
            "Counts something: adds to a counter, which begins at 0 and is kept until it is reset. Says the new value.",
            include_str!("../schemas/add.input.json"),
        )
        .title("Count on")
        .output(include_str!("../schemas/counter.output.json"));
        add.hints = Some(changes(false));
        let mut list = Tool::new(
            "counter_list",
            "Lists the counters and how far each has counted.",
            include_str!("../schemas/list.input.json"),
        )
        .title("List counters")
        .output(include_str!("../schemas/list.output.json"))
        .read_only();
        // It computes nothing: what it says depends on what was counted before.
        if let Some(hints) = &mut list.hints {
            hints.idempotent = None;
        }
        let mut reset = Tool::new(
            "counter_reset",
            "Forgets a counter, which then begins at 0 again. Says how far it had counted.",
            include_str!("../schemas/reset.input.json"),
        )
        .title("Reset a counter")
        .output(include_str!("../schemas/counter.output.json"));
        reset.hints = Some(changes(true));
        vec![add, list, reset]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "counter_add" => {
                let arguments: AddArguments = toolkit::arguments(&arguments_json)?;
                let by = arguments.by.unwrap_or(BY_DEFAULT);
                CallResult::structured(&counters::add(&mut storage()?, &arguments.name, by)?)
            }
            "counter_list" => {
                let arguments: ListArguments = toolkit::arguments(&arguments_json)?;
                let counters = counters::list(&mut storage()?, &arguments.prefix)?;
                CallResult::structured(&Listing { counters })
            }
            "counter_reset" => {
                let arguments: ResetArguments = toolkit::arguments(&arguments_json)?;
                CallResult::structured(&counters::reset(&mut storage()?, &arguments.name)?)
            }
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn changes(destructive: bool) -> Hints {
    Hints { read_only: Some(false), destructive: Some(destructive), idempotent: Some(false), open_world: Some(false) }
}

#[cfg(target_arch = "wasm32")]
fn storage() -> Result<storage::HostStorage, Failure> {
    storage::HostStorage::open()
}

/// Outside a component there is no host to keep anything.
#[cfg(not(target_arch = "wasm32"))]
fn storage() -> Result<Nowhere, Failure> {
    Err(Failure::Failed("there is no host".to_owned()))
}

#[cfg(not(target_arch = "wasm32"))]
enum Nowhere {}

#[cfg(not(target_arch = "wasm32"))]
impl storage::Storage for Nowhere {
    fn increment(&mut self, _: &str, _: u64) -> Result<u64, Failure> {
        match *self {}
    }
    fn get(&mut self, _: &str) -> Result<Option<u64>, Failure> {
        match *self {}
    }
    fn all(&mut self) -> Result<Vec<(String, u64)>, Failure> {
        match *self {}
    }
    fn delete(&mut self, _: &str) -> Result<(), Failure> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::{CounterTools, Guest as _};
    use serde_json::Value;

    #[test]
    fn every_schema_is_one() {
        for tool in CounterTools::list_tools() {
            for schema in [Some(&tool.input_schema_json), tool.output_schema_json.as_ref()].into_iter().flatten() {
                let schema: Value = serde_json::from_str(schema).unwrap();
                assert_eq!(schema["type"], "object", "{}", tool.name);
                assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            }
        }
    }

    #[test]
    fn an_unknown_tool_is_said_to_be_unknown() {
        let failure = CounterTools::call_tool("count".to_owned(), "{}".to_owned()).unwrap_err();
        assert_eq!(failure.message(), "this component has no tool named \"count\"");
    }
}
