//! Reads `[audit]`. Must not hold: what is recorded.

use super::{Entry, Problems, Section, keys, limits, paths};
use crate::diagnostic::Diagnostic;
use crate::manifest::audit::{AuditArguments, AuditPolicy, Fsync, KEEP, ROTATE};

/// The settings; the defaults for what is missing or wrong.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> AuditPolicy {
    let mut audit = AuditPolicy::default();
    let Some(section) = root.get("audit").and_then(|entry| entry.section(problems)) else { return audit };
    section.check_keys(&keys::AUDIT, problems);
    audit.file = section.get("file").and_then(|entry| paths::host_path(&entry, problems));
    for (spec, value) in [(&ROTATE, &mut audit.rotate_bytes), (&KEEP, &mut audit.keep)] {
        if let Some(read) = section.get(spec.key).and_then(|entry| limits::value(&entry, spec, problems)) {
            *value = read;
        }
    }
    if let Some(required) = section.get("required").and_then(|entry| entry.boolean(problems)) {
        audit.required = required;
    }
    if let Some(entry) = section.get("fsync")
        && let Some(always) = second_of(&entry, ["never", "always"], problems)
    {
        audit.fsync = if always { Fsync::Always } else { Fsync::Never };
    }
    if let Some(entry) = section.get("arguments")
        && let Some(values) = second_of(&entry, ["digest", "values"], problems)
    {
        audit.arguments = if values { AuditArguments::Values } else { AuditArguments::Digest };
    }
    audit
}

/// Whether a text is the second of two words.
pub(crate) fn second_of(entry: &Entry<'_>, words: [&str; 2], problems: &mut Problems) -> Option<bool> {
    let text = entry.string(problems)?;
    let [first, second] = words;
    if text == first || text == second {
        return Some(text == second);
    }
    let message = format!("{} must be \"{first}\" or \"{second}\", not {text:?}", entry.key);
    problems.add(Diagnostic::error("manifest::choice", message).at(entry.span.clone()));
    None
}
