//! Calls of a tool that become runs of a command-line program: templates for its arguments,
//! standard input, environment and files, and what of the run is the answer. Must not hold: how
//! they are written in a manifest, or running.
//!
//! A template is a text with slots. Each template of `args` gives whole arguments: a value never
//! splits into two, never joins its neighbour, and no shell ever sees it.
//!
//! | slot | gives | without a value |
//! |---|---|---|
//! | `{name}` | the call's argument `name`: a text as it is, anything else as JSON; else the schema's `default` | the call is refused |
//! | `{name?}` | the same | the template is left out |
//! | `{name?TEXT}` | TEXT, where the argument is there and is not `false` | the template is left out |
//! | `{name...}` | one argument for each item of a list; in `args` only | none |
//! | `{name!}`, `{name!?}`, `{name!...}` | the same, and may begin with `-` | |
//! | `{*}` | all arguments of the call, as one JSON text | |
//! | `{{`, `}}` | a brace | |
//!
//! `null` counts as no value. A value that begins with `-` could pass for an option of the program.
//! Where a slot begins an argument, such a text is refused. An argument `--` before it, or the
//! slot's `!`, allows it. Numbers pass.

mod expand;
mod template;

use serde_json::{Map, Value};

use crate::diagnostic::Span;
use crate::settings::accessors;

pub use expand::{ARGUMENTS_MAX, ExpandError, INVOCATION_BYTES_MAX, Invocation};
pub(crate) use template::{Part, Slot, SlotKind, Template, TemplateError};

accessors! {
    /// The templates that turn a call of a tool into a run of a program, and what part of the run
    /// is the answer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Program {
        pub(crate) input: Map<String, Value>,
        pub(crate) args: Vec<Arg>,
        pub(crate) stdin: Option<Template>,
        pub(crate) env: Vec<(String, Template)>,
        /// By their paths in the guest's tree, each directly in scratch space of the call.
        pub(crate) files: Vec<(String, Template)>,
        /// The part of a run that is the answer.
        pub(crate) output: Output => &Output,
        /// The JSON Schema of the program's output; only with [`Output::Json`].
        pub(crate) output_schema: Option<Map<String, Value>> => Option<&Map<String, Value>>,
        pub(crate) exit_codes: Vec<u8>,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
    }
}

/// An entry of `args`: a template, or a group of templates that are given together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arg(pub(crate) Vec<Template>);

/// The part of a run that is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Standard output, as text.
    Text {
        /// Standard error follows it, as a text of its own.
        stderr: bool,
    },
    /// Standard output, as one JSON value.
    Json,
    /// Bytes of this media type: an image, a sound, or any other kind as a resource.
    Media {
        /// The file that contains them after the run, in the guest's tree; `None`: standard output.
        file: Option<String>,
        /// Such as `image/png`.
        mime_type: String,
    },
}

impl Default for Output {
    fn default() -> Self {
        Self::Text { stderr: false }
    }
}

// A schema holds no NaN: TOML's are refused where it is read.
impl Eq for Program {}

impl Program {
    /// A program that takes nothing, and whose standard output is the answer.
    #[must_use]
    pub fn plain(span: Span) -> Self {
        let input = Map::from_iter([
            ("type".to_owned(), Value::from("object")),
            ("properties".to_owned(), Value::Object(Map::new())),
            ("additionalProperties".to_owned(), Value::Bool(false)),
        ]);
        let args = Vec::new();
        let env = Vec::new();
        let files = Vec::new();
        let stdin = None;
        let output = Output::default();
        let output_schema = None;
        let exit_codes = vec![0];
        Self { input, args, stdin, env, files, output, output_schema, exit_codes, span }
    }

    /// The JSON Schema of the tool's arguments.
    #[must_use]
    pub const fn input_schema(&self) -> &Map<String, Value> {
        &self.input
    }

    /// True if this exit code means success; any other is an error of the tool.
    #[must_use]
    pub fn is_fine(&self, exit_code: u8) -> bool {
        self.exit_codes.contains(&exit_code)
    }

    /// The settings of a run in words, one line for each template.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.args.is_empty() {
            let args: Vec<String> = self.args.iter().map(Arg::show).collect();
            lines.push(format!("runs with the arguments {}", args.join(" ")));
        }
        lines.extend(self.env.iter().map(|(name, template)| format!("runs with {name} = {:?}", template.text())));
        lines.extend(self.stdin.iter().map(|template| format!("runs with the standard input {:?}", template.text())));
        lines.extend(
            self.files.iter().map(|(path, template)| format!("runs with the file {path} = {:?}", template.text())),
        );
        if let Output::Media { file: Some(file), mime_type } = &self.output {
            lines.push(format!("answers with the file {file} ({mime_type})"));
        }
        if self.output == (Output::Text { stderr: true }) {
            lines.push("answers with standard output and standard error".to_owned());
        }
        lines
    }
}

impl Arg {
    fn show(&self) -> String {
        let shown: Vec<String> = self.0.iter().map(|template| format!("{:?}", template.text())).collect();
        match shown.as_slice() {
            [only] => only.clone(),
            _ => format!("[{}]", shown.join(" ")),
        }
    }
}
