//! Definitions and results as JSON texts outside of any conversation: for tools that show what a client would see.

use crate::content::CallResult;
use crate::tool::ToolDefinition;

use super::{Revision, definition, result};

impl Revision {
    /// The entry of `tools/list` for this definition, as this revision has it.
    #[must_use]
    pub fn definition_json(self, definition: &ToolDefinition) -> String {
        let mut out = Vec::new();
        definition::push_definition(&mut out, definition, self.features());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The result of `tools/call`, as this revision has it but for the server's identity: there is no server here.
    #[must_use]
    pub fn result_json(self, result: &CallResult) -> String {
        let mut out = Vec::new();
        result::push_result(&mut out, result, self.features(), "");
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_a_conversation_no_server_is_named() {
        let json = Revision::V2026_07_28.result_json(&CallResult::text("hi"));
        assert_eq!(json, r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}],"isError":false}"#);
    }
}
