//! A repository at a registry, and the access right that a request needs.
use toolcell_policy::Digest;
use url::Url;

use crate::error::PullError;

/// Name of Docker Hub in references.
pub(crate) const HUB: &str = "docker.io";

/// Host of Docker Hub's registry.
pub(crate) const HUB_HOST: &str = "registry-1.docker.io";

/// The access right of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistryRight {
    Pull,
    Push,
}

impl RegistryRight {
    /// The actions of a scope.
    pub(crate) const fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }

    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push to",
        }
    }
}

/// A repository at the server that is asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Name of the registry, or of its mirror: that of settings and credentials.
    pub(crate) registry: String,
    /// Name of the repository there.
    pub(crate) name: String,
    pub(crate) right: RegistryRight,
    pub(crate) base: Url,
}

impl Repository {
    /// The address of something in this repository: `manifests/latest`.
    pub(crate) fn url(&self, rest: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{}/{rest}", self.name));
        url
    }

    pub(crate) fn unauthorized(&self, had_credential: bool) -> PullError {
        PullError::Unauthorized { host: self.registry.clone(), repository: self.name.clone(), had_credential }
    }

    pub(crate) fn not_found(&self, what: &str) -> PullError {
        PullError::NotFound { host: self.registry.clone(), what: format!("{}{what}", self.name) }
    }

    /// An error if a part of the repository is larger than is allowed.
    pub(crate) fn check_size(&self, what: &'static str, bytes: u64, max: u64) -> Result<(), PullError> {
        if bytes <= max { Ok(()) } else { Err(PullError::TooLarge { host: self.registry.clone(), what, max }) }
    }

    /// An error if the registry sent other bytes than were asked for.
    pub(crate) fn check_digest(&self, expected: &Digest, bytes: &[u8]) -> Result<(), PullError> {
        let found = crate::digest_of(bytes);
        if found == *expected {
            return Ok(());
        }
        Err(PullError::WrongDigest { host: self.registry.clone(), expected: expected.clone(), found })
    }
}
