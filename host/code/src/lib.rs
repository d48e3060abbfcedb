//! The engine of code mode: a component whose tool runs a script, with QuickJS inside. A script can
//! call tools, and each call is one of the host's: nothing here decides on anything.
//!
//! Must not hold: the meaning of a tool's name, rights, or limits other than those of the console.

mod calls;
mod outcome;
mod script;

use serde_json::Value;
use toolkit::{CallResult, Failure, Guest, Tool};

use outcome::Outcome;

struct Code;

toolkit::export!(Code);

/// The name of the tool.
const RUN_CODE: &str = "run_code";

const DESCRIPTION: &str = "Runs a JavaScript program that calls tools of this server. Use it where a task takes \
     several calls, or where only a part of what tools return matters: the program's result is all that comes back.\n\n\
     `await tools.NAME(arguments)` calls a tool. It gives the tool's structured result, else its text, and throws an \
     Error with the tool's words where it fails. Calls in one `Promise.all` run at once. Await every call: a \
     program that ends before one was made fails. `tools.find(words)` finds tools, `tools.describe(name)` gives their \
     schemas. `input` is the value passed with the program, `console.log` is returned with the result. End with \
     `return VALUE`. There are no other imports, no network, files or timers.";

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "code": {"type": "string", "minLength": 1, "description": "The body of an async function, in JavaScript. Example: const { months } = await tools.weather_normals({ city: input.city }); return months[0].high;"},
    "input": {"description": "A value that the program sees as `input`."}
  },
  "required": ["code"],
  "additionalProperties": false
}"#;

/// The host sets `kept`: what is too long for an answer, it keeps.
const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "result": {"description": "What the program returned."},
    "console": {"type": "string", "description": "What it wrote with console.log."},
    "kept": {
      "type": "object",
      "description": "What is too long for an answer, and is read in pages with resources/read: `uri` is the first, and the others end with their number. The result is null then.",
      "properties": {
        "result": {
          "type": "object",
          "properties": {"uri": {"type": "string"}, "pages": {"type": "integer"}, "bytes": {"type": "integer"}},
          "required": ["uri", "pages", "bytes"]
        },
        "console": {
          "type": "object",
          "properties": {"uri": {"type": "string"}, "pages": {"type": "integer"}, "bytes": {"type": "integer"}},
          "required": ["uri", "pages", "bytes"]
        }
      }
    }
  },
  "required": ["result"]
}"#;

impl Guest for Code {
    fn list_tools() -> Vec<Tool> {
        vec![Tool::new(RUN_CODE, DESCRIPTION, INPUT).title("Run code").output(OUTPUT)]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        if name != RUN_CODE {
            return Err(Failure::unknown_tool(&name));
        }
        let arguments: Value = toolkit::arguments(&arguments_json)?;
        let code = arguments.get("code").and_then(Value::as_str).unwrap_or_default();
        let input = arguments.get("input").map_or_else(|| "null".to_owned(), Value::to_string);
        Ok(script::run(code, &input).map_or_else(|problem| Outcome::broken(&problem), |outcome| outcome).result())
    }
}
