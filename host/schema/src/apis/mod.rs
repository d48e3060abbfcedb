//! Finds parts of a tool's definition that model APIs and clients refuse or cut. `apis.json` lists
//! the rules and the APIs and clients that have them. Must not hold: the served form, which avoids
//! most.
mod scan;
mod table;

use serde::Deserialize;
use serde_json::Value;

use scan::{Findings, Form};
use table::TABLE;

/// Most warnings of one tool; further ones are counted. A rule gives at most 8 for each schema, so
/// this is enough for a few rules.
pub const TOOL_WARNINGS_MAX: usize = 64;

/// A rule of some API or client, with its `code` in `apis.json`, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiRule {
    /// A number that not every JSON reader can represent.
    InexactNumber,
    /// A property's name that is long or has other letters than usual.
    PropertyName,
    /// `anyOf`, `oneOf` or `allOf` at the top of the arguments.
    CombinatorAtTop,
    /// `enum`, `const` or `not` at the top of the arguments.
    ChoiceAtTop,
    /// An `enum` of other than texts, or without `"type": "string"`.
    EnumNotText,
    /// `const`.
    Const,
    /// `$ref` and its variants.
    Reference,
    /// An array whose `items` are missing or a boolean.
    ArrayWithoutItems,
    /// A pattern that is not a regular language.
    IrregularPattern,
    /// A list of types.
    TypeList,
    /// A keyword that strict modes do not know.
    StrictKeyword,
    /// An object that allows further properties.
    OpenObject,
    /// A description that is refused or cut, because it is long.
    LongDescription,
    /// Names of server and tool that are too long together.
    LongName,
    /// A tool without an output schema.
    NoOutputSchema,
    /// A tool without a description by its author.
    NoDescription,
    /// A tool without a title.
    NoTitle,
    /// A tool that does not say whether it only reads.
    NoHints,
}

impl ApiRule {
    /// Its code, such as `inexact_number`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InexactNumber => "inexact_number",
            Self::PropertyName => "property_name",
            Self::CombinatorAtTop => "combinator_at_top",
            Self::ChoiceAtTop => "choice_at_top",
            Self::EnumNotText => "enum_not_text",
            Self::Const => "const",
            Self::Reference => "reference",
            Self::ArrayWithoutItems => "array_without_items",
            Self::IrregularPattern => "irregular_pattern",
            Self::TypeList => "type_list",
            Self::StrictKeyword => "strict_keyword",
            Self::OpenObject => "open_object",
            Self::LongDescription => "long_description",
            Self::LongName => "long_name",
            Self::NoOutputSchema => "no_output_schema",
            Self::NoDescription => "no_description",
            Self::NoTitle => "no_title",
            Self::NoHints => "no_hints",
        }
    }

    /// Advice to the author of a tool that breaks it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        TABLE.rule(self).map_or("", |row| row.instead.as_str())
    }
}

/// A definition of a tool to check.
#[derive(Clone, Copy, Debug)]
pub struct ListedDefinition<'d> {
    /// The server's name at clients, which some put before the tool's; may be empty.
    pub server: &'d str,
    /// The tool's name.
    pub name: &'d str,
    /// The text for the model; empty if the host made it up.
    pub description: &'d str,
    /// The parts for people; `None` if not known yet.
    pub shown: Option<ShownParts>,
    /// The schema of the arguments.
    pub input: SchemaForms<'d>,
    /// The schema of the structured result.
    pub output: Option<SchemaForms<'d>>,
}

/// The parts of a definition that are shown to people.
#[derive(Clone, Copy, Debug)]
pub struct ShownParts {
    /// True if it has a title.
    pub has_title: bool,
    /// True if it says that it only reads, or whether it destroys.
    pub has_hints: bool,
}

/// A schema as its author wrote it, and as clients get it.
#[derive(Clone, Copy, Debug)]
pub struct SchemaForms<'d> {
    /// As written.
    pub written: &'d Value,
    /// As served.
    pub served: &'d Value,
}

/// A place where a definition breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiWarning {
    /// The rule.
    pub rule: ApiRule,
    /// The APIs and clients that have the rule.
    pub who: Vec<&'static str>,
    /// The place in the definition, a JSON Pointer of at most 256 bytes. A longer one is cut and
    /// ends with `…`. It may contain any characters.
    pub pointer: String,
    /// False if the served form does not break the rule. Then the pointer refers to the written
    /// form.
    pub is_served: bool,
}

/// The warnings about one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiWarnings {
    /// Warnings in the order of the rules.
    pub found: Vec<ApiWarning>,
    /// How many further ones there are.
    pub left_out: usize,
}

/// Checks a definition, in time proportional to its size.
#[must_use]
pub fn api_warnings(definition: &ListedDefinition<'_>) -> ApiWarnings {
    let mut warnings = ApiWarnings::default();
    warnings.schema("/inputSchema", Form::Arguments, definition.input);
    match definition.output {
        Some(output) => warnings.schema("/outputSchema", Form::Result, output),
        None => warnings.lacks(ApiRule::NoOutputSchema, "/outputSchema"),
    }
    let characters = definition.description.chars().count();
    warnings.measured(ApiRule::LongDescription, "/description", characters);
    if definition.description.trim().is_empty() {
        warnings.lacks(ApiRule::NoDescription, "/description");
    }
    let characters = definition.server.chars().count() + definition.name.chars().count();
    warnings.measured(ApiRule::LongName, "/name", characters);
    if definition.shown.is_some_and(|shown| !shown.has_title) {
        warnings.lacks(ApiRule::NoTitle, "/title");
    }
    if definition.shown.is_some_and(|shown| !shown.has_hints) {
        warnings.lacks(ApiRule::NoHints, "/annotations");
    }
    warnings.found.sort_by_key(|warning| warning.rule);
    warnings
}

impl ApiWarning {
    /// One sentence without a full stop: the finding, who has the rule, and the served form. The
    /// same for all tools with this finding.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(row) = TABLE.rule(self.rule) else { return self.rule.code().to_owned() };
        let mut text = row.finds.clone();
        let mut before = ": ";
        for client in row.clients.iter().filter(|client| self.who.contains(&TABLE.name(&client.api))) {
            let past = client.past.map_or_else(String::new, |past| format!(" past {past} characters"));
            text.push_str(&format!("{before}{} {}{past}", client.does, TABLE.name(&client.api)));
            before = ", ";
        }
        if !self.is_served {
            text.push_str(&format!("; {}", row.served.as_deref().unwrap_or("clients get another form of it")));
        }
        text
    }
}

impl ApiWarnings {
    /// Adds where the served form breaks a rule, and where only the written form does.
    fn schema(&mut self, pointer: &'static str, form: Form, schema: SchemaForms<'_>) {
        let served = Findings::of(pointer, form, schema.served);
        if schema.written != schema.served {
            let mut written = Findings::of(pointer, form, schema.written);
            written.places.retain(|rule, _| !served.places.contains_key(rule));
            self.add(written, false);
        }
        self.add(served, true);
    }

    fn add(&mut self, findings: Findings, is_served: bool) {
        for (rule, places) in findings.places {
            self.left_out += places.count - places.pointers.len();
            for pointer in places.pointers {
                self.push(ApiWarning { rule, who: TABLE.who(rule), pointer, is_served });
            }
        }
    }

    fn push(&mut self, warning: ApiWarning) {
        if self.found.len() < TOOL_WARNINGS_MAX {
            self.found.push(warning);
        } else {
            self.left_out += 1;
        }
    }

    fn lacks(&mut self, rule: ApiRule, pointer: &str) {
        self.push(ApiWarning { rule, who: TABLE.who(rule), pointer: pointer.to_owned(), is_served: true });
    }

    /// Adds a text that is longer than some client accepts.
    fn measured(&mut self, rule: ApiRule, pointer: &str, characters: usize) {
        let who = TABLE.who_past(rule, characters);
        if !who.is_empty() {
            self.push(ApiWarning { rule, who, pointer: pointer.to_owned(), is_served: true });
        }
    }
}
