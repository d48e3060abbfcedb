//! Words of commands in hints, and the manifest that this process is about.
use std::borrow::Cow;
use std::path::Path;

use parking_lot::RwLock;
use toolcell_policy::shell::of_manifest;
pub use toolcell_policy::shell::{COMMANDS_OF_MANIFEST, MANIFEST, manifest_words, quoted, word};

/// The manifest that texts of this process name, as the command line has it; empty where commands
/// find it without.
static NAMED: RwLock<String> = RwLock::new(String::new());

/// From now on, commands in texts of this process name this manifest, unless it is the one of the
/// current folder.
pub fn name_manifest(manifest: &Path) {
    let is_default = match (manifest.canonicalize(), Path::new(MANIFEST).canonicalize()) {
        (Ok(named), Ok(default)) => named == default,
        _ => false,
    };
    *NAMED.write() = if is_default { String::new() } else { manifest.to_string_lossy().into_owned() };
}

/// ` --manifest FILE` for a command about the manifest of this process; empty where commands find
/// it without.
#[must_use]
pub fn named_words() -> String {
    manifest_words(&NAMED.read())
}

/// A text for people, in which commands name the manifest of this process.
#[must_use]
pub fn named(text: &str) -> Cow<'_, str> {
    of_manifest(text, &NAMED.read())
}
