//! Registries and the store of this host, as a manifest describes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolcell_policy::{AdvisedFault, Digest, Manifest, PackageName, Reference, Server, SourceRef};
use toolcell_registry::{
    Artifact, Attached, AttachedArtifact, Credential, Progress, PullError, RegistryClient, RegistryOptions,
    RegistrySettings, SearchResult, Skipped, Store, StoreError, StoredComponent, Tags, Unaccepted,
};
use url::Url;
use zeroize::Zeroizing;

use crate::fetching::trust::{ReadRule, Signed};
use crate::identity::secrets;

/// The registries and the store of one manifest.
pub struct Registries<'m> {
    manifest: &'m Manifest,
    folder: &'m Path,
    client: RegistryClient,
    store: Store,
    runtime: tokio::runtime::Runtime,
}

/// A component that is in the store, and those who signed it.
pub struct Pulled {
    /// The component, checked when it was read.
    pub component: StoredComponent,
    /// Those who signed it, where the manifest asks for them.
    pub signed: Signed,
    /// True if the manifest has a rule of trust for it.
    pub has_rule: bool,
    /// Number of artifacts that are attached to it.
    pub attached: usize,
    /// Those that were listed as well, and did not come. None where no registry was asked.
    pub left_out: LeftOut,
}

/// Artifacts that a registry lists as attached to a component, and that are not in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Those that are something else than they should be.
    pub skipped: Vec<Skipped>,
    /// Number of those, at the least, that were not looked at: there are too many.
    pub not_looked_at: usize,
}

/// A component that does not come.
#[derive(Debug)]
pub struct NotFetched {
    /// Why: a sentence, and advice.
    pub fault: AdvisedFault,
    /// Artifacts that are attached and are not what they should be, where it is refused for its
    /// signatures.
    pub left_out: LeftOut,
}

impl LeftOut {
    /// True if everything that was listed came.
    pub const fn is_empty(&self) -> bool {
        self.skipped.is_empty() && self.not_looked_at == 0
    }
}

impl<'m> Registries<'m> {
    /// The registries of a manifest. Reads the passwords that it names; relative paths start from
    /// `folder`.
    ///
    /// # Errors
    /// A password or the store cannot be read: a sentence, and advice.
    pub fn open(manifest: &'m Manifest, folder: &'m Path) -> Result<Self, AdvisedFault> {
        let client = RegistryClient::new(options(manifest, folder)?);
        let store = open_store(manifest.server(), folder).map_err(|error| of_store(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| AdvisedFault::unadvised(format!("cannot start a thread for requests: {error}")))?;
        Ok(Self { manifest, folder, client, store, runtime })
    }

    /// Where a reference leads now.
    ///
    /// # Errors
    /// The registry does not say: a sentence, and advice.
    pub fn resolve(&self, reference: &Reference) -> Result<Digest, AdvisedFault> {
        self.runtime.block_on(self.client.resolve(reference)).map_err(|error| of_registry(&error))
    }

    /// The reference of a package: `[packages]` names the registry of its namespace, and that says
    /// where its packages are. A name without a version gets the newest release's.
    ///
    /// # Errors
    /// No registry is named, or it does not say: a sentence, and advice.
    pub fn package(&self, package: &PackageName) -> Result<Reference, AdvisedFault> {
        let namespace = package.namespace();
        let host = self.manifest.package_registry(namespace).ok_or_else(|| {
            let hint = format!("write {namespace} = \"registry.example.com\" below [packages] of the manifest");
            AdvisedFault::new(format!("no registry of the namespace {namespace} is named"), hint)
        })?;
        self.runtime.block_on(self.client.package(host, package)).map_err(|error| of_registry(&error))
    }

    /// The tags of a repository.
    ///
    /// # Errors
    /// The registry does not say: a sentence, and advice.
    pub fn tags(&self, reference: &Reference) -> Result<Tags, AdvisedFault> {
        self.runtime.block_on(self.client.tags(reference)).map_err(|error| of_registry(&error))
    }

    /// Pushes a component with what is attached to it. Returns the digest of its manifest.
    ///
    /// # Errors
    /// The registry does not take it: a sentence, and advice.
    pub fn push(
        &self,
        reference: &Reference,
        artifact: &Artifact,
        attached: &[AttachedArtifact],
    ) -> Result<Digest, AdvisedFault> {
        self.runtime.block_on(self.client.push(reference, artifact, attached)).map_err(|error| of_registry(&error))
    }

    /// Brings a component into the store, with what is attached to it. Who signed it does not
    /// matter yet: nothing serves it before [`Registries::read`] takes it. `progress` hears of the
    /// bytes that are there. Returns what is attached to it and did not come.
    ///
    /// # Errors
    /// It does not come, or is something else: a sentence, and advice.
    pub fn fetch(
        &self,
        reference: &Reference,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<LeftOut, AdvisedFault> {
        let pull = self.client.pull(reference, &self.store, progress);
        let pulled = self.runtime.block_on(pull).map_err(|error| of_registry(&error))?;
        Ok(LeftOut { skipped: pulled.skipped, not_looked_at: pulled.not_looked_at })
    }

    /// [`Registries::fetch`], if those signed whom the manifest's rule names. No layer of another
    /// component is downloaded.
    ///
    /// # Errors
    /// [`NotFetched`].
    pub fn fetch_signed(
        &self,
        reference: &Reference,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<LeftOut, NotFetched> {
        let accept = |manifest: &Digest, attached: &[&Attached]| self.check(reference, manifest, attached).map(drop);
        let pull = self.client.pull_if(reference, &self.store, progress, &accept);
        match self.runtime.block_on(pull) {
            Ok(Ok(pulled)) => Ok(LeftOut { skipped: pulled.skipped, not_looked_at: pulled.not_looked_at }),
            Ok(Err(Unaccepted { reason, skipped, not_looked_at })) => {
                Err(NotFetched { fault: reason, left_out: LeftOut { skipped, not_looked_at } })
            }
            Err(error) => Err(NotFetched { fault: of_registry(&error), left_out: LeftOut::default() }),
        }
    }

    /// A component of the store, and those who signed it. Asks no registry.
    ///
    /// # Errors
    /// It is not there, was changed, or nobody signed it who counts: a sentence, and advice.
    pub fn read(&self, reference: &Reference) -> Result<Pulled, AdvisedFault> {
        let (component, attached) = self.stored(reference)?;
        let signed = self.verify(reference, &component, &attached)?;
        let has_rule = signed.is_some();
        let signed = signed.unwrap_or_default();
        let attached = attached.len();
        Ok(Pulled { component, signed, has_rule, attached, left_out: LeftOut::default() })
    }

    /// A component of the store with what is attached to it, whatever its signatures.
    ///
    /// # Errors
    /// It is not there, or was changed: a sentence, and advice.
    pub fn stored(&self, reference: &Reference) -> Result<(StoredComponent, Vec<Attached>), AdvisedFault> {
        let digest =
            reference.digest().ok_or_else(|| AdvisedFault::unadvised(format!("{reference} names no digest")))?;
        let component = self.store.component(digest).map_err(|error| of_store(&error))?;
        let attached = self.store.attached(digest, &reference.name()).map_err(|error| of_store(&error))?;
        Ok((component, attached))
    }

    /// Those who signed a component, as the manifest's rule asks; `None` where it has no rule.
    ///
    /// # Errors
    /// The rule is not fulfilled: a sentence, and advice.
    pub fn verify(
        &self,
        reference: &Reference,
        component: &StoredComponent,
        attached: &[Attached],
    ) -> Result<Option<Signed>, AdvisedFault> {
        self.check(reference, &component.manifest, &attached.iter().collect::<Vec<_>>())
    }

    fn check(
        &self,
        reference: &Reference,
        manifest: &Digest,
        attached: &[&Attached],
    ) -> Result<Option<Signed>, AdvisedFault> {
        let Some(rule) = self.manifest.trust_of(reference) else { return Ok(None) };
        let read = ReadRule::read(rule, self.folder);
        let signed = read.and_then(|read| read.verify(manifest, attached));
        signed.map(Some).map_err(|fault| fault.of(format_args!("[trust.\"{}\"]", rule.prefix())))
    }
}

/// Reason why a search finds nothing: each a sentence, and advice where that is not the same for
/// all.
#[derive(Debug)]
pub enum SearchFault {
    /// The address of the registry cannot be used.
    Address(AdvisedFault),
    /// The registry does not answer as one does, or the manifest's settings cannot be used.
    Registry(AdvisedFault),
    /// Nothing was reached.
    Unreached(String),
}

/// Searches a registry of MCP servers, at a host or an address of http or https. It is reached as
/// the manifest says of its host; relative paths start from `folder`. The store is not opened.
///
/// # Errors
/// [`SearchFault`].
pub fn search(manifest: &Manifest, folder: &Path, address: &str, word: &str) -> Result<SearchResult, SearchFault> {
    let address = search_address(address).map_err(SearchFault::Address)?;
    let client = RegistryClient::new(options(manifest, folder).map_err(SearchFault::Registry)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        SearchFault::Registry(AdvisedFault::unadvised(format!("cannot start a thread for requests: {error}")))
    })?;
    runtime.block_on(client.search(&address, word)).map_err(|error| match error.is_unreached() {
        true => SearchFault::Unreached(error.to_string()),
        false => SearchFault::Registry(of_registry(&error)),
    })
}

fn search_address(text: &str) -> Result<Url, AdvisedFault> {
    let hint = "write its host or the address of its API: https://registry.example.com";
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = Url::parse(&whole)
        .map_err(|error| AdvisedFault::new(format!("{text:?} is not a valid address: {error}"), hint))?;
    let has_more = url.query().is_some() || url.fragment().is_some();
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() || has_more {
        return Err(AdvisedFault::new(format!("{text:?} is not only a host and a path of http or https"), hint));
    }
    Ok(url)
}

/// The components of a manifest that come from registries: their names and references.
pub fn components(manifest: &Manifest) -> impl Iterator<Item = (&str, &Reference)> {
    manifest.components().iter().filter_map(|component| match component.source() {
        SourceRef::Registry(reference) => Some((component.name(), reference)),
        _ => None,
    })
}

/// The digests that a manifest needs of the store.
pub fn digests(manifest: &Manifest) -> BTreeSet<Digest> {
    components(manifest).filter_map(|(_, reference)| reference.digest().cloned()).collect()
}

/// The folder of the store: as the manifest says, or the user's.
pub fn store_folder(server: &Server, folder: &Path) -> PathBuf {
    server.store().map_or_else(user_store, |written| folder.join(written))
}

/// The store that all manifests of this user share: `$XDG_DATA_HOME/toolcell/store`, or
/// `~/.local/share/toolcell/store`. Without a home it is in the current folder.
pub fn user_store() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map_or_else(|| PathBuf::from(".toolcell/store"), |data| data.join("toolcell/store"))
}

/// The store of a manifest.
pub(crate) fn open_store(server: &Server, folder: &Path) -> Result<Store, StoreError> {
    Store::open(&store_folder(server, folder))
}

/// The way to the registries of a manifest: as it says, and with the credentials of this user.
fn options(manifest: &Manifest, folder: &Path) -> Result<RegistryOptions, AdvisedFault> {
    let mut options = RegistryOptions::from_environment();
    // Nothing larger is ever loaded.
    options.bounds.component_bytes = toolcell_sandbox::COMPONENT_BYTES_MAX;
    for registry in manifest.registries() {
        let credential = match registry.user().zip(registry.password()) {
            None => None,
            Some((user, source)) => {
                let (password, _) = secrets::text(source, folder)?;
                Some(Credential::Password { user: user.to_owned(), password: Zeroizing::new(password.to_string()) })
            }
        };
        let settings = RegistrySettings {
            private: registry.private(),
            plain_http: registry.plain_http(),
            authorities: registry.authorities().map(|path| folder.join(path)),
            mirror: registry.mirror().map(str::to_owned),
            credential,
        };
        options.by_host.insert(registry.host().to_owned(), settings);
    }
    Ok(options)
}

/// A problem with a registry, and advice.
pub fn of_registry(error: &PullError) -> AdvisedFault {
    AdvisedFault::new(error.to_string(), error.hint().unwrap_or_default())
}

/// A problem with the store, and advice.
pub fn of_store(error: &StoreError) -> AdvisedFault {
    AdvisedFault::new(error.to_string(), error.hint().unwrap_or_default())
}
