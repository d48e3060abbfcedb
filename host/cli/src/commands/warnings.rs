//! Warnings about tools that load, but that some model API or client refuses, truncates or ignores
//! in part: for people and as JSON.
use serde_json::{Value, json};
use toolcell_mcp::{ServedCatalog as _, sanitize};
use toolcell_policy::{CODE, Style};
use toolcell_sandbox::{ShapeName, contract};
use toolcell_schema::{ApiWarning, ListedDefinition, SchemaForms, SchemaUse, ShownParts, api_warnings, portable};
use toolcell_server::catalog::Catalog;

use crate::terminal::{self, yellow};

/// Warnings of all tools; further ones are only counted, so that the JSON stays readable.
const WARNINGS_MAX: usize = 1_000;

/// Lines, or names of tools, that people are shown for one rule; `--json` has the rest.
const GROUP_LINES_MAX: usize = 10;
const GROUP_NAMES_MAX: usize = 40;

/// Warnings about the tools of a catalog or a component.
#[derive(Debug, Default)]
pub struct ToolWarnings {
    found: Vec<ToolWarning>,
    left_out: usize,
}

/// One warning, with what it is about.
#[derive(Debug)]
struct ToolWarning {
    tool: String,
    component: String,
    text: String,
    warning: ApiWarning,
}

/// Warnings with the same text, shown together.
struct Group<'w> {
    first: &'w ToolWarning,
    /// By tool, in the order in which they were found.
    tools: Vec<GroupedTool<'w>>,
}

struct GroupedTool<'w> {
    tool: &'w str,
    pointers: Vec<&'w str>,
}

/// Who wrote a component's schemas.
#[derive(Clone, Copy)]
enum SchemaAuthor {
    /// A person, who can fix them.
    Person,
    /// The host, from WIT types: only the served form matters.
    Host,
}

impl SchemaAuthor {
    fn of(shape: ShapeName) -> Self {
        if shape == ShapeName::Typed { Self::Host } else { Self::Person }
    }

    fn forms<'d>(self, written: &'d Value, served: &'d Value) -> SchemaForms<'d> {
        match self {
            Self::Person => SchemaForms { written, served },
            Self::Host => SchemaForms { written: served, served },
        }
    }
}

impl ToolWarnings {
    /// The warnings about each tool that clients of this server get.
    pub fn of_catalog(catalog: &Catalog, server: &str) -> Self {
        let mut warnings = Self::default();
        let tools = catalog.tools().tools().iter().enumerate().filter(|(_, tool)| tool.is_tool());
        for (index, tool) in tools {
            let Some((component, _)) = catalog.tool_source(index) else { continue };
            let written = tool.definition();
            let served = tool.served();
            let hints = &written.hints;
            let output = written.output_schema.as_ref().zip(served.output_schema.as_ref());
            let by = SchemaAuthor::of(component.shape());
            let definition = ListedDefinition {
                server,
                name: &written.name,
                description: written_text(&written.description),
                shown: Some(ShownParts {
                    has_title: written.title.is_some(),
                    // What a script does is up to its calls, and its own definition is the host's.
                    has_hints: component.name() == CODE || hints.read_only.is_some() || hints.destructive.is_some(),
                }),
                input: by.forms(&written.input_schema, &served.input_schema),
                output: output.map(|(written, served)| by.forms(written, served)),
            };
            warnings.add(component.name(), &definition);
        }
        warnings
    }

    /// The warnings about the tools of a component of this shape. A manifest may add titles and
    /// hints, and makes all tools of a program. A schema that is not JSON is reported by loading.
    pub fn of_component(component: &str, shape: ShapeName, tools: &[contract::GuestTool]) -> Self {
        let mut warnings = Self::default();
        let by = SchemaAuthor::of(shape);
        let tools = if shape == ShapeName::Program { &[] } else { tools };
        for tool in tools {
            let Ok(input) = serde_json::from_str::<Value>(&tool.input_schema_json) else { continue };
            let output = tool.output_schema_json.as_deref().map(serde_json::from_str::<Value>);
            let Ok(output) = output.transpose() else { continue };
            let served_input = portable(&input, SchemaUse::Arguments);
            let served_output = output.as_ref().map(|schema| portable(schema, SchemaUse::Result));
            let forms = output.as_ref().zip(served_output.as_ref());
            let definition = ListedDefinition {
                server: "",
                name: &tool.name,
                description: written_text(&tool.description),
                shown: None,
                input: by.forms(&input, &served_input),
                output: forms.map(|(written, served)| by.forms(written, served)),
            };
            warnings.add(component, &definition);
        }
        warnings
    }

    fn add(&mut self, component: &str, definition: &ListedDefinition<'_>) {
        let warnings = api_warnings(definition);
        self.left_out += warnings.left_out;
        for warning in warnings.found {
            if self.found.len() == WARNINGS_MAX {
                self.left_out += 1;
                continue;
            }
            self.found.push(ToolWarning {
                tool: definition.name.to_owned(),
                component: component.to_owned(),
                text: warning.text(),
                warning,
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// As a list: `code`, `tool`, `component`, `pointer`, `who`, `text` and `served`.
    pub fn to_json(&self) -> Value {
        let one = |ToolWarning { tool, component, text, warning }: &ToolWarning| {
            json!({
                "code": warning.rule.code(),
                "tool": tool,
                "component": component,
                "pointer": warning.pointer,
                "who": warning.who,
                "text": text,
                "served": warning.is_served,
            })
        };
        self.found.iter().map(one).collect()
    }

    /// The number of places that `to_json` leaves out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// A part for each rule with its source, its tools and places.
    pub fn text(&self, style: Style) -> String {
        let groups: Vec<String> = self.groups().iter().map(|group| group.text(style)).collect();
        let mut text = groups.join("\n");
        if self.left_out > 0 {
            text.push_str(&format!("\nand {} further places\n", self.left_out));
        }
        text
    }

    /// The warnings grouped by rule, in the order of the rules.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for one in &self.found {
            let of_it = groups.iter_mut().find(|group| group.first.text == one.text);
            match of_it {
                Some(group) => group.add(one),
                None => groups.push(Group {
                    first: one,
                    tools: vec![GroupedTool { tool: &one.tool, pointers: vec![&one.warning.pointer] }],
                }),
            }
        }
        groups.sort_by_key(|group| group.first.warning.rule);
        groups
    }
}

impl<'w> Group<'w> {
    fn add(&mut self, one: &'w ToolWarning) {
        match self.tools.last_mut().filter(|last| last.tool == one.tool) {
            Some(last) => last.pointers.push(&one.warning.pointer),
            None => self.tools.push(GroupedTool { tool: &one.tool, pointers: vec![&one.warning.pointer] }),
        }
    }

    fn text(&self, style: Style) -> String {
        let rule = self.first.warning.rule;
        let label = yellow(&format!("warning[{}]", rule.code()), style);
        let places = if self.is_about_whole_tools() { self.names() } else { self.lines() };
        format!("{label}: {}\n{places}  hint: {}\n", self.first.text, rule.hint())
    }

    /// True if it is about a part other than the schemas, so that the tool's name is a sufficient
    /// place.
    fn is_about_whole_tools(&self) -> bool {
        let pointer = &self.first.warning.pointer;
        pointer.matches('/').count() == 1 && pointer != "/inputSchema"
    }

    fn names(&self) -> String {
        let mut names: Vec<String> =
            self.tools.iter().take(GROUP_NAMES_MAX).map(|tool| sanitize::line(tool.tool).into_owned()).collect();
        if self.tools.len() > names.len() {
            names.push(format!("and {} more", self.tools.len() - names.len()));
        }
        terminal::listed("  ", &names)
    }

    fn lines(&self) -> String {
        let shown = || self.tools.iter().take(GROUP_LINES_MAX);
        let width = shown().map(|tool| tool.tool.len()).max().unwrap_or_default();
        let mut text = String::new();
        for GroupedTool { tool, pointers } in shown() {
            let first = pointers.first().copied().unwrap_or_default();
            let more = match pointers.len() {
                0 | 1 => String::new(),
                all => format!(", and {} more", all - 1),
            };
            text.push_str(&format!("  {:<width$}  {}{more}\n", sanitize::line(tool), sanitize::line(first)));
        }
        if self.tools.len() > GROUP_LINES_MAX {
            text.push_str(&format!("  and {} more tools\n", self.tools.len() - GROUP_LINES_MAX));
        }
        text
    }
}

/// A description that an author wrote; `None` if the host generated it for a function.
pub(super) fn written_text(description: &str) -> &str {
    let is_made_up = description.starts_with("Calls ") && description.ends_with(" of the component.");
    if is_made_up { "" } else { description }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, input: &Value) -> contract::GuestTool {
        contract::GuestTool {
            name: name.to_owned(),
            title: None,
            description: "Does it.".to_owned(),
            input_schema_json: input.to_string(),
            output_schema_json: Some(r#"{"type":"object"}"#.to_owned()),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    #[test]
    fn warnings_of_one_rule_are_shown_together_with_each_tool_and_its_first_place() {
        let two = json!({"type": "object", "properties": {"a": {"type": "number", "enum": [1]}, "b": {"const": "x"}, "c": {"const": "y"}},
            "additionalProperties": false});
        let one = json!({"type": "object", "properties": {"c": {"const": "x"}}, "additionalProperties": false});
        let warnings =
            ToolWarnings::of_component("acme", ShapeName::Contract, &[tool("longer", &two), tool("b", &one)]);
        let text = "\
warning[enum_not_text]: an enum of anything but texts, or without \"type\": \"string\": refused by Gemini
  longer  /inputSchema/properties/a/enum
  hint: write texts with \"type\": \"string\", or minimum and maximum

warning[const]: const: refused by Gemini; clients get an enum of one text, or a type with bounds
  longer  /inputSchema/properties/b/const, and 1 more
  b       /inputSchema/properties/c/const
  hint: write an enum of one text
";
        assert_eq!(warnings.text(Style::Plain), text);
        let first = json!({"code": "enum_not_text", "tool": "longer", "component": "acme", "pointer": "/inputSchema/properties/a/enum",
            "who": ["Gemini"], "text": "an enum of anything but texts, or without \"type\": \"string\": refused by Gemini", "served": true});
        assert_eq!(warnings.to_json()[0], first);
        assert_eq!(
            (warnings.to_json()[1]["served"].clone(), warnings.left_out(), warnings.is_empty()),
            (json!(false), 0, false)
        );
    }

    #[test]
    fn many_tools_take_few_lines_and_the_rest_is_counted() {
        let made_up = |number: usize, input: &Value| contract::GuestTool {
            description: format!("Calls f{number} of the component."),
            output_schema_json: None,
            ..tool(&format!("t{number}"), input)
        };
        let names = (0..20).map(|number| (format!("a {number}"), json!({"type": "string"})));
        let properties: Value = names.collect::<serde_json::Map<_, _>>().into();
        let input = json!({"type": "object", "properties": properties, "additionalProperties": false});
        let tools: Vec<_> = (0..200).map(|number| made_up(number, &input)).collect();
        let warnings = ToolWarnings::of_component("acme", ShapeName::Contract, &tools);
        let text = warnings.text(Style::Plain);
        assert!(text.contains("  t9  /inputSchema/properties/a 0, and 7 more\n  and 90 more tools\n"), "{text}");
        assert!(text.contains("t39, and 60 more\n") || text.contains("t39,\n  and 60 more\n"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
        assert_eq!(warnings.to_json().as_array().map(Vec::len), Some(WARNINGS_MAX));
        // Of each tool 20 names, no output schema and no description.
        assert_eq!(warnings.left_out(), 200 * 22 - WARNINGS_MAX);
        assert!(text.ends_with(&format!("and {} further places\n", warnings.left_out())), "{text}");
    }

    #[test]
    fn schemas_that_the_host_wrote_are_looked_at_as_they_are_served() {
        let input = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "additionalProperties": false,
            "$defs": {"a": {"type": "string"}}});
        let of = |shape: ShapeName| ToolWarnings::of_component("acme", shape, &[tool("t", &input)]);
        assert!(!of(ShapeName::Contract).is_empty());
        assert!(of(ShapeName::Typed).is_empty() && of(ShapeName::Program).is_empty());
    }

    #[test]
    fn a_place_in_the_arguments_is_named_though_it_is_their_top() {
        let input = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let text = ToolWarnings::of_component("acme", ShapeName::Contract, &[tool("t", &input)]).text(Style::Plain);
        assert!(text.contains("refused by OpenAI's strict mode\n  t  /inputSchema\n  hint: "), "{text}");
    }

    #[test]
    fn names_that_hide_something_are_shown_without() {
        let input = json!({"type": "object", "properties": {"\u{1b}[31m\u{202e}": {}}, "additionalProperties": false});
        let text = ToolWarnings::of_component("acme", ShapeName::Contract, &[tool("t", &input)]).text(Style::Plain);
        assert!(text.contains("property_name") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}
