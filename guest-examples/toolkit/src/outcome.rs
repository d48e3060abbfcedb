//! Reading the arguments of a call and saying how it ended. Holds nothing about single pieces of content.

use crate::{CallResult, Content, Failure};

/// Reads the arguments of a call.
///
/// # Errors
/// [`Failure::InvalidInput`] naming the field. The host checks arguments against the input schema before the
/// call, so this is what remains where the schema says less than the type.
pub fn arguments<T: serde::de::DeserializeOwned>(arguments_json: &str) -> Result<T, Failure> {
    serde_json::from_str(arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))
}

impl CallResult {
    /// A result of these pieces.
    #[must_use]
    pub fn new(content: Vec<Content>) -> Self {
        Self { content, structured_json: None, is_error: false, meta_json: None }
    }

    /// A result that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// A result that is one JSON value. The host adds its text where a client wants one.
    ///
    /// # Errors
    /// [`Failure::Failed`] where the value has no JSON form, such as a map with keys that are not strings.
    pub fn structured(value: &impl serde::Serialize) -> Result<Self, Failure> {
        Self::new(Vec::new()).with_structured(value)
    }

    /// The same result with a JSON value next to its content.
    ///
    /// # Errors
    /// As [`CallResult::structured`].
    pub fn with_structured(mut self, value: &impl serde::Serialize) -> Result<Self, Failure> {
        let json = serde_json::to_string(value).map_err(|error| Failure::Failed(error.to_string()))?;
        self.structured_json = Some(json);
        Ok(self)
    }

    /// The text of a result that is one text and nothing else: for tests.
    #[must_use]
    pub fn only_text(&self) -> Option<&str> {
        match self.content.as_slice() {
            [Content::Text(text)] => Some(&text.text),
            _ => None,
        }
    }
}

impl Failure {
    /// The arguments are wrong: what, and what would be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidInput(message.into())
    }

    /// The component was asked for a tool that it does not list.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::Failed(format!("this component has no tool named {name:?}"))
    }

    /// What it says, whichever it is.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::InvalidInput(message) | Self::Failed(message) => message,
        }
    }
}
