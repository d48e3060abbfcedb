//! The extensions of the protocol that a client declares.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::frame::scan;

/// Longest declaration that is kept, in bytes: dozens of extensions with their settings. A longer
/// one counts as none.
const BYTES_MAX: usize = 4_096;

/// The member of the capabilities.
const MEMBER: &str = "extensions";

#[derive(Deserialize)]
struct DeclaredExtensions<'a> {
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

/// The extensions that these `ClientCapabilities` declare, as a JSON object; `None` without any.
pub(crate) fn declared(capabilities: &str) -> Option<Arc<str>> {
    if !capabilities.contains(MEMBER) {
        return None;
    }
    let declared: DeclaredExtensions<'_> = serde_json::from_str(capabilities).ok()?;
    let text = declared.extensions?.get();
    (text.len() <= BYTES_MAX && scan::is_object(text) && text != "{}").then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_bounded_length_is_kept_as_it_is() {
        let long = format!(r#"{{"extensions":{{"a":"{}"}}}}"#, "x".repeat(BYTES_MAX));
        for (capabilities, kept) in [
            ("{}", None),
            (r#"{"extensions":{}}"#, None),
            (r#"{"extensions":7}"#, None),
            (r#"{"extensions":null}"#, None),
            (r#"{"sampling":{"extensions":{"a":{}}}}"#, None),
            (r#"{"roots":{},"extensions":{"a/b":{"c":[1]}}}"#, Some(r#"{"a/b":{"c":[1]}}"#)),
            (&long, None),
        ] {
            assert_eq!(declared(capabilities).as_deref(), kept, "{capabilities}");
        }
    }
}
