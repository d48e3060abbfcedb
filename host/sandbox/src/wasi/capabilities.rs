//! The capabilities of one tool: its grants made ready at load, as opened folders, resolved values
//! and settings of connections. Each call of the tool borrows them. No decisions: those are the
//! policy's.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use toolcell_policy::{Delivery, EnvSource, Grants, Mount, Secret, SecretSource, Ungranted};
use toolcell_shared::Kept;

use crate::secrets::{HeldSecret, Redactor, SECRET_BYTES_SAFE, SecretValue, Secrets};
use crate::wasi::config::ConfigValues;
use crate::wasi::files::{HandedFiles, Identity, Prepared, Surroundings};
use crate::wasi::grant_problem::{GrantNote, GrantProblem};
use crate::wasi::http::HttpClient;
use crate::wasi::keyvalue::{self, GrantedState, StatePlace};
use crate::wasi::net::Resolver;

/// The fault of a secret, in one sentence without a full stop, and a hint on how to fix it.
pub type SecretProblem = (String, String);

/// The variable in which a component that `toolcell dev` serves finds the project's files: JSON, an
/// object of texts by path. The content of a file that is not UTF-8 is an array of its Base64.
pub const DEV_SOURCE: &str = "TOOLCELL_DEV_SOURCE";

/// The host's side of a tool's grants.
pub struct GrantSources<'a> {
    /// The folder in which the manifest's relative paths start.
    pub folder: &'a Path,
    /// A variable of the host's environment, for values that the manifest takes `from` it.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The value of a secret, or its fault and a hint on how to fix it.
    pub secret: &'a dyn Fn(&SecretSource) -> Result<HeldSecret, SecretProblem>,
    /// The folder of state that tools keep; made when first needed.
    pub state_folder: &'a Path,
    /// The server that keeps their state for all replicas, in the folder's place.
    pub shared_state: Option<&'a Arc<Kept>>,
    /// Name servers; empty: the system's.
    pub name_servers: &'a [SocketAddr],
    /// Files that the host opened, in a sandbox process: connections, state, and secrets that no
    /// guest holds are the host's, and stay there.
    pub behind_wall: Option<&'a HandedFiles>,
    /// True if the guest's attempts are observed: more of them then reach a place that denies and
    /// notes them. It allows nothing.
    pub observing: bool,
    /// The value of [`DEV_SOURCE`], for a component that `toolcell dev` serves.
    pub dev_source: Option<&'a str>,
}

/// The capabilities of one tool. Immutable; shared by its calls.
pub struct Capabilities {
    grants: Arc<Grants>,
    environment: Vec<(String, String)>,
    config: ConfigValues,
    keyvalue: Option<GrantedState>,
    files: Arc<Prepared>,
    secrets: Arc<Secrets>,
    http: Arc<HttpClient>,
    notes: Vec<GrantNote>,
    observing: bool,
}

impl Capabilities {
    /// Makes the grants ready: opens, reads and checks the files, folders and values that they
    /// name.
    ///
    /// # Errors
    /// Every grant that cannot be given.
    pub fn prepare(grants: &Arc<Grants>, setting: &GrantSources<'_>) -> Result<Arc<Self>, Vec<GrantProblem>> {
        let mut problems = Vec::new();
        let mut environment = environment(grants, setting, &mut problems);
        let secrets = Arc::new(secrets(grants, setting, &mut problems));
        environment.extend(secrets.exposed().map(|(name, value)| (name.to_owned(), value.to_owned())));
        environment.extend(setting.dev_source.map(dev_variable));
        let config = variables(grants, secrets.exposed());
        let keyvalue = if setting.behind_wall.is_some() {
            None
        } else {
            let place = StatePlace { folder: setting.state_folder, shared: setting.shared_state };
            keyvalue::prepare(grants, place, &mut problems)
        };
        let around = Surroundings { folder: setting.folder, hidden: &[setting.state_folder] };
        let observed = setting.observing.then(|| Arc::clone(grants));
        let files = match setting.behind_wall {
            Some(handed) => Prepared::handed(grants.files(), handed, observed),
            None => Prepared::new(grants.files(), &around, observed),
        };
        let files = files.unwrap_or_else(|found| {
            problems.extend(found);
            Arc::default()
        });
        let notes = files
            .notes()
            .iter()
            .cloned()
            .chain(secrets.short().map(short))
            .chain(secrets.lacking().map(lacking))
            .collect();
        let resolver = Resolver::new(setting.name_servers);
        let http = if setting.behind_wall.is_some() {
            Ok(HttpClient::plain(grants))
        } else {
            HttpClient::prepare(grants, setting.folder, resolver, Arc::clone(&secrets))
        };
        match http {
            Ok(http) if problems.is_empty() => {
                let grants = Arc::clone(grants);
                let observing = setting.observing;
                Ok(Arc::new(Self { grants, environment, config, keyvalue, files, secrets, http, notes, observing }))
            }
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }

    /// Nothing: no files, network, environment, configuration or state.
    #[must_use]
    pub fn sealed(component: &str) -> Arc<Self> {
        Self::sealed_with(component, None)
    }

    /// Nothing but the files of [`DEV_SOURCE`], if there are any: a list of tools is made of them.
    pub(crate) fn sealed_with(component: &str, dev_source: Option<&str>) -> Arc<Self> {
        let grants = Arc::new(Grants::sealed(component, None));
        let config = variables(&grants, []);
        let http = HttpClient::plain(&grants);
        let secrets = Arc::default();
        let environment = dev_source.map(dev_variable).into_iter().collect();
        let files = Arc::default();
        let (keyvalue, notes, observing) = (None, Vec::new(), false);
        Arc::new(Self { grants, environment, config, keyvalue, files, secrets, http, notes, observing })
    }

    /// The manifest's grants.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// The values that `wasi:config` tells the guest.
    pub(crate) fn config(&self) -> &ConfigValues {
        &self.config
    }

    /// One value of `wasi:config`.
    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
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
        self.keyvalue.as_ref()
    }

    /// Grants that are as the manifest says, but may not be as its author meant.
    #[must_use]
    pub fn notes(&self) -> &[GrantNote] {
        &self.notes
    }

    /// The file or folder of each mount of the host, as it was opened at load.
    pub fn mounted(&self) -> impl Iterator<Item = (&Mount, Identity)> {
        self.files.mounted()
    }

    /// The mounts, opened.
    pub(crate) fn files(&self) -> &Arc<Prepared> {
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

    /// The client for HTTP requests.
    pub(crate) fn http(&self) -> &Arc<HttpClient> {
        &self.http
    }

    /// The guest's environment.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

fn dev_variable(source: &str) -> (String, String) {
    (DEV_SOURCE.to_owned(), source.to_owned())
}

fn environment(grants: &Grants, setting: &GrantSources<'_>, problems: &mut Vec<GrantProblem>) -> Vec<(String, String)> {
    let mut environment = Vec::new();
    for variable in grants.env() {
        match variable.source() {
            EnvSource::Text(value) => environment.push((variable.name().to_owned(), value.clone())),
            EnvSource::Host(name) => match (setting.variable)(name) {
                Some(value) => environment.push((variable.name().to_owned(), value)),
                None => problems.push(GrantProblem {
                    span: variable.span(),
                    message: format!("the host's environment has no variable {name:?}"),
                    hint: format!("set {name} before the host starts, or give the value here"),
                    is_value: true,
                }),
            },
        }
    }
    environment
}

fn secrets(grants: &Grants, setting: &GrantSources<'_>, problems: &mut Vec<GrantProblem>) -> Secrets {
    let mut held = Vec::new();
    // Behind a wall, the host adds the others to requests.
    let held_here = |secret: &&Secret| setting.behind_wall.is_none() || *secret.delivery() == Delivery::Expose;
    for secret in grants.secrets().iter().filter(held_here) {
        match (setting.secret)(secret.source()) {
            Ok(value) => held.push((secret.clone(), value)),
            Err((message, hint)) => {
                let message = format!("the secret {:?}: {message}", secret.name());
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

fn lacking((secret, reason): (&Secret, String)) -> GrantNote {
    GrantNote { span: secret.span(), message: format!("the secret {:?}: {reason}", secret.name()) }
}

/// The values for a tool with these grants. An exposed secret goes by its name, which no setting
/// has.
fn variables<'s>(grants: &Grants, exposed: impl IntoIterator<Item = (&'s str, &'s str)>) -> ConfigValues {
    let exposed = exposed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    exposed.chain(grants.config().iter().cloned()).collect()
}
