//! What a model is told of what its call was denied.
use toolcell_mcp::{CallResult, Content};
use toolcell_policy::Denial;

/// The key under which the `_meta` of a result that is no error carries what the guest was denied.
const DENIALS_KEY: &str = "toolcell/denials";

/// Adds the denials to the result: to an error's text, since they may well be its cause; to the `_meta` of any other, as
/// the tool got along without.
pub fn tell(denials: &[Denial], result: &mut CallResult) {
    if denials.is_empty() {
        return;
    }
    let mut lines: Vec<String> = denials.iter().map(ToString::to_string).collect();
    lines.dedup();
    if result.is_error {
        result.content.push(Content::text(lines.join("\n")));
    } else {
        result.meta.insert(DENIALS_KEY.to_owned(), lines.into());
    }
}
