//! Reads how a tool runs a program: `input`, `args`, `stdin`, `env`, `files`, `output`,
//! `output_schema`, `exit_codes`.

use serde_json::{Map, Value};

use super::{Entry, Problems, Section, input, scratch};
use crate::diagnostic::Diagnostic;
use crate::grants::Grants;
use crate::names::did_you_mean;
use crate::program::{Arg, Output, Program, Slot, SlotKind, Template, TemplateError};
use crate::rights;
use crate::table::table;

/// The most templates of arguments, and of variables: as many as a component has fixed ones.
pub(super) const TEMPLATES_MAX: usize = 256;

/// The longest template, in bytes: as long as a fixed argument.
const TEMPLATE_BYTES_MAX: usize = 128 << 10;

/// The longest media type, in bytes: the registry's names have at most 127 on either side.
const MIME_BYTES_MAX: usize = 255;

table! {
    /// Bytes that are the answer, as an image, a sound or a resource; or text of both streams.
    pub(crate) OUTPUT "Media" {
        /// The file that holds them after the run, in the guest's tree; standard output by default.
        "file": Text, {"pattern": "^/", "examples": ["/out/chart.png"]};
        /// The media type of the bytes. Without it, `stderr` makes the answer text.
        "type": Text, {"examples": ["image/png"]};
        /// True adds standard error to the answer, as a text behind standard output; an empty one
        /// is left out. Only without `type` and `file`.
        "stderr": Flag, {"default": false, "examples": [true]};
    }
    other names {
        "path" => "file", "mime_type" => "type", "mime" => "type", "media_type" => "type",
    }
}

/// The keys of a tool that say how its program is run; `env` does as well where it is a table.
const PROGRAM: [&str; 7] = ["input", "args", "stdin", "files", "output", "output_schema", "exit_codes"];

/// The program that the tool runs; `None` if its table describes none.
pub(crate) fn read(
    tool: &Entry<'_>,
    section: &Section<'_>,
    granted: &Grants,
    problems: &mut Problems,
) -> Option<Program> {
    let env = section.get("env").filter(Entry::is_table);
    let says_any = PROGRAM.iter().any(|key| section.get(key).is_some()) || env.is_some();
    if !says_any {
        return None;
    }
    let before = problems.errors();
    let mut program = Program::plain(tool.key_span.clone());
    if let Some(schema) = section.get("input").and_then(|entry| input::read(&entry, problems)) {
        program.input = schema;
    }
    // Without a valid schema, slots cannot be checked.
    let understood = problems.errors() == before;
    let mut slots = ProgramSlots { program: &program, used: Vec::new(), understood };
    let args = section.get("args").map(|entry| slots.args(&entry, problems)).unwrap_or_default();
    let stdin = section.get("stdin").and_then(|entry| slots.single(&entry, problems));
    let env = env.map(|entry| slots.env(&entry, problems)).unwrap_or_default();
    let files = section.get("files").map(|entry| slots.files(&entry, granted, problems)).unwrap_or_default();
    slots.refuse_unused(tool, section, problems);
    let output = section.get("output").and_then(|entry| output(&entry, problems)).unwrap_or_default();
    if let (Output::Media { file: Some(file), .. }, Some(entry)) = (&output, section.get("output")) {
        scratch::check_answer(file, &entry, granted, problems);
    }
    let output_schema = section.get("output_schema").and_then(|entry| output_schema(&entry, &output, problems));
    let codes = section.get("exit_codes").and_then(|entry| exit_codes(&entry, problems));
    require_description(tool, section, problems);
    let exit_codes = codes.unwrap_or(vec![0]);
    Some(Program { args, stdin, env, files, output, output_schema, exit_codes, ..program })
}

fn require_description(tool: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) {
    if section.get("description").is_none() {
        let message = format!("the tool {:?} has no description", tool.key);
        problems.add(
            tool.key_error("manifest::missing", message)
                .hint("add description = \"…\": a model chooses tools by it, and a program does not have one"),
        );
    }
}

/// The templates of one tool while they are read.
struct ProgramSlots<'p> {
    program: &'p Program,
    used: Vec<String>,
    understood: bool,
}

impl ProgramSlots<'_> {
    fn args(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<Arg> {
        let items = entry.items(TEMPLATES_MAX, problems).unwrap_or_default();
        let mut args = Vec::with_capacity(items.len());
        for item in items {
            let group = if item.is_list() {
                let items = item.items(TEMPLATES_MAX, problems).unwrap_or_default();
                items.iter().filter_map(|item| self.template(item, true, problems)).collect()
            } else {
                self.template(&item, true, problems).into_iter().collect()
            };
            args.push(Arg(group));
        }
        args
    }

    fn env(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<(String, Template)> {
        let entries = rights::named(entry, problems);
        entries.into_iter().filter_map(|entry| Some((entry.key.to_owned(), self.single(&entry, problems)?))).collect()
    }

    fn files(&mut self, entry: &Entry<'_>, granted: &Grants, problems: &mut Problems) -> Vec<(String, Template)> {
        let mut files: Vec<(String, Template)> = Vec::new();
        for entry in scratch::inputs(entry, problems) {
            let path = scratch::input_path(&entry, granted, problems);
            let Some((path, template)) = path.zip(self.single(&entry, problems)) else { continue };
            if files.iter().any(|(other, _)| *other == path) {
                let message = format!("the file {path:?} appears twice");
                problems.add(entry.key_error("program::files", message));
                continue;
            }
            files.push((path, template));
        }
        files
    }

    fn single(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<Template> {
        self.template(entry, false, problems)
    }

    fn template(&mut self, entry: &Entry<'_>, is_argument: bool, problems: &mut Problems) -> Option<Template> {
        let text = entry.string(problems)?;
        let mut wrong =
            |message: String, hint: &str| problems.refuse(entry.error("program::template", message).hint(hint));
        if text.len() > TEMPLATE_BYTES_MAX {
            return wrong(format!("{} must have at most {TEMPLATE_BYTES_MAX} bytes", entry.key), "shorten it");
        }
        if text.contains('\0') {
            return wrong(format!("{} must not contain NUL", entry.key), "an argument would end there");
        }
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error @ TemplateError::TwoLists) => {
                return wrong(format!("{} {error}", entry.key), "give each list a template of its own");
            }
            Err(error) => {
                return wrong(format!("{} {error}", entry.key), "write \"{name}\" for an argument, \"{{\" for a brace");
            }
        };
        for slot in template.slots() {
            self.check(slot, entry, is_argument, problems);
        }
        Some(template)
    }

    /// Reports a slot without an argument, or with a form that does not fit the schema.
    fn check(&mut self, slot: &Slot, entry: &Entry<'_>, is_argument: bool, problems: &mut Problems) {
        self.used.push(slot.name.clone());
        if !self.understood {
            return;
        }
        let Some((message, hint)) = self.wrong_slot(slot, is_argument) else { return };
        let problem = entry.error("program::slot", format!("{} {message}", entry.key));
        problems.add(problem.hint(hint));
    }

    fn wrong_slot(&self, slot: &Slot, is_argument: bool) -> Option<(String, String)> {
        let program = self.program;
        let name = slot.name.as_str();
        if slot.kind == SlotKind::All {
            return None;
        }
        if slot.kind == SlotKind::Each && !is_argument {
            let message = format!("has the list {{{name}...}}, which gives several arguments");
            return Some((message, format!("write \"{{{name}}}\" for the list as JSON")));
        }
        let Some(property) = program.property(name) else {
            let message = format!("has a slot of {name:?}, which `input` does not have");
            let properties = program.input.get("properties").and_then(Value::as_object);
            let names: Vec<&str> = properties.map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
            let hint = match (did_you_mean(name, names.iter().copied()), names.as_slice()) {
                (Some(meant), _) => format!("did you mean {{{meant}}}?"),
                (None, []) => format!("add input = {{ {name} = \"what it is\" }}"),
                (None, names) => format!("`input` has {}", names.join(", ")),
            };
            return Some((message, hint));
        };
        let sure = program.requires(name) || program.default_of(name).is_some();
        let is_type = |expected: &str| property.get("type").is_none_or(|found| *found == expected || found.is_array());
        match slot.kind {
            SlotKind::Value if !sure => Some((
                format!("needs {name:?}, which a call may leave out"),
                format!("write \"{{{name}?}}\" to leave the template out as well, or make {name} required"),
            )),
            SlotKind::Optional if sure => Some((
                format!("may leave {name:?} out, which a call always has"),
                format!("write \"{{{name}}}\", or make {name} optional"),
            )),
            SlotKind::Switch(_) if sure && !is_type("boolean") => Some((
                format!("switches on {name:?}, which a call always has"),
                format!("write the text without the slot, or make {name} optional or a boolean"),
            )),
            SlotKind::Each if !is_type("array") => Some((
                format!("has a list of {name:?}, which is none"),
                format!("write \"{{{name}}}\", or make {name} an array"),
            )),
            _ => None,
        }
    }

    /// An argument without a template would be requested and ignored.
    fn refuse_unused(&self, tool: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) {
        let all = self.used.iter().any(String::is_empty);
        let Some(properties) = self.program.input.get("properties").and_then(Value::as_object) else { return };
        let span = section.get("input").map_or(tool.key_span.clone(), |entry| entry.key_span);
        for name in properties.keys().filter(|name| self.understood && !all && !self.used.contains(name)) {
            let message = format!("no template takes the argument {name:?}");
            let hint = format!("write \"{{{name}}}\" in args, stdin, env or files, or leave it out of `input`");
            problems.add(Diagnostic::error("program::unused", message).at(span.clone()).hint(hint));
        }
    }
}

fn output(entry: &Entry<'_>, problems: &mut Problems) -> Option<Output> {
    if let Some(text) = entry.as_str() {
        return match text {
            "text" => Some(Output::default()),
            "json" => Some(Output::Json),
            other => {
                let message = format!("output must be \"text\", \"json\" or a table, not {other:?}");
                let hint =
                    "write output = { type = \"image/png\" }, or { file = \"/out/x.png\", type = \"image/png\" }";
                problems.refuse(entry.error("program::output", message).hint(hint))
            }
        };
    }
    if !entry.is_table() {
        return entry.wrong_type("\"text\", \"json\" or a table", problems);
    }
    let section = entry.table(&OUTPUT, problems)?;
    if let Some(stderr) = section.get("stderr") {
        if let Some(other) = section.get("type").or_else(|| section.get("file")) {
            let problem = Diagnostic::error("program::output", "standard error is text, but the answer is bytes");
            return problems.refuse(problem.at(other.key_span).hint("remove it, or `stderr`"));
        }
        return Some(Output::Text { stderr: stderr.boolean(problems)? });
    }
    let file = section.get("file").and_then(|entry| scratch::answer_path(&entry, problems));
    let Some(mime_type) = section.get("type") else {
        let problem = entry.error("manifest::missing", "output has no type");
        return problems.refuse(problem.hint("add type = \"image/png\", or whichever media type the bytes have"));
    };
    let written = mime_type.string(problems)?;
    if !is_media_type(written) {
        let problem = Diagnostic::error("program::output", format!("{written:?} is not a media type"));
        return problems.refuse(problem.at(mime_type.span).hint("write it like \"image/png\""));
    }
    Some(Output::Media { file, mime_type: written.to_owned() })
}

fn is_media_type(text: &str) -> bool {
    let token =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b));
    let (essence, parameters) = text.split_once(';').map_or((text, ""), |(essence, rest)| (essence, rest));
    let pair = essence.split_once('/').is_some_and(|(one, other)| token(one) && token(other));
    pair && text.len() <= MIME_BYTES_MAX && parameters.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

fn output_schema(entry: &Entry<'_>, output: &Output, problems: &mut Problems) -> Option<Map<String, Value>> {
    if *output != Output::Json {
        let message = "output_schema without output = \"json\" can never apply";
        let problem = entry.key_error("program::output", message);
        return problems.refuse(problem.hint("add output = \"json\", or remove it"));
    }
    if !entry.is_table() {
        return entry.wrong_type("a table", problems);
    }
    match entry.json(problems)? {
        Value::Object(schema) => Some(schema),
        _ => None,
    }
}

fn exit_codes(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<u8>> {
    let items = entry.items(256, problems)?;
    let mut codes = Vec::with_capacity(items.len());
    for item in &items {
        match item.as_integer().map(u8::try_from) {
            Some(Ok(code)) => codes.push(code),
            _ => problems.add(
                item.error("program::exit_codes", "an exit code is a number from 0 to 255")
                    .hint("exit_codes are those that are not failures, such as [0, 1]"),
            ),
        }
    }
    if items.is_empty() {
        let problem = Diagnostic::error("program::exit_codes", "every run would be a failure");
        problems.add(problem.at(entry.span.clone()).hint("name the exit codes that are not failures, such as [0, 1]"));
    }
    codes.sort_unstable();
    codes.dedup();
    Some(codes)
}
