//! Denials of a call, as shown to the model.
use toolcell_mcp::{CallResult, Content};
use toolcell_policy::Denial;
use toolcell_sandbox::Redactor;

/// Key in a result's `_meta` for the guest's denials, if the result is not an error.
const DENIALS_KEY: &str = "toolcell/denials";

/// Adds the denials to the result, without secrets that they may name. An error's text gets them,
/// since they are its likely cause. Any other result gets them in `_meta`, as the tool got along
/// without.
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
