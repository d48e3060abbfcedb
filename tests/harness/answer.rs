//! What a `tools/call` came back with.

use serde_json::Value;

/// The reply to one `tools/call`.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer(Value);

impl Answer {
    /// Of this reply frame.
    #[must_use]
    pub fn new(reply: Value) -> Self {
        Self(reply)
    }

    /// The whole reply frame.
    #[must_use]
    pub fn reply(&self) -> &Value {
        &self.0
    }

    /// The result.
    ///
    /// # Panics
    /// Where the reply is a JSON-RPC error.
    #[must_use]
    pub fn result(&self) -> &Value {
        self.0.get("result").unwrap_or_else(|| panic!("a result was expected, not {}", self.0))
    }

    /// Whether the result says that it is an error. Absent counts as no.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.result()["isError"].as_bool().unwrap_or(false)
    }

    /// The text of a result that is no error and has exactly one piece of content, a text.
    ///
    /// # Panics
    /// Where the result is anything else.
    #[must_use]
    pub fn text(&self) -> &str {
        assert!(!self.is_error(), "no error was expected: {}", self.0);
        self.only_text()
    }

    /// The text of a result that is an error and has exactly one piece of content, a text, and
    /// nothing structured.
    ///
    /// # Panics
    /// Where the result is anything else.
    #[must_use]
    pub fn error_text(&self) -> &str {
        assert!(self.is_error(), "an error was expected: {}", self.0);
        assert!(self.result().get("structuredContent").is_none(), "an error has no structured content: {}", self.0);
        self.only_text()
    }

    /// The structured content of a result that is no error.
    ///
    /// # Panics
    /// Where the result is an error or has none.
    #[must_use]
    pub fn structured(&self) -> &Value {
        assert!(!self.is_error(), "no error was expected: {}", self.0);
        self.result().get("structuredContent").unwrap_or_else(|| panic!("structured content was expected: {}", self.0))
    }

    /// What the call was denied, as the model is told of it beside a result that is no error.
    #[must_use]
    pub fn denials(&self) -> Vec<&str> {
        let lines = self.result()["_meta"]["toolcell/denials"].as_array();
        lines.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// All text of the whole reply: what a model, a client and its log may ever read of it.
    #[must_use]
    pub fn everything(&self) -> String {
        self.0.to_string()
    }

    fn only_text(&self) -> &str {
        match self.result()["content"].as_array().map(Vec::as_slice) {
            Some([content]) if content["type"] == "text" => content["text"].as_str().unwrap(),
            _ => panic!("exactly one text was expected: {}", self.0),
        }
    }
}
