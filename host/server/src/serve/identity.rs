//! The server's identity for clients: its name, its limits, and the key that seals the state they
//! return.
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::{McpServer, ServerInfo, ServerOptions, StateKey};
use toolcell_policy::Manifest;

use crate::catalog::folder_of;
use crate::catalog::texts::icon;
use crate::error::StartError;
use crate::identity::sources::read_key;
use crate::reload::Current;

/// The protocol's server, which serves the current catalog.
pub(super) fn server(
    manifest: &Manifest,
    state_key: Option<StateKey>,
    current: &Arc<Current>,
) -> Arc<McpServer<Current>> {
    let (info, mut options) = described(manifest);
    if let Some(state_key) = state_key {
        options.state_key = state_key;
    }
    Arc::new(McpServer::new(Arc::clone(current), info, options))
}

/// The key that replicas share, if the manifest names one.
pub(super) fn state_key(path: &Path, manifest: &Manifest) -> Result<Option<StateKey>, StartError> {
    let Some(source) = manifest.server().state_key() else { return Ok(None) };
    let key = read_key(source, &folder_of(path)).map_err(|fault| fault.of("state_key"))?;
    Ok(Some(key))
}

fn described(manifest: &Manifest) -> (ServerInfo, ServerOptions) {
    let server = manifest.server();
    let info = ServerInfo {
        name: server.name().to_owned(),
        title: server.title().map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: server.description().map(str::to_owned),
        website_url: server.website().map(str::to_owned),
        icons: server.icons().iter().map(icon).collect(),
        instructions: server.instructions().map(str::to_owned),
    };
    let options = ServerOptions {
        page_size: server.page_size(),
        in_flight_max: server.in_flight_max(),
        pending_calls_max: server.pending_max(),
        listens_max: server.subscriptions_max(),
        watched_max: server.watched_max(),
        caller_watched_max: server.caller_watched_max(),
        ..ServerOptions::default()
    };
    (info, options)
}
