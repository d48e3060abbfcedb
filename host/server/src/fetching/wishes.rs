//! The wishes that components carry, read and compared with the manifest.

use std::path::Path;

use toolcell_policy::{ComponentPolicy, Diagnostic, Manifest, SourceRef, Wishes};
use toolcell_sandbox::{CarriedWishes, carried_wishes};

use crate::fetching::registries;
use crate::files::file;

/// Characters of a problem that are shown: it may quote a stranger's text.
const PROBLEM_CHARS_MAX: usize = 160;

/// Reads the wishes of a component; `None` where it has none.
///
/// # Errors
/// They cannot be read: one sentence without a full stop, which begins with "the wishes". It may
/// quote them.
pub fn read(carried: &CarriedWishes) -> Result<Option<Wishes>, String> {
    match carried {
        CarriedWishes::None => Ok(None),
        CarriedWishes::Damaged(damage) => Err(format!("the wishes {damage}")),
        CarriedWishes::Text(text) => Wishes::parse(text).map(Some).map_err(|problems| {
            let first = problems.first().map_or("nothing is known", |problem| problem.message());
            let shown: String = first.chars().take(PROBLEM_CHARS_MAX).collect();
            format!("the wishes cannot be read: {shown}")
        }),
    }
}

/// The wishes of a component of a manifest, found in its file or in the store; relative paths start
/// from `folder`. `None` where it cannot be read. Looks at nothing else of it.
pub fn carried_by(manifest: &Manifest, policy: &ComponentPolicy, folder: &Path) -> Option<CarriedWishes> {
    let bytes = match policy.source() {
        SourceRef::File(written) => file::read(&folder.join(written), policy.load().component_bytes()).ok()?,
        SourceRef::Registry(reference) => {
            let store = registries::open_store(manifest.server(), folder).ok()?;
            store.component(reference.digest()?).ok()?.bytes
        }
        _ => return None,
    };
    Some(carried_wishes(&bytes))
}

/// Warnings for grants that go beyond the wishes. Wishes that cannot be read are one warning.
pub fn check(policy: &ComponentPolicy, carried: &CarriedWishes) -> Vec<Diagnostic> {
    match read(carried) {
        Ok(None) => Vec::new(),
        Ok(Some(wishes)) => policy.check_wishes(&wishes),
        Err(problem) => {
            let message = format!("component {:?} carries wishes, and {problem}", policy.name());
            let hint = "nothing is compared with them; ask its publisher for a mended one";
            vec![Diagnostic::warning("components::wishes", message).at(policy.source_span()).hint(hint)]
        }
    }
}
