//! The server's identity for clients: its name, its limits, the key that seals state they return.
//! Must not hold: its tools.
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::{STATE_KEY_BYTES_MIN, Server, ServerInfo, ServerOptions, StateKey};
use toolcell_policy::{Manifest, SecretSource};

use crate::catalog::folder_of;
use crate::error::StartError;
use crate::reload::Current;
use crate::secrets;

/// The protocol's server, which serves the current catalog.
pub(super) fn server(
    path: &Path,
    manifest: &Manifest,
    current: &Arc<Current>,
) -> Result<Arc<Server<Current>>, StartError> {
    let (info, mut options) = described(manifest);
    if let Some(source) = manifest.server().state_key() {
        options.state_key = state_key(source, &folder_of(path))
            .map_err(|(problem, hint)| StartError::refused(format!("state_key: {problem}")).hint_if(Some(hint)))?;
    }
    Ok(Arc::new(Server::new(Arc::clone(current), info, options)))
}

/// Name and limits of the server from the manifest.
fn described(manifest: &Manifest) -> (ServerInfo, ServerOptions) {
    let server = manifest.server();
    let info = ServerInfo {
        name: server.name().to_owned(),
        title: server.title().map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: server.instructions().map(str::to_owned),
        ..ServerInfo::default()
    };
    let options = ServerOptions {
        page_size: server.page_size(),
        in_flight_max: server.in_flight_max(),
        pending_calls_max: server.pending_max(),
        ..ServerOptions::default()
    };
    (info, options)
}

/// The key that several processes share which serve the same clients.
fn state_key(source: &SecretSource, folder: &Path) -> Result<StateKey, (String, String)> {
    let (value, shown) = secrets::text(source, folder)?;
    StateKey::of(value.as_bytes()).map_err(|weak| {
        let hint = format!("make one of at least {STATE_KEY_BYTES_MIN} bytes, such as `openssl rand -hex 32` gives");
        (format!("{shown}: {weak}"), hint)
    })
}
