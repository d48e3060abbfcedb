//! The capabilities of one tool: its grants prepared at load, as opened folders, resolved values
//! and settings of connections. Each call of the tool borrows them. The policy makes all decisions.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use toolcell_policy::{AdvisedFault, Delivery, EnvSource, Grants, Mount, Secret, SecretSource, Ungranted};
use toolcell_shared::Kept;
use toolcell_walls::folder::Identity;

use crate::files::{OpenedMounts, Surroundings};
use crate::secrets::{CallLogins, HeldSecret, Redactor, SECRET_BYTES_SAFE, SecretValue, Secrets};
use crate::wasi::grant_problem::{GrantNote, GrantProblem};
use crate::wasi::http::ToolHttpClient;
use crate::wasi::keyvalue::{self, GrantedState, StatePlace};
use crate::wasi::net::Resolver;

/// The host's side of a tool's grants.
pub struct GrantSources<'a> {
    /// The folder in which the manifest's relative paths start.
    pub folder: &'a Path,
    /// A variable of the host's environment, for values that the manifest takes `from` it.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The value of a secret, or what is wrong with it and a hint on how to fix it.
    pub secret: &'a dyn Fn(&SecretSource) -> Result<HeldSecret, AdvisedFault>,
    /// The folder of state that tools keep, made when first needed.
    pub state_folder: &'a Path,
    /// The server that keeps their state for all replicas, instead of the folder.
    pub shared_state: Option<&'a Arc<Kept>>,
    /// Name servers; if empty, the system's.
    pub name_servers: &'a [SocketAddr],
    /// True if the guest's attempts are observed: more of them then reach a check that denies and
    /// notes them. It allows nothing.
    pub observing: bool,
}

/// The capabilities of one tool. Immutable; shared by its calls.
pub struct GrantedCapabilities {
    grants: Arc<Grants>,
    keyvalue: Option<Arc<GrantedState>>,
    files: Arc<OpenedMounts>,
    secrets: Arc<Secrets>,
    http: Arc<ToolHttpClient>,
    notes: Arc<[GrantNote]>,
    observing: bool,
}

impl GrantedCapabilities {
    /// Prepares the grants: opens, reads and checks the files, folders and values that they name.
    ///
    /// # Errors
    /// Every grant that cannot be prepared.
    pub fn prepare(grants: &Arc<Grants>, setting: &GrantSources<'_>) -> Result<Arc<Self>, Vec<GrantProblem>> {
        let mut problems: Vec<GrantProblem> = missing_variables(grants, setting).collect();
        let secrets = Arc::new(secrets(grants, setting, &mut problems));
        let place = StatePlace { folder: setting.state_folder, shared: setting.shared_state };
        let keyvalue = keyvalue::prepare(grants, place, &mut problems).map(Arc::new);
        let around = Surroundings { folder: setting.folder, hidden: &[setting.state_folder] };
        let files = OpenedMounts::open(grants.files(), &around).unwrap_or_else(|found| {
            problems.extend(found);
            OpenedMounts::default()
        });
        let notes = files
            .notes()
            .iter()
            .cloned()
            .chain(secrets.short().map(short))
            .chain(secrets.lacking().map(|(secret, reason)| lacking(secret, &reason)))
            .collect();
        let resolver = Resolver::new(setting.name_servers);
        match ToolHttpClient::prepare(grants, setting.folder, resolver, Arc::clone(&secrets)) {
            Ok(http) if problems.is_empty() => {
                let observing = setting.observing;
                let files = Arc::new(files);
                Ok(Arc::new(Self { grants: Arc::clone(grants), keyvalue, files, secrets, http, notes, observing }))
            }
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }

    /// No grants at all: no files, network, environment, configuration or state.
    #[must_use]
    pub fn sealed(component: &str) -> Arc<Self> {
        let grants = Arc::new(Grants::sealed(component, None));
        let http = ToolHttpClient::plain(&grants);
        Arc::new(Self {
            grants,
            keyvalue: None,
            files: Arc::default(),
            secrets: Arc::default(),
            http,
            notes: Arc::default(),
            observing: false,
        })
    }

    /// These capabilities for one call, with the secrets that it brings from its caller's logins.
    #[must_use]
    pub fn of_call(self: &Arc<Self>, logins: &CallLogins) -> Arc<Self> {
        if logins.is_empty() {
            return Arc::clone(self);
        }
        let secrets = self.secrets.of_call(logins);
        Arc::new(Self {
            grants: Arc::clone(&self.grants),
            keyvalue: self.keyvalue.clone(),
            files: Arc::clone(&self.files),
            http: self.http.adding(Arc::clone(&secrets)),
            secrets,
            notes: Arc::clone(&self.notes),
            observing: self.observing,
        })
    }

    /// The manifest's grants.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// True if a person may be asked about what no rule allows.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.grants.ungranted() == Ungranted::Ask
    }

    /// True if the guest's attempts are observed.
    pub(crate) const fn observing(&self) -> bool {
        self.observing
    }

    /// The state that the tool keeps.
    pub(crate) fn keyvalue(&self) -> Option<&GrantedState> {
        self.keyvalue.as_deref()
    }

    /// Grants that follow the manifest, but may not be what its author meant.
    #[must_use]
    pub fn notes(&self) -> &[GrantNote] {
        &self.notes
    }

    /// The file or folder of each mount of the host, as it was opened at load.
    pub fn mounted(&self) -> impl Iterator<Item = (&Mount, Identity)> {
        self.files.mounted()
    }

    /// The mounts, opened.
    pub(crate) fn files(&self) -> &OpenedMounts {
        &self.files
    }

    /// Replaces the values of the tool's secrets by their names, in everything that leaves the
    /// host.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.secrets.redactor()
    }

    /// The values of the secrets that the guest holds, by their sources in the manifest.
    pub fn exposed(&self) -> impl Iterator<Item = (&SecretSource, &SecretValue)> {
        let exposed = self.secrets.iter().filter(|(secret, _)| *secret.delivery() == Delivery::Expose);
        exposed.filter_map(|(secret, value)| Some((secret.source(), value.fixed()?)))
    }

    /// The secrets that have values, each with the bytes of its value.
    pub fn secret_lengths(&self) -> impl Iterator<Item = (&str, usize)> {
        let length = |value: &SecretValue| value.reveal().len();
        self.secrets.iter().filter_map(move |(secret, held)| Some((secret.name(), held.known().first().map(length)?)))
    }

    /// The client for HTTP requests.
    pub(crate) fn http(&self) -> &Arc<ToolHttpClient> {
        &self.http
    }
}

/// Variables of the host's environment that the grants name and that are not set.
fn missing_variables(grants: &Grants, setting: &GrantSources<'_>) -> impl Iterator<Item = GrantProblem> {
    grants.env().iter().filter_map(|variable| match variable.source() {
        EnvSource::Host(name) if (setting.variable)(name).is_none() => Some(GrantProblem {
            span: variable.span(),
            message: format!("the host's environment has no variable {name:?}"),
            hint: format!("set {name} before the host starts, or give the value here"),
            is_value: true,
        }),
        EnvSource::Host(_) | EnvSource::Text(_) => None,
    })
}

fn secrets(grants: &Grants, setting: &GrantSources<'_>, problems: &mut Vec<GrantProblem>) -> Secrets {
    let mut held = Vec::new();
    for secret in grants.secrets() {
        match (setting.secret)(secret.source()) {
            Ok(value) => held.push((secret.clone(), value)),
            Err(fault) => {
                let message = format!("the secret {:?}: {}", secret.name(), fault.problem);
                let hint = fault.hint().unwrap_or_default().to_owned();
                problems.push(GrantProblem { span: secret.span(), message, hint, is_value: true });
            }
        }
    }
    Secrets::new(held)
}

fn short(secret: &Secret) -> GrantNote {
    let message = format!(
        "the value of {:?} has less than {SECRET_BYTES_SAFE} bytes: its encodings are not looked for in what tools give back",
        secret.name()
    );
    GrantNote { span: secret.span(), message }
}

fn lacking(secret: &Secret, reason: &str) -> GrantNote {
    GrantNote { span: secret.span(), message: format!("the secret {:?}: {reason}", secret.name()) }
}
