//! Paths and short texts that several tables have.

use super::{Entry, Problems};
use crate::diagnostic::Diagnostic;

/// The longest path, in bytes: that of operating systems.
const PATH_BYTES_MAX: usize = 4_096;

/// A path of the host: relative to the manifest, or absolute.
pub(crate) fn host_path(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    check_host_path(entry.key, text).map_err(|problem| problems.add(problem.at(entry.span.clone()))).ok()
}

/// Reads a path of the host that is part of another value.
pub(crate) fn check_host_path(key: &str, text: &str) -> Result<String, Diagnostic> {
    let error = |message: &str| Diagnostic::error("grants::path", format!("{key} {message}"));
    let hint = "write a path relative to the manifest, such as \"data\"";
    if text.is_empty() {
        Err(error("must name a path").hint(hint))
    } else if text.contains("://") {
        Err(error("must be a path, not an address").hint(hint))
    } else if text.starts_with('~') {
        Err(error("must not start with a tilde: no shell reads it").hint(hint))
    } else if text.chars().any(char::is_control) {
        Err(error("must not contain control characters"))
    } else if text.len() > PATH_BYTES_MAX {
        Err(error(&format!("must have at most {PATH_BYTES_MAX} bytes")))
    } else {
        Ok(text.to_owned())
    }
}

/// A path of the guest's tree in its normal form.
pub(crate) fn guest_path(text: &str) -> Result<String, &'static str> {
    let Some(inner) = text.strip_prefix('/') else { return Err("must be absolute in the guest's tree") };
    if text.len() > PATH_BYTES_MAX {
        return Err("is too long");
    }
    if text.chars().any(|c| c.is_control() || c == '\\') {
        return Err("must not contain backslashes or control characters");
    }
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() {
        return Ok("/".to_owned());
    }
    if inner.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("must not contain \".\", \"..\" or an empty part");
    }
    Ok(format!("/{inner}"))
}

/// The parts of a host path, with `.` and `..` resolved; for comparing paths of one manifest.
pub(crate) fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}
