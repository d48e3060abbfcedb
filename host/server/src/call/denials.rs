//! What a model is told of what its call was denied.
use toolcell_mcp::{CallResult, Content};
use toolcell_policy::Denial;
use toolcell_sandbox::Redactor;

/// The key under which the `_meta` of a result that is no error carries what the guest was denied.
const DENIALS_KEY: &str = "toolcell/denials";

/// Adds the denials, which may name a secret that the guest tried to carry out, to the result: to an error's text, since they may well be its cause; to the `_meta` of any other, as
/// the tool got along without.
pub fn tell(denials: &[Denial], redactor: &Redactor, result: &mut CallResult) {
    if denials.is_empty() {
        return;
    }
    let mut lines: Vec<String> = denials.iter().map(|denial| redactor.text(&denial.to_string()).into_owned()).collect();
    lines.dedup();
    if result.is_error {
        result.content.push(Content::text(lines.join("\n")));
    } else {
        result.meta.insert(DENIALS_KEY.to_owned(), lines.into());
    }
}
