//! The requested permissions that components carry, read and compared with the manifest.

use std::path::Path;

use toolcell_policy::{ComponentPolicy, Diagnostic, Manifest, RequestedPermissions, SourceRef};
use toolcell_sandbox::{CarriedPermissions, carried_permissions};

use crate::fetching::registries;
use crate::files::{file, shipped};

/// Characters of a problem that are shown: it may quote a stranger's text.
const PROBLEM_CHARS_MAX: usize = 160;

/// Reads the requested permissions of a component; `None` where it has none.
///
/// # Errors
/// They cannot be read: one sentence without a full stop, which begins with "the requested
/// permissions". It may quote them.
pub fn read(carried: &CarriedPermissions) -> Result<Option<RequestedPermissions>, String> {
    match carried {
        CarriedPermissions::None => Ok(None),
        CarriedPermissions::Damaged(damage) => Err(format!("the requested permissions {damage}")),
        CarriedPermissions::Text(text) => RequestedPermissions::parse(text).map(Some).map_err(|problems| {
            let first = problems.first().map_or("nothing is known", |problem| problem.message());
            let shown: String = first.chars().take(PROBLEM_CHARS_MAX).collect();
            format!("the requested permissions cannot be read: {shown}")
        }),
    }
}

/// The requested permissions of a component of a manifest, found in its file or in the store;
/// relative paths start from `folder`. `None` where it cannot be read. Looks at nothing else of it.
pub fn carried_by(manifest: &Manifest, policy: &ComponentPolicy, folder: &Path) -> Option<CarriedPermissions> {
    let bytes = match policy.source() {
        SourceRef::File(written) => file::read(&folder.join(written), policy.load().component_bytes()).ok()?,
        SourceRef::Registry(reference) => {
            let store = registries::open_store(manifest.server(), folder).ok()?;
            store.component(reference.digest()?).ok()?.bytes
        }
        SourceRef::Shipped => file::read(&shipped::engine()?, policy.load().component_bytes()).ok()?,
        _ => return None,
    };
    Some(carried_permissions(&bytes))
}

/// Warnings for grants that go beyond the requested permissions. Requested permissions that cannot
/// be read are one warning.
pub fn check(policy: &ComponentPolicy, carried: &CarriedPermissions) -> Vec<Diagnostic> {
    match read(carried) {
        Ok(None) => Vec::new(),
        Ok(Some(requested)) => policy.check_requested(&requested),
        Err(problem) => {
            let message = format!("component {:?} requests permissions, but {problem}", policy.name());
            let hint = "nothing is compared with them; ask its publisher for a mended one";
            vec![Diagnostic::warning("components::permissions", message).at(policy.source_span()).hint(hint)]
        }
    }
}
