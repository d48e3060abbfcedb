//! `library`: cards of the documents in a folder, kept from call to call.
//! The lesson: prompts, completion, resources and news of them, next to a tool that runs as a task.
//!
//! Holds the definitions and the way to their answers; must hold no index, no cards and no documents.

mod address;
mod bindings;
mod card;
mod documents;
mod index;
mod news;
mod offers;
mod shelf;

use std::path::Path;

use serde::Deserialize;

use bindings::exports::toolcell::mcp::completion::{self, Completions, Subject, Typed};
use bindings::exports::toolcell::mcp::prompts::{self, Argument, Message, Prompt, PromptResult};
use bindings::exports::toolcell::mcp::resources::{self, Contents, Definition};
use bindings::exports::toolcell::mcp::tools;
use bindings::toolcell::mcp::types::{
    CallResult, Content, EmbeddedResource, Failure, Given, Hints, ResourceBody, Role, TextContent, Tool,
};

struct Library;

/// Where the manifest mounts the folder.
const MOUNT: &str = "/library";

const TOOL: &str = "library_index";
const PROMPT: &str = "study";

/// The prompt's arguments.
const DOCUMENT: &str = "document";
const READER: &str = "reader";

/// The variable of the addresses.
const PATH: &str = "path";

const MARKDOWN: &str = "text/markdown";

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    again: bool,
}

impl tools::Guest for Library {
    fn list_tools() -> Vec<Tool> {
        vec![Tool {
            name: TOOL.to_owned(),
            title: Some("Index the library".to_owned()),
            description: "Brings the cards of the documents in the library's folder up to date: titles, lengths and \
                          headings, which are read as resources. Use it once documents were added or changed."
                .to_owned(),
            input_schema_json: include_str!("../schemas/index.input.json").to_owned(),
            output_schema_json: Some(include_str!("../schemas/index.output.json").to_owned()),
            hints: Some(Hints {
                read_only: Some(false),
                destructive: Some(false),
                idempotent: Some(true),
                open_world: Some(false),
            }),
            icons: Vec::new(),
            meta_json: None,
        }]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        if name != TOOL {
            return Err(Failure::Failed(format!("this component has no tool named {name:?}")));
        }
        let Arguments { again } =
            serde_json::from_str(&arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
        let root = Path::new(MOUNT);
        if std::fs::read_dir(root).is_err() {
            let message = format!("there is no library: the server's manifest gives this tool no folder at {MOUNT}");
            return Err(Failure::Failed(message));
        }
        let outcome = index::index(root, &mut shelf::open()?, &mut news::Clients, again)?;
        let structured = serde_json::to_string(&outcome).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(CallResult {
            content: vec![text(outcome.sentence())],
            structured_json: Some(structured),
            is_error: false,
            meta_json: None,
        })
    }
}

impl prompts::Guest for Library {
    fn list_prompts() -> Vec<Prompt> {
        let argument = |name: &str, description: &str, required, values: &[&str]| Argument {
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            required,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        vec![Prompt {
            name: PROMPT.to_owned(),
            title: Some("Study a document".to_owned()),
            description: Some("Explains a document of the library, and asks about it.".to_owned()),
            arguments: vec![
                argument(DOCUMENT, "Its path in the library.", true, &[]),
                argument(READER, "Who it is explained to.", false, &["a beginner", "an expert", "a child"]),
            ],
            icons: Vec::new(),
            meta_json: None,
        }]
    }

    fn get_prompt(name: String, arguments: Vec<Given>) -> Result<PromptResult, Failure> {
        if name != PROMPT {
            return Err(Failure::Failed(format!("this component has no prompt named {name:?}")));
        }
        let given = |name: &str| arguments.iter().find(|given| given.name == name).map(|given| given.value.as_str());
        let document = given(DOCUMENT).unwrap_or_default();
        let offers::Study { uri, card, text: document, request } =
            offers::study(Path::new(MOUNT), &shelf::open()?, document, given(READER))?;
        let card = Content::EmbeddedResource(EmbeddedResource {
            uri,
            mime_type: Some(MARKDOWN.to_owned()),
            body: ResourceBody::Text(card),
            annotations: None,
            meta_json: None,
        });
        let messages = [card, text(document), text(request)].map(|content| Message { role: Role::User, content });
        Ok(PromptResult { description: None, messages: messages.into(), meta_json: None })
    }
}

impl completion::Guest for Library {
    /// The host knows the values of `reader`, and asks for the others.
    fn complete(typed: Typed) -> Result<Completions, Failure> {
        let wanted = match typed.subject {
            Subject::Prompt(_) => DOCUMENT,
            Subject::Template(_) => PATH,
        };
        let none = (Vec::new(), 0);
        let (values, total) =
            if typed.argument == wanted { offers::complete(&shelf::open()?, &typed.value)? } else { none };
        let has_more = total > values.len();
        Ok(Completions { values, total: u64::try_from(total).ok(), has_more })
    }
}

impl resources::Guest for Library {
    fn list_resources() -> Vec<Definition> {
        let definition = |uri: &str, name: &str, title: &str| Definition {
            uri: uri.to_owned(),
            name: name.to_owned(),
            title: Some(title.to_owned()),
            description: None,
            mime_type: Some(MARKDOWN.to_owned()),
            size: None,
            annotations: None,
            icons: Vec::new(),
            meta_json: None,
            variables: Vec::new(),
        };
        vec![
            definition(address::LIST, "library", "All documents of the library"),
            definition(address::TEMPLATE, "card", "The card of a document"),
        ]
    }

    fn read_resource(uri: String) -> Result<Vec<Contents>, Failure> {
        let page = offers::page(&shelf::open()?, &uri)?;
        Ok(vec![Contents { uri: None, mime_type: None, body: ResourceBody::Text(page), meta_json: None }])
    }
}

fn text(text: String) -> Content {
    Content::Text(TextContent { text, annotations: None, meta_json: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::{Failure, Library, completion, prompts, resources, tools};
    use serde_json::Value;

    #[test]
    fn every_schema_is_one() {
        for tool in <Library as tools::Guest>::list_tools() {
            for schema in [Some(&tool.input_schema_json), tool.output_schema_json.as_ref()].into_iter().flatten() {
                let schema: Value = serde_json::from_str(schema).unwrap();
                assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
            }
        }
    }

    #[test]
    fn what_the_prompt_asks_for_is_completed_by_somebody() {
        let prompts = <Library as prompts::Guest>::list_prompts();
        let [document, reader] = prompts[0].arguments.as_slice() else { unreachable!("two arguments") };
        assert!(document.required && document.values.is_empty(), "the component completes it");
        assert!(!reader.required && reader.values.contains(&"a child".to_owned()), "the host completes it");
        let templates = <Library as resources::Guest>::list_resources();
        assert!(templates[1].uri.contains(&format!("{{+{}}}", super::PATH)));
    }

    #[test]
    fn other_names_are_said_to_be_unknown_and_other_arguments_have_no_values() {
        let tool = <Library as tools::Guest>::call_tool("index".to_owned(), "{}".to_owned()).unwrap_err();
        assert!(matches!(tool, Failure::Failed(said) if said.contains("no tool named \"index\"")));
        let prompt = <Library as prompts::Guest>::get_prompt("read".to_owned(), Vec::new()).unwrap_err();
        assert!(matches!(prompt, Failure::Failed(said) if said.contains("no prompt named \"read\"")));
        let typed = completion::Typed {
            subject: completion::Subject::Prompt(super::PROMPT.to_owned()),
            argument: "mood".to_owned(),
            value: String::new(),
            others: Vec::new(),
        };
        let found = <Library as completion::Guest>::complete(typed).unwrap();
        assert!(found.values.is_empty() && !found.has_more);
    }
}
