//! Saying what a tool is. Holds nothing about calls.

use crate::{Hints, Icon, Tool};

impl Tool {
    /// A tool with this name, description for the model, and JSON Schema of its arguments. Everything else is
    /// not said.
    #[must_use]
    pub fn new(name: &str, description: &str, input_schema: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: None,
            description: description.to_owned(),
            input_schema_json: input_schema.to_owned(),
            output_schema_json: None,
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    /// The JSON Schema of its structured results.
    #[must_use]
    pub fn output(mut self, output_schema: &str) -> Self {
        self.output_schema_json = Some(output_schema.to_owned());
        self
    }

    /// Says that it only computes: it changes nothing, gives the same answer each time, and looks at nothing
    /// outside itself.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.hints = Some(Hints {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        });
        self
    }

    /// Adds a picture for user interfaces: an `https:` or `data:` URI, its type, and its sizes, such as `48x48`
    /// or `any`.
    #[must_use]
    pub fn icon(mut self, src: &str, mime_type: &str, sizes: &str) -> Self {
        self.icons.push(Icon {
            src: src.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            sizes: vec![sizes.to_owned()],
            theme: None,
        });
        self
    }
}
