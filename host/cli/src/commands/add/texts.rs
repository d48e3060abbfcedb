//! Texts of documents and other servers, shown to a person before a model reads them. Terminal
//! escapes and hidden characters appear as their numbers.
use serde_json::Value;
use toolcell_bridge::ToolDefinition;
use toolcell_mcp::sanitize;

/// Characters of a text within a schema that are shown; the rest is counted.
const TEXT_CHARS_SHOWN: usize = 2_000;

/// Objects inside each other whose texts are shown: as deep as the host takes schemas.
const LEVELS_MAX: usize = 32;

/// Bytes of a document's texts that are shown. 32 KiB: some 400 lines, which a person may read.
const TEXTS_BYTES_SHOWN: usize = 32 * 1024;

/// Lines of one kind, such as notes, that are shown before their number: a part of a screen.
const LINES_SHOWN: usize = 20;

/// The first of these lines behind these words, and the number of the rest.
pub fn first_lines(before: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let beyond = lines.len().saturating_sub(LINES_SHOWN);
    let mut text: String =
        lines.take(LINES_SHOWN).map(|line| format!("{}\n", sanitize::line(&format!("{before} {line}")))).collect();
    if beyond > 0 {
        text.push_str(&format!("{before} … and {beyond} more: --json shows them\n"));
    }
    text
}

/// New or changed tools of another server, with everything that a model would read of them.
pub fn changed_tools(tools: &[ToolDefinition], prefix: &str) -> String {
    let mut shown = ShownTexts::default();
    tools.iter().for_each(|tool| shown.tool(tool, prefix));
    shown.ended()
}

/// Texts of others, made visible.
#[derive(Default)]
pub struct ShownTexts {
    text: String,
    /// Texts with hidden characters.
    hidden: usize,
    /// Tools without their texts.
    not_shown: usize,
}

impl ShownTexts {
    /// A text behind these words. Its further lines are indented as far.
    pub fn line(&mut self, before: &str, text: &str) {
        self.hidden += usize::from(text.chars().any(sanitize::is_hidden));
        let text = sanitize::escaped(text);
        let lines = text.lines().flat_map(|line| line.split('\t')).map(str::trim_end);
        let mut before = before;
        let blank = " ".repeat(before.len());
        for line in lines.filter(|line| !line.is_empty()) {
            self.text.push_str(&format!("{before} {line}\n"));
            before = &blank;
        }
    }

    /// A tool of another server, with everything that a model would read of it.
    pub fn tool(&mut self, tool: &ToolDefinition, prefix: &str) {
        let says = match (tool.hints.read_only, tool.hints.destructive) {
            (Some(true), _) => "says that it only reads",
            (_, Some(false)) => "says that it destroys nothing",
            _ => "may change anything",
        };
        let remote = tool.operation();
        let remote = if remote == tool.name { String::new() } else { format!(", there {remote}") };
        self.line("  tool    ", &format!("{prefix}{}: {says}{remote}", tool.name));
        self.description(tool);
        for schema in [Some(&tool.input), tool.output.as_ref()].into_iter().flatten() {
            self.schema(schema, "", 0);
        }
    }

    /// An operation of a document, with the texts of its tool and arguments unless there are many.
    pub fn operation(&mut self, tool: &ToolDefinition, line: &str) {
        self.line(" ", line);
        if self.text.len() > TEXTS_BYTES_SHOWN {
            self.not_shown += 1;
            return;
        }
        self.description(tool);
        self.schema(&tool.input, "", 0);
    }

    /// All of it, with a note on what nobody sees.
    pub fn ended(mut self) -> String {
        if self.not_shown > 0 {
            let note = format!(
                "texts of the last {} tools are not shown: `toolcell list --json` has them once they are added",
                self.not_shown
            );
            self.line("  note    ", &note);
        }
        if self.hidden > 0 {
            let note = format!(
                "characters that nobody sees, in {} texts: shown as \\u…, and taken out for models",
                self.hidden
            );
            self.line("  note    ", &note);
        }
        self.text
    }

    fn description(&mut self, tool: &ToolDefinition) {
        if let Some(title) = &tool.title {
            self.line("             ", title);
        }
        self.line("             ", &tool.description);
    }

    /// Every text of a schema, with its place.
    fn schema(&mut self, schema: &Value, place: &str, level: usize) {
        let within = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
        match schema {
            Value::String(text) if !place.is_empty() => {
                let cut: String = text.chars().take(TEXT_CHARS_SHOWN).collect();
                let left = text.len() - cut.len();
                let left = if left > 0 { format!(" … and {left} bytes more") } else { String::new() };
                self.line("               ", &format!("{place}: {cut}{left}"));
            }
            _ if level >= LEVELS_MAX => {}
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, member)| is_shown(name, member)) {
                    self.schema(member, &within(name), level + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.schema(item, place, level + 1)),
            _ => {}
        }
    }
}

/// False for keywords whose texts are not the author's words. A property may have their names: then
/// its value is an object.
fn is_shown(name: &str, member: &Value) -> bool {
    member.is_object() || !["type", "format", "required", "$schema", "$id", "$ref", "$anchor"].contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_a_tool_is_shown_with_what_nobody_sees() {
        let mut shown = ShownTexts::default();
        shown.line("  a ", "one\u{202e}\n\n\u{1b}[31mtwo\u{200b}");
        shown.schema(
            &json!({"type": "object", "required": ["x"], "properties": {
                "type": {"type": "string", "description": "A kind.", "enum": ["p", "q"]},
            }}),
            "",
            0,
        );
        let lines: Vec<&str> = shown.text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "a  one\\u202e",
                "\\u001b[31mtwo\\u200b",
                "properties/type/description: A kind.",
                "properties/type/enum: p",
                "properties/type/enum: q",
            ]
        );
        assert_eq!(shown.hidden, 1);
    }

    #[test]
    fn many_lines_of_one_kind_are_counted() {
        let lines = |count: usize| first_lines("  note    ", (0..count).map(|at| format!("n{at}")));
        assert_eq!(lines(20).lines().count(), LINES_SHOWN);
        let many = lines(30_214);
        assert_eq!(many.lines().count(), LINES_SHOWN + 1);
        assert!(many.ends_with("\n  note     … and 30194 more: --json shows them\n"), "{many}");
    }
}
