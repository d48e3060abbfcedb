//! The grants of one tool, as its guests get them: variables, settings and mounts, prepared once
//! and borrowed by each call.
use std::collections::HashMap;
use std::sync::Arc;

use toolcell_policy::{Delivery, EnvSource, Grants, Ungranted};
use toolcell_wall::mounts::DEV_SOURCE;
use zeroize::Zeroizing;

use crate::wasi::config::ConfigValues;
use crate::wasi::files::{HandedFiles, Prepared};

/// Values and files of one component, as the host handed them to this process.
#[derive(Debug, Default)]
pub(crate) struct HandedValues {
    /// Values of variables that the manifest takes from the host's environment, by their names
    /// there.
    pub(crate) variables: HashMap<String, String>,
    /// Values of the secrets that guests hold, by their sources in the manifest.
    pub(crate) secrets: HashMap<String, Zeroizing<String>>,
    /// Its mounts.
    pub(crate) files: HandedFiles,
    /// The value of [`DEV_SOURCE`], for a component that `toolcell dev` serves.
    pub(crate) dev_source: Option<String>,
    /// True if the guest's attempts are observed: more of them then reach a check that denies and
    /// notes them. It allows nothing.
    pub(crate) observing: bool,
}

/// The grants of one tool. Immutable; shared by its calls.
#[derive(Debug)]
pub struct GuestGrants {
    grants: Arc<Grants>,
    environment: Vec<(String, String)>,
    config: ConfigValues,
    files: Arc<Prepared>,
    observing: bool,
}

impl GuestGrants {
    /// Prepares the grants from what the host handed over.
    ///
    /// # Errors
    /// One sentence: something was not handed over.
    pub(crate) fn of(grants: &Arc<Grants>, handed: &HandedValues) -> Result<Arc<Self>, String> {
        let mut environment = variables(grants, handed)?;
        let secrets = secrets(grants, handed)?;
        environment.extend(secrets.iter().cloned());
        environment.extend(handed.dev_source.as_deref().map(dev_variable));
        // Settings cannot have the name of an exposed secret.
        let config = secrets.into_iter().chain(grants.config().iter().cloned()).collect();
        let observed = handed.observing.then(|| Arc::clone(grants));
        let files = Prepared::handed(grants.files(), &handed.files, observed)?;
        Ok(Arc::new(Self { grants: Arc::clone(grants), environment, config, files, observing: handed.observing }))
    }

    /// No grants at all: no files, network, environment, configuration or state.
    #[must_use]
    pub fn sealed(component: &str) -> Arc<Self> {
        Self::sealed_with(component, None)
    }

    /// No grants but the files of [`DEV_SOURCE`], if there are any: a list of tools is made from
    /// them.
    pub(crate) fn sealed_with(component: &str, dev_source: Option<&str>) -> Arc<Self> {
        let grants = Arc::new(Grants::sealed(component, None));
        let config = grants.config().iter().cloned().collect();
        let environment = dev_source.map(dev_variable).into_iter().collect();
        Arc::new(Self { grants, environment, config, files: Arc::default(), observing: false })
    }

    /// The manifest's grants.
    pub(crate) fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// The values that `wasi:config` returns to the guest.
    pub(crate) fn config(&self) -> &ConfigValues {
        &self.config
    }

    /// One value of `wasi:config`.
    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    /// True if a person may be asked about what no rule allows.
    pub(crate) fn may_ask(&self) -> bool {
        self.grants.ungranted() == Ungranted::Ask
    }

    /// True if the guest's attempts are observed.
    pub(crate) const fn observing(&self) -> bool {
        self.observing
    }

    /// The mounts.
    pub(crate) fn files(&self) -> &Arc<Prepared> {
        &self.files
    }

    /// The guest's environment.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

fn dev_variable(source: &str) -> (String, String) {
    (DEV_SOURCE.to_owned(), source.to_owned())
}

/// The variables that the manifest grants.
fn variables(grants: &Grants, handed: &HandedValues) -> Result<Vec<(String, String)>, String> {
    let value = |source: &EnvSource| match source {
        EnvSource::Text(value) => Ok(value.clone()),
        EnvSource::Host(name) => {
            handed.variables.get(name).cloned().ok_or_else(|| format!("the variable {name:?} was not handed over"))
        }
    };
    let variables = grants.env().iter().map(|variable| Ok((variable.name().to_owned(), value(variable.source())?)));
    variables.collect()
}

/// The secrets that the guest holds, by their names. The host adds the others to requests.
fn secrets(grants: &Grants, handed: &HandedValues) -> Result<Vec<(String, String)>, String> {
    let exposed = grants.secrets().iter().filter(|secret| *secret.delivery() == Delivery::Expose);
    let exposed = exposed.map(|secret| {
        let value = handed.secrets.get(&secret.source().to_string());
        let value = value.ok_or_else(|| format!("the secret {:?} was not handed over", secret.name()))?;
        Ok((secret.name().to_owned(), value.as_str().to_owned()))
    });
    exposed.collect()
}
