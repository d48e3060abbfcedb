//! `file_notes`: keeps notes as Markdown files in a folder that it was given to write.
//! The lesson: writing within a quota, and what a tool says when the folder is full.
//!
//! Holds the tools' definitions and the way to their answers; must hold no file operations.

mod folder;

use std::path::Path;

use serde::Deserialize;
use toolkit::{CallResult, Failure, Guest, Hints, Tool};

use folder::Folder;

struct FileNotes;

toolkit::export!(FileNotes);

/// Where the manifest mounts the folder.
const MOUNT: &str = "/notes";

#[derive(Deserialize)]
struct NoteArguments {
    note: String,
}

#[derive(Deserialize)]
struct TextArguments {
    note: String,
    text: String,
}

/// What a tool that changes notes says of itself.
fn changing(destructive: bool, idempotent: bool) -> Option<Hints> {
    let [read_only, open_world] = [Some(false); 2];
    Some(Hints { read_only, destructive: Some(destructive), idempotent: Some(idempotent), open_world })
}

impl Guest for FileNotes {
    fn list_tools() -> Vec<Tool> {
        let note = include_str!("../schemas/note.json");
        let text = include_str!("../schemas/text.json");
        vec![
            Tool::new(
                "notes_list",
                "Lists the notes that were kept, with their sizes.",
                include_str!("../schemas/list.json"),
            )
            .title("List notes")
            .output(include_str!("../schemas/list.output.json"))
            .read_only(),
            Tool::new("notes_read", "Gives the text of one note.", note).title("Read a note").read_only(),
            Tool {
                hints: changing(true, true),
                ..Tool::new("notes_write", "Keeps a text as a note; what the note held before is gone.", text)
                    .title("Write a note")
            },
            Tool {
                hints: changing(false, false),
                ..Tool::new(
                    "notes_append",
                    "Adds a text at the end of a note, which is made if it does not exist yet.",
                    text,
                )
                .title("Add to a note")
            },
            Tool {
                hints: changing(true, true),
                ..Tool::new("notes_delete", "Deletes a note.", note).title("Delete a note")
            },
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        call(Path::new(MOUNT), &name, &arguments_json)
    }
}

fn call(root: &Path, name: &str, arguments_json: &str) -> Result<CallResult, Failure> {
    let folder = Folder::at(root)?;
    match name {
        "notes_list" => list(&folder),
        "notes_read" => {
            let NoteArguments { note } = toolkit::arguments(arguments_json)?;
            folder.read(&note).map(CallResult::text)
        }
        "notes_write" => {
            let TextArguments { note, text } = toolkit::arguments(arguments_json)?;
            folder.write(&note, &text)?;
            Ok(CallResult::text(format!("{note:?} holds {} bytes.", text.len())))
        }
        "notes_append" => {
            let TextArguments { note, text } = toolkit::arguments(arguments_json)?;
            let bytes = folder.append(&note, &text)?;
            Ok(CallResult::text(format!("{note:?} holds {bytes} bytes.")))
        }
        "notes_delete" => {
            let NoteArguments { note } = toolkit::arguments(arguments_json)?;
            let said = if folder.delete(&note)? { "is deleted" } else { "was not there" };
            Ok(CallResult::text(format!("{note:?} {said}.")))
        }
        other => Err(Failure::unknown_tool(other)),
    }
}

fn list(folder: &Folder<'_>) -> Result<CallResult, Failure> {
    #[derive(serde::Serialize)]
    struct Notes {
        notes: Vec<folder::Note>,
    }
    CallResult::structured(&Notes { notes: folder.list()? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn said(root: &Path, tool: &str, arguments: Value) -> Result<String, String> {
        call(root, tool, &arguments.to_string())
            .map(|result| result.only_text().map_or_else(|| result.structured_json.clone().unwrap(), str::to_owned))
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn a_note_is_written_read_added_to_listed_and_deleted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for (tool, arguments, expected) in [
            ("notes_list", json!({}), Ok(r#"{"notes":[]}"#)),
            ("notes_read", json!({"note": "tea"}), Err("there is no note \"tea\"; notes_list names those there are")),
            ("notes_write", json!({"note": "tea", "text": "green\n"}), Ok("\"tea\" holds 6 bytes.")),
            ("notes_read", json!({"note": "tea"}), Ok("green\n")),
            ("notes_append", json!({"note": "tea", "text": "black\n"}), Ok("\"tea\" holds 12 bytes.")),
            ("notes_append", json!({"note": "Café au lait", "text": "warm"}), Ok("\"Café au lait\" holds 4 bytes.")),
            ("notes_read", json!({"note": "tea"}), Ok("green\nblack\n")),
            ("notes_list", json!({}), Ok(r#"{"notes":[{"note":"Café au lait","bytes":4},{"note":"tea","bytes":12}]}"#)),
            ("notes_write", json!({"note": "tea", "text": ""}), Ok("\"tea\" holds 0 bytes.")),
            ("notes_delete", json!({"note": "tea"}), Ok("\"tea\" is deleted.")),
            ("notes_delete", json!({"note": "tea"}), Ok("\"tea\" was not there.")),
            ("notes_list", json!({}), Ok(r#"{"notes":[{"note":"Café au lait","bytes":4}]}"#)),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(said(root, tool, arguments.clone()), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn a_name_is_a_name_and_no_path() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "",
            ".",
            "..",
            "../tea",
            "a/b",
            "/etc/passwd",
            "a\\b",
            ".hidden",
            "line\nbreak",
            " tea",
            "nul\0",
            &"n".repeat(61),
        ] {
            for (tool, arguments) in [
                ("notes_read", json!({"note": name})),
                ("notes_write", json!({"note": name, "text": "x"})),
                ("notes_append", json!({"note": name, "text": "x"})),
                ("notes_delete", json!({"note": name})),
            ] {
                let message = said(root.path(), tool, arguments).unwrap_err();
                assert!(message.starts_with("a note's name is"), "{tool} {name:?}: {message}");
            }
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_folder_it_says_what_is_missing() {
        let message = said(Path::new("/no/such/folder"), "notes_list", json!({})).unwrap_err();
        assert!(message.contains("gives this tool none at /notes"), "{message}");
    }
}
