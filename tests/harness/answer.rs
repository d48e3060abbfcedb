//! The result of a `tools/call`.

use serde_json::Value;

/// The reply to one `tools/call`.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer(Value);

impl Answer {
    /// The answer in this reply frame.
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
    /// If the reply is a JSON-RPC error.
    #[must_use]
    pub fn result(&self) -> &Value {
        self.0.get("result").unwrap_or_else(|| panic!("a result was expected, not {}", self.0))
    }

    /// True if the result is marked as an error. An absent mark counts as false.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.result()["isError"].as_bool().unwrap_or(false)
    }

    /// The text of a successful result whose only content is one text.
    ///
    /// # Panics
    /// If the result is anything else.
    #[must_use]
    pub fn text(&self) -> &str {
        assert!(!self.is_error(), "no error was expected: {}", self.0);
        self.only_text()
    }

    /// The text of an error result whose only content is one text, with nothing structured.
    ///
    /// # Panics
    /// If the result is anything else.
    #[must_use]
    pub fn error_text(&self) -> &str {
        assert!(self.is_error(), "an error was expected: {}", self.0);
        assert!(self.result().get("structuredContent").is_none(), "an error has no structured content: {}", self.0);
        self.only_text()
    }

    /// The structured content of a successful result.
    ///
    /// # Panics
    /// If the result is an error or has none.
    #[must_use]
    pub fn structured(&self) -> &Value {
        assert!(!self.is_error(), "no error was expected: {}", self.0);
        self.result().get("structuredContent").unwrap_or_else(|| panic!("structured content was expected: {}", self.0))
    }

    /// The denials of the call, as a successful result tells the model of them.
    #[must_use]
    pub fn denials(&self) -> Vec<&str> {
        let lines = self.result()["_meta"]["toolcell/denials"].as_array();
        lines.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The call's use of this, such as `fuel`. The manifest has to say `usage = true`.
    ///
    /// # Panics
    /// If the result does not say it.
    #[must_use]
    pub fn used(&self, what: &str) -> u64 {
        let used = &self.result()["_meta"]["toolcell/usage"][what];
        used.as_u64().unwrap_or_else(|| panic!("no {what} in {}", self.0))
    }

    /// All text of the reply: everything that a model, a client and its log can read of it.
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

/// True if a text is `before` and then `whole` seconds, less at most those that have passed since
/// `began`: "20m", or "19m59s" where a call took a second.
#[must_use]
pub fn is_told_to_wait(text: &str, before: &str, whole: u64, began: std::time::Instant) -> bool {
    let shown = |seconds: u64| {
        let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect::<String>()
    };
    let least = whole.saturating_sub(began.elapsed().as_secs() + 1);
    (least..=whole).any(|seconds| text.strip_prefix(before) == Some(&shown(seconds)))
}
