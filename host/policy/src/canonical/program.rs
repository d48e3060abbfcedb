//! A tool's program as JSON that does not depend on how the manifest was written.

use serde_json::{Map, Value, json};

use crate::program::{Arg, Output, Program, Template};

impl Program {
    /// The templates as written, the schemas with sorted keys, without default values.
    #[must_use]
    pub fn canonical(&self) -> Value {
        let texts = |arg: &Arg| -> Value {
            match arg.0.as_slice() {
                [only] => json!(only.text()),
                several => several.iter().map(Template::text).collect(),
            }
        };
        let mut form = Map::new();
        if !self.args.is_empty() {
            form.insert("args".to_owned(), self.args.iter().map(texts).collect());
        }
        if !self.env.is_empty() {
            form.insert("env".to_owned(), named(&self.env));
        }
        if self.exit_codes != [0] {
            form.insert("exit_codes".to_owned(), json!(self.exit_codes));
        }
        if !self.files.is_empty() {
            form.insert("files".to_owned(), named(&self.files));
        }
        form.insert("input".to_owned(), sorted(&Value::Object(self.input.clone())));
        match &self.output {
            Output::Text { stderr: false } => {}
            Output::Text { stderr: true } => drop(form.insert("output".to_owned(), json!({"stderr": true}))),
            Output::Json => drop(form.insert("output".to_owned(), json!("json"))),
            Output::Media { file, mime_type } => {
                let mut media = Map::new();
                if let Some(file) = file {
                    media.insert("file".to_owned(), json!(file));
                }
                media.insert("type".to_owned(), json!(mime_type));
                form.insert("output".to_owned(), Value::Object(media));
            }
        }
        if let Some(schema) = &self.output_schema {
            form.insert("output_schema".to_owned(), sorted(&Value::Object(schema.clone())));
        }
        if let Some(stdin) = &self.stdin {
            form.insert("stdin".to_owned(), json!(stdin.text()));
        }
        Value::Object(form)
    }
}

fn named(templates: &[(String, Template)]) -> Value {
    let mut named: Vec<_> = templates.iter().map(|(name, template)| (name.clone(), json!(template.text()))).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    Value::Object(named.into_iter().collect())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
