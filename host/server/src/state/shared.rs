//! Opens the state that replicas share.
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use toolcell_policy::{Manifest, RatesWhileAway, SecretSource, SharedServer, StatePolicy};
use toolcell_shared::{
    Arrangement, BadAddress, Bus, Kept, SharedState, SharedTasks, Shelf, Tasks, Valkey, ValkeyOptions,
};

use crate::error::StartError;
use crate::files::file::read_bounded;
use crate::identity::login::CallerLogins;
use crate::identity::secrets;

/// Bytes of certificate authorities: a few times what a system has.
const AUTHORITIES_BYTES_MAX: u64 = 2 << 20;

/// The state that replicas share, and their bus.
pub struct Shared {
    pub state: Arc<dyn SharedState>,
    pub bus: Arc<dyn Bus>,
    /// Resources that tools embedded in results.
    pub resources: Arc<Shelf>,
}

/// The shared state. Its server need not respond yet. Relative paths start from `folder`.
pub fn open(policy: &StatePolicy, folder: &Path) -> Result<Option<Shared>, StartError> {
    let Some(server) = policy.shared() else { return Ok(None) };
    let options = options(policy, server, folder)?;
    let resources = Arc::new(Shelf::new(options.clone()).map_err(refused)?);
    let valkey = Valkey::new(options).map_err(refused)?;
    let state = Arc::new(match policy.rates_while_away() {
        RatesWhileAway::Closed => valkey,
        RatesWhileAway::Local => valkey.counting_here_while_away(),
    });
    let bus: Arc<dyn Bus> = Arc::<Valkey>::clone(&state);
    Ok(Some(Shared { state, bus, resources }))
}

/// Tasks that `make` keeps on the server that replicas share; `None` if each process keeps its own.
/// Relative paths start from `folder`.
pub fn tasks(
    policy: Option<&StatePolicy>,
    folder: &Path,
    make: impl FnOnce(ValkeyOptions) -> Result<SharedTasks, BadAddress>,
) -> Result<Option<Arc<dyn Tasks>>, StartError> {
    let Some((policy, server)) = policy.and_then(|policy| Some((policy, policy.shared()?))) else { return Ok(None) };
    let tasks = make(options(policy, server, folder)?).map_err(refused)?;
    Ok(Some(Arc::new(tasks)))
}

/// State of tools on the server that replicas share. Opened for the first component that is granted
/// any, so that otherwise the server's password is not needed.
#[derive(Default)]
pub struct SharedKept {
    policy: Option<StatePolicy>,
    folder: PathBuf,
    opened: OnceLock<Result<Option<Arc<Kept>>, StartError>>,
}

impl SharedKept {
    /// Relative paths start from `folder`.
    pub fn new(policy: Option<&StatePolicy>, folder: &Path) -> Self {
        Self { policy: policy.cloned(), folder: folder.to_owned(), opened: OnceLock::new() }
    }

    /// The state; `None` if each process keeps its own.
    pub fn get(&self) -> Result<Option<&Arc<Kept>>, &StartError> {
        self.opened.get_or_init(|| self.open()).as_ref().map(Option::as_ref)
    }

    fn open(&self) -> Result<Option<Arc<Kept>>, StartError> {
        let Some(policy) = &self.policy else { return Ok(None) };
        let Some(server) = policy.shared() else { return Ok(None) };
        Kept::new(options(policy, server, &self.folder)?).map(Some).map_err(refused)
    }
}

/// The logins of a manifest's callers, for a command: on the server that replicas share, or in the
/// folder of states. Relative paths start from `folder`.
///
/// # Errors
/// The shared server can never be used.
pub fn caller_logins(manifest: &Manifest, folder: &Path, runtime: &Handle) -> Result<CallerLogins, StartError> {
    let logins = CallerLogins::of_manifest(manifest, folder);
    if let Some(Shared { state, .. }) = manifest.state().map(|policy| open(policy, folder)).transpose()?.flatten() {
        share_logins(&logins, manifest, folder, &state, runtime)?;
    }
    Ok(logins)
}

/// Puts callers' logins on the server that replicas share. A reload may add the first of them.
pub fn share_logins(
    logins: &CallerLogins,
    manifest: &Manifest,
    folder: &Path,
    state: &Arc<dyn SharedState>,
    runtime: &Handle,
) -> Result<(), StartError> {
    let kept = SharedKept::new(manifest.state(), folder);
    let kept = kept.get().map_err(|error| StartError::refused(error.to_string()))?;
    kept.into_iter().for_each(|kept| logins.share(Arc::clone(kept), Arc::clone(state), runtime.clone()));
    Ok(())
}

fn refused(problem: BadAddress) -> StartError {
    StartError::refused(format!("[state]: {problem}"))
}

fn options(policy: &StatePolicy, server: &SharedServer, folder: &Path) -> Result<ValkeyOptions, StartError> {
    let mut places = policy.places().into_iter().map(|(host, port)| (host.to_owned(), port));
    let (host, port) = places.next().unwrap_or_default();
    Ok(ValkeyOptions {
        host,
        port,
        arrangement: arrangement(policy, places.collect(), folder)?,
        tls: server.tls(),
        authorities_pem: policy.authorities().map(|path| authorities(path, folder)).transpose()?,
        user: policy.user().map(str::to_owned),
        password: password("password", policy.password(), folder)?,
        database: server.database(),
        prefix: policy.prefix().to_owned(),
        within: policy.within(),
        copies: u16::try_from(policy.copies()).unwrap_or(u16::MAX),
    })
}

fn arrangement(policy: &StatePolicy, others: Vec<(String, u16)>, folder: &Path) -> Result<Arrangement, StartError> {
    Ok(match policy.sentinel() {
        Some(main) => Arrangement::Sentinels {
            main: main.to_owned(),
            others,
            user: policy.sentinel_user().map(str::to_owned),
            password: password("sentinel_password", policy.sentinel_password(), folder)?,
        },
        None if policy.cluster() => Arrangement::Cluster { others },
        None => Arrangement::Alone,
    })
}

/// The password of this key. The client keeps its own copy for reconnecting.
fn password(key: &str, source: Option<&SecretSource>, folder: &Path) -> Result<Option<String>, StartError> {
    let found = source.map(|source| secrets::text(source, folder)).transpose();
    let found = found.map_err(|fault| fault.of(format_args!("[state] {key}")))?;
    Ok(found.map(|(password, _)| password.as_str().to_owned()))
}

fn authorities(path: &str, folder: &Path) -> Result<Vec<u8>, StartError> {
    read_bounded(&folder.join(path), AUTHORITIES_BYTES_MAX)
        .map_err(|problem| StartError::refused(format!("[state] authorities: {path} {problem}")))
}
