//! What `toolcell add` embeds: lines of JSON. The first names the server; then each tool has a line
//! for its requests, and behind all of them one for its definition. A call reads its own lines alone.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_bridge_lines::{BridgeServer, FORMAT, Head, Hints, REQUEST};
use toolkit::{Failure, Tool};

use crate::icons::Icons;

/// Begins the line of a tool's definition.
const DEFINITION: &str = "{\"name\":\"";

pub struct Definitions<'a> {
    server: BridgeServer,
    /// All lines but the first.
    lines: &'a str,
}

#[derive(Deserialize)]
struct Definition<'a> {
    name: String,
    title: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    hints: Hints,
    #[serde(default)]
    icons: Icons,
}

impl<'a> Definitions<'a> {
    pub fn of(bytes: &'a [u8]) -> Result<Self, Failure> {
        let none = || Failure::Failed("this component has no definitions: toolcell add makes one that has".to_owned());
        let text = std::str::from_utf8(bytes).map_err(|_| none())?;
        let (head, lines) = text.split_once('\n').ok_or_else(none)?;
        let head: Head = serde_json::from_str(head).map_err(|_| none())?;
        if head.format != FORMAT {
            return Err(Failure::Failed(
                "its definitions are of another version: add its document or server again".to_owned(),
            ));
        }
        Ok(Self { server: head.server, lines })
    }

    pub const fn server(&self) -> &BridgeServer {
        &self.server
    }

    pub fn tools(&self) -> Vec<Tool> {
        let lines = self.lines.lines().filter(|line| !line.starts_with(REQUEST));
        lines.filter_map(|line| serde_json::from_str::<Definition<'_>>(line).ok()).map(Definition::tool).collect()
    }

    /// What a call of this tool asks for.
    pub fn request<T: Deserialize<'a>>(&self, tool: &str) -> Result<T, Failure> {
        let is_its = |line: &&str| {
            line.strip_prefix(REQUEST)
                .and_then(|rest| rest.strip_prefix(tool))
                .is_some_and(|rest| rest.starts_with('"'))
        };
        let mut lines = self.lines.lines().take_while(|line| line.starts_with(REQUEST));
        let line = lines.find(is_its).ok_or_else(|| Failure::unknown_tool(tool))?;
        serde_json::from_str(line).map_err(|error| Failure::Failed(format!("its definition is broken: {error}")))
    }

    /// The schema of a tool's structured results, if it has one.
    pub fn output(&self, tool: &str) -> Option<Value> {
        let beginning = format!("{DEFINITION}{tool}\"");
        let line = self.lines.lines().find(|line| line.starts_with(&beginning))?;
        let definition: Definition<'_> = serde_json::from_str(line).ok()?;
        serde_json::from_str(definition.output?.get()).ok()
    }
}

impl Definition<'_> {
    fn tool(self) -> Tool {
        let Hints { read_only, destructive, idempotent, open_world } = self.hints;
        Tool {
            title: self.title,
            output_schema_json: self.output.map(|output| output.get().to_owned()),
            hints: Some(toolkit::Hints { read_only, destructive, idempotent, open_world }),
            icons: self.icons.0,
            ..Tool::new(&self.name, &self.description, self.input.get())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_bridge_lines::{OutputForm, Request};

    use super::*;

    const LINES: &str = concat!(
        r#"{"format":1,"origin":"https://api.example.com"}"#,
        "\n",
        r#"{"tool":"a","method":"GET","path":"/a","parameters":[],"accept":"*/*","output":"free"}"#,
        "\n",
        r#"{"tool":"ab","method":"PUT","path":"/ab","parameters":[],"accept":"*/*","output":"object"}"#,
        "\n",
        r#"{"name":"a","description":"A.","input":{"type":"object"},"hints":{"read_only":true,"destructive":false,"idempotent":true,"open_world":true}}"#,
        "\n",
        r#"{"name":"ab","title":"AB","description":"B.","input":{},"output":{"type":"object"},"hints":{"read_only":false,"idempotent":true}}"#,
        "\n",
    );

    #[test]
    fn a_tool_has_its_own_line_and_its_definition() {
        let definitions = Definitions::of(LINES.as_bytes()).unwrap();
        assert_eq!(definitions.server(), &BridgeServer::Origin("https://api.example.com".to_owned()));
        let request: Request = definitions.request("ab").unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str(), request.output),
            ("PUT", "/ab", OutputForm::Object)
        );
        assert_eq!(
            definitions.request::<Request>("b").unwrap_err().message(),
            "this component has no tool named \"b\""
        );
        assert_eq!(definitions.output("ab"), Some(serde_json::json!({"type": "object"})));
        assert_eq!((definitions.output("a"), definitions.output("b")), (None, None));
        let tools = definitions.tools();
        assert_eq!(tools.len(), 2);
        let [first, second] = <[Tool; 2]>::try_from(tools).unwrap();
        assert_eq!((first.name.as_str(), first.input_schema_json.as_str()), ("a", r#"{"type":"object"}"#));
        assert_eq!((first.output_schema_json, first.hints.unwrap().destructive), (None, Some(false)));
        assert_eq!((second.title.as_deref(), second.hints.unwrap().destructive), (Some("AB"), None));
        assert_eq!(second.output_schema_json.as_deref(), Some(r#"{"type":"object"}"#));
    }

    #[test]
    fn without_definitions_there_are_no_tools() {
        for bytes in [&b""[..], b"{}\n", b"{\"format\":2,\"origin\":\"\"}\n", b"\xff\n"] {
            assert!(Definitions::of(bytes).is_err());
        }
    }
}
