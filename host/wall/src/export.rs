//! The exports of a component by their paths: a tool by its own name, which never contains a `/`,
//! and every other export by a path. Calls, limits and records name an export by its path.

/// Begins the path of a prompt.
const PROMPT: &str = "prompt/";

/// The path of the contract's `completion`.
pub const COMPLETION: &str = "completion/complete";

/// The path of the contract's `resources`: reading one.
pub const RESOURCES: &str = "resource/read";

/// The path of the prompt with this name in the component.
#[must_use]
pub fn prompt(name: &str) -> String {
    format!("{PROMPT}{name}")
}

/// The component's own name of the prompt at this path; `None` if it is another export's.
#[must_use]
pub fn prompt_of(path: &str) -> Option<&str> {
    path.strip_prefix(PROMPT)
}
