//! What a server reads at its start apart from components.
use std::path::Path;

use toolcell_mcp::{STATE_KEY_BYTES_MIN, StateKey};
use toolcell_policy::{AdvisedFault, SecretSource};

use super::secrets;

/// The key that seals what clients return, from its source.
pub(crate) fn read_key(source: &SecretSource, folder: &Path) -> Result<StateKey, AdvisedFault> {
    let (value, shown) = secrets::text(source, folder)?;
    StateKey::of(value.as_bytes()).map_err(|weak| {
        let hint = format!("make one of at least {STATE_KEY_BYTES_MIN} bytes, such as `openssl rand -hex 32` gives");
        AdvisedFault::new(format!("{shown}: {weak}"), hint)
    })
}
