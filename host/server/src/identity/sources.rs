//! What a server reads at its start apart from components: said by a check beforehand.
use std::path::Path;

use toolcell_mcp::{STATE_KEY_BYTES_MIN, StateKey};
use toolcell_policy::{AdvisedFault, Diagnostic, Manifest, SecretSource};

use super::secrets;
use super::token_file::TokenFile;

/// Warnings about files and variables that a start would need, and that cannot be read here: where
/// a manifest is checked, they are often not at hand.
pub(crate) fn unreadable(manifest: &Manifest, folder: &Path) -> Vec<Diagnostic> {
    let warning = |fault: AdvisedFault, name: &str| {
        let warning = Diagnostic::warning("serve::unreadable", format!("serving fails: {name}: {}", fault.problem));
        match fault.hint() {
            Some(hint) => warning.hint(hint),
            None => warning,
        }
    };
    let mut found = Vec::new();
    if let Some(source) = manifest.server().state_key()
        && let Err(fault) = read_key(source, folder)
    {
        found.push(warning(fault, "state_key"));
    }
    if let Some(source) = manifest.alerts().and_then(|alerts| alerts.url().and(alerts.secret()))
        && let Err(fault) = secrets::text(source, folder)
    {
        found.push(warning(fault, "[alerts]"));
    }
    if let Some(file) = manifest.http().and_then(|http| http.tokens())
        && let Err(problem) = TokenFile::at(folder.join(file)).read()
    {
        found.push(warning(AdvisedFault::new(problem, "`toolcell token new NAME` writes the file"), "[http] tokens"));
    }
    found
}

/// The key that seals what clients return, from its source.
pub(crate) fn read_key(source: &SecretSource, folder: &Path) -> Result<StateKey, AdvisedFault> {
    let (value, shown) = secrets::text(source, folder)?;
    StateKey::of(value.as_bytes()).map_err(|weak| {
        let hint = format!("make one of at least {STATE_KEY_BYTES_MIN} bytes, such as `openssl rand -hex 32` gives");
        AdvisedFault::new(format!("{shown}: {weak}"), hint)
    })
}
