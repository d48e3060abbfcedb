//! `notebook`: a runbook for people on call, carried inside the component.
//! The lesson: links to resources, embedded resources of text and of bytes, annotations, and icons.
//!
//! Holds the tools' definitions and the way to their answers; must hold no notes and no searching.

mod icon;
mod notes;
mod search;

use notes::{NOTES, Note};
use serde::Deserialize;
use toolkit::{
    Annotations, CallResult, Content, EmbeddedResource, Failure, Guest, ResourceBody, ResourceLink, Role, Tool,
};

struct Notebook;

toolkit::export!(Notebook);

/// Links given where the caller does not say; the schema says the same.
const LIMIT_DEFAULT: usize = 5;

#[derive(Deserialize)]
struct SearchArguments {
    #[serde(default)]
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct ReadArguments {
    note: String,
    attachments: Option<bool>,
}

impl Guest for Notebook {
    fn list_tools() -> Vec<Tool> {
        let mut tools = vec![
            Tool::new(
                "notebook_search",
                "Finds notes of the on-call runbook by words that describe the trouble. Gives links; notebook_read \
                 gives what is behind them.",
                include_str!("../schemas/search.input.json"),
            )
            .title("Search the runbook")
            .read_only(),
            Tool::new(
                "notebook_read",
                "Gives one note of the on-call runbook with what is attached to it.",
                include_str!("../schemas/read.input.json"),
            )
            .title("Read a runbook note")
            .read_only(),
        ];
        for tool in &mut tools {
            tool.icons = icon::icons();
        }
        tools
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "notebook_search" => Ok(search(&toolkit::arguments(&arguments_json)?)),
            "notebook_read" => read(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn search(arguments: &SearchArguments) -> CallResult {
    let found = search::find(&arguments.query, arguments.limit.unwrap_or(LIMIT_DEFAULT));
    let said = match found.len() {
        0 => format!("No note is about {:?}. Without a query, all notes are listed.", arguments.query),
        1 => "1 note. notebook_read gives its text.".to_owned(),
        count => format!("{count} notes, the best first. notebook_read gives their text."),
    };
    let links = found.into_iter().map(|(note, fit)| link(note, fit));
    CallResult::new(std::iter::once(Content::text(said)).chain(links).collect())
}

fn read(arguments: &ReadArguments) -> Result<CallResult, Failure> {
    let Some(note) = NOTES.iter().find(|note| note.is_meant_by(&arguments.note)) else {
        let known: Vec<&str> = NOTES.iter().map(|note| note.slug).collect();
        return Err(Failure::invalid(format!("there is no note {:?}; there are {}", arguments.note, known.join(", "))));
    };
    let mut content = vec![text_of(note)];
    if arguments.attachments.unwrap_or(true) {
        content.extend(note.attachments.iter().map(|attachment| {
            let body = ResourceBody::Blob(attachment.data.to_vec());
            let uri = format!("{}/{}", note.uri(), attachment.name);
            embedded(uri, attachment.mime_type, body, &[Role::User], 0.5, note)
        }));
    }
    Ok(CallResult::new(content))
}

fn link(note: &Note, fit: f64) -> Content {
    Content::ResourceLink(ResourceLink {
        uri: note.uri(),
        name: note.slug.to_owned(),
        title: Some(note.title.to_owned()),
        description: Some(note.summary.to_owned()),
        mime_type: Some("text/markdown".to_owned()),
        size: u64::try_from(note.text.len()).ok(),
        annotations: None,
        icons: icon::icons(),
        meta_json: None,
    })
    .annotated(Annotations::audience(&[Role::User, Role::Assistant]).priority(fit).last_modified(note.modified))
}

fn text_of(note: &Note) -> Content {
    let body = ResourceBody::Text(note.text.to_owned());
    embedded(note.uri(), "text/markdown", body, &[Role::User, Role::Assistant], 1.0, note)
}

fn embedded(
    uri: String,
    mime_type: &str,
    body: ResourceBody,
    audience: &[Role],
    priority: f64,
    note: &Note,
) -> Content {
    let annotations = Annotations::audience(audience).priority(priority).last_modified(note.modified);
    Content::EmbeddedResource(EmbeddedResource {
        uri,
        mime_type: Some(mime_type.to_owned()),
        body,
        annotations: Some(annotations),
        meta_json: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::{Value, json};

    fn call(tool: &str, arguments: &Value) -> Result<Vec<Content>, String> {
        Notebook::call_tool(tool.to_owned(), arguments.to_string())
            .map(|result| result.content)
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn a_search_gives_links_with_the_best_first() {
        let content = call("notebook_search", &json!({"query": "No space left on the disk!"})).unwrap();
        let [Content::Text(said), Content::ResourceLink(best), ..] = content.as_slice() else {
            panic!("a text and links: {content:?}");
        };
        assert!(said.text.ends_with("notebook_read gives its text.") || said.text.contains("the best first"));
        assert_eq!(best.uri, "note://runbook/disk-full");
        assert_eq!(best.size, Some(904));
        let annotations = best.annotations.as_ref().unwrap();
        assert_eq!(annotations.priority, Some(1.0));
        assert_eq!(annotations.last_modified.as_deref(), Some("2026-03-02T09:30:00Z"));
    }

    #[test]
    fn a_search_that_finds_nothing_says_so() {
        let content = call("notebook_search", &json!({"query": "unicorn"})).unwrap();
        let [Content::Text(said)] = content.as_slice() else { panic!("only a text: {content:?}") };
        assert_eq!(said.text, "No note is about \"unicorn\". Without a query, all notes are listed.");
    }

    #[test]
    fn a_note_comes_with_its_attachment() {
        let content = call("notebook_read", &json!({"note": "note://runbook/database-connections"})).unwrap();
        let [Content::EmbeddedResource(text), Content::EmbeddedResource(picture)] = content.as_slice() else {
            panic!("two resources: {content:?}");
        };
        assert!(matches!(&text.body, ResourceBody::Text(text) if text.starts_with("# The database")));
        assert_eq!(picture.uri, "note://runbook/database-connections/connections.png");
        assert!(matches!(&picture.body, ResourceBody::Blob(data) if data.starts_with(b"\x89PNG")));

        let bare = json!({"note": "Database-Connections", "attachments": false});
        assert_eq!(call("notebook_read", &bare).unwrap().len(), 1);
    }

    #[test]
    fn an_unknown_note_comes_with_the_known_ones() {
        let message = call("notebook_read", &json!({"note": "coffee"})).unwrap_err();
        assert!(message.starts_with("there is no note \"coffee\"; there are certificate-expired, "), "{message}");
    }

    #[test]
    fn icons_are_pictures_for_both_backgrounds() {
        for tool in Notebook::list_tools() {
            assert_eq!(tool.icons.len(), 2);
            assert!(tool.icons.iter().all(|icon| icon.src.starts_with("data:image/png;base64,iVBORw0KGgo")));
        }
    }
}
