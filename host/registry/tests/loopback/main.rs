//! Pulling, pushing and storing against a registry on loopback that is the tests' own, and lies
//! where it is configured to.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod attached;
mod lies;
mod network;
mod packages;
mod pulling;
mod pushing;
mod searching;
mod secrets;
mod server;
mod stores;

use std::collections::BTreeMap;
use std::time::Duration;

use toolcell_policy::{Digest, Reference};
use toolcell_registry::{
    Artifact, AttachedArtifact, AttachedLayer, Bounds, PullError, Pulled, RegistryClient, RegistryOptions,
    RegistrySettings, Store, digest_of,
};

use server::Server;

/// Time in which any answer has come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Beginning of a component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0 a component of the tests";

/// A registry, a client that may ask it, and a store.
struct Place {
    server: Server,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { server: Server::start(), folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        Store::open(&self.folder.path().join("store")).unwrap()
    }

    fn options(&self) -> RegistryOptions {
        options_for(&[&self.server])
    }

    fn client(&self) -> RegistryClient {
        RegistryClient::new(self.options())
    }

    fn reference(&self) -> Reference {
        Reference::parse(&format!("oci://{}/example/weather:1", self.server.host())).unwrap()
    }

    /// Puts a component into the registry.
    fn publish(&self, component: &[u8]) -> (Artifact, Reference) {
        let artifact = Artifact::new(component.to_vec());
        self.server.add_artifact("1", &artifact);
        let reference = self.reference().with_digest(artifact.digest());
        (artifact, reference)
    }

    async fn pull(&self, reference: &Reference) -> Result<Pulled, PullError> {
        self.client().pull(reference, &self.store(), &|_| ()).await
    }
}

/// Options with which these servers may be asked.
fn options_for(servers: &[&Server]) -> RegistryOptions {
    let settings = RegistrySettings { private: true, ..RegistrySettings::default() };
    let by_host = servers.iter().map(|server| (server.host(), settings.clone())).collect();
    // A busy machine may be slow.
    let bounds = Bounds { connect: PATIENCE, answer: PATIENCE, ..Bounds::default() };
    RegistryOptions { by_host, bounds, ..RegistryOptions::default() }
}

/// An artifact to attach.
fn signature(text: &str) -> AttachedArtifact {
    AttachedArtifact {
        artifact_type: "application/vnd.example.signature".to_owned(),
        layers: vec![AttachedLayer {
            media_type: "text/plain".to_owned(),
            annotations: BTreeMap::from([("key".to_owned(), "value".to_owned())]),
            bytes: text.as_bytes().to_vec().into(),
        }],
        annotations: BTreeMap::new(),
    }
}

/// The digest of a manifest of the tests.
fn digest(bytes: impl AsRef<[u8]>) -> Digest {
    digest_of(bytes.as_ref())
}
