//! Who signs in at the console, according to the manifest.
use std::path::Path;
use std::sync::Arc;

use toolcell_policy::{ConsolePolicy, Manifest};

use super::transport::Transport;
use crate::error::StartError;
use crate::http;
use crate::identity::Authenticator;
use crate::operators::console::{BoundConsole, Operators};
use crate::reload::Current;
use crate::replicas::replicated_sets::ReplicatedSets;

/// What is needed besides the manifest to check tokens.
pub(super) struct Checks<'a> {
    /// The manifest's folder.
    pub folder: &'a Path,
    pub transport: &'a Transport,
    /// The replicated sets, if replicas share state.
    pub replicated_sets: Option<&'a Arc<ReplicatedSets>>,
}

impl Checks<'_> {
    /// Checks tokens of callers and operators; `None` if there are none.
    pub(super) fn authenticator(&self, operators: Option<&Operators>) -> Option<Arc<Authenticator>> {
        self.transport.authenticator().or_else(|| Some(&operators?.authenticator)).map(Arc::clone)
    }
}

/// The operators of the console; `None` if none are named. Over HTTP the transport checks their
/// tokens. Over stdio the files are read only for the console.
pub(super) fn open(
    manifest: &Manifest,
    console: &mut BoundConsole,
    current: &Arc<Current>,
    checks: &Checks<'_>,
) -> Result<Option<Operators>, StartError> {
    let names = manifest.console().map(ConsolePolicy::operators).unwrap_or_default();
    if names.is_empty() {
        return Ok(None);
    }
    let authenticator = match checks.transport.authenticator() {
        Some(authenticator) => Some(Arc::clone(authenticator)),
        None => {
            let opened = http::authenticator(manifest, checks.folder, &mut console.polling)?.map(Arc::new);
            if let (Some(authenticator), Some(sets)) = (&opened, checks.replicated_sets) {
                authenticator.share(sets, &checks.folder.join(manifest.server().state()));
            }
            opened
        }
    };
    Ok(authenticator.map(|authenticator| Operators::new(Arc::clone(current), authenticator)))
}
