//! A registry of components that keeps everything in memory: pulls, pushes, tags and referrers of
//! the OCI distribution specification 1.1. Tests move its tags, add manifests of their own making,
//! and have it answer otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::http::{HttpServer, Scripted, Seen};

/// The media type of a list of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Another answer than the registry's own, for some requests.
type Hook = Box<dyn Fn(&Seen) -> Option<Scripted> + Send>;

/// A running registry on 127.0.0.1.
#[derive(Debug)]
pub struct Registry {
    server: HttpServer,
    kept: Arc<Mutex<Kept>>,
}

/// The content of a registry.
#[derive(Default)]
struct Kept {
    blobs: BTreeMap<String, Vec<u8>>,
    /// Media type and bytes of manifests, by repository and digest.
    manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// Digests, by repository and tag.
    tags: BTreeMap<(String, String), String>,
    uploads: usize,
    /// Its word on packages' namespaces.
    metadata: Option<String>,
    /// The page of servers of its catalogue.
    servers: Option<String>,
    hook: Option<Hook>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Kept").field("tags", &self.tags).finish_non_exhaustive()
    }
}

impl Registry {
    /// Starts one without anything in it.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start() -> Self {
        let kept = Arc::<Mutex<Kept>>::default();
        let shared = Arc::clone(&kept);
        let server = HttpServer::scripted(move |seen| shared.lock().unwrap().answer(seen));
        Self { server, kept }
    }

    /// Its host and port, as references name it.
    #[must_use]
    pub fn host(&self) -> String {
        self.server.address().to_string()
    }

    /// A reference to a tag of a repository.
    #[must_use]
    pub fn reference(&self, repository: &str, tag: &str) -> String {
        format!("oci://{}/{repository}:{tag}", self.host())
    }

    /// The requests received so far: method and target.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.server.seen().iter().map(|seen| format!("{} {}", seen.method(), seen.target())).collect()
    }

    /// The digest that a tag leads to.
    ///
    /// # Panics
    /// If there is no such tag.
    #[must_use]
    pub fn tag(&self, repository: &str, tag: &str) -> String {
        self.kept().tags[&(repository.to_owned(), tag.to_owned())].clone()
    }

    /// Makes a tag lead to this digest.
    pub fn move_tag(&self, repository: &str, tag: &str, digest: &str) {
        self.kept().tags.insert((repository.to_owned(), tag.to_owned()), digest.to_owned());
    }

    /// Adds a blob. Returns its digest.
    pub fn add_blob(&self, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        self.kept().blobs.insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Adds a manifest or an index, under a tag as well if it gets one. Returns its digest.
    pub fn add_manifest(&self, repository: &str, tag: Option<&str>, document: &Value) -> String {
        let kind = document["mediaType"].as_str().unwrap_or(INDEX).to_owned();
        let bytes = document.to_string().into_bytes();
        let repository = repository.to_owned();
        let digest = sha256(&bytes);
        let mut kept = self.kept();
        kept.manifests.insert((repository.clone(), digest.clone()), (kind, bytes));
        if let Some(tag) = tag {
            kept.tags.insert((repository, tag.to_owned()), digest.clone());
        }
        digest
    }

    /// The bytes of a manifest.
    ///
    /// # Panics
    /// If there is no such manifest.
    #[must_use]
    pub fn manifest(&self, repository: &str, digest: &str) -> Value {
        json_of(&self.kept().manifests[&(repository.to_owned(), digest.to_owned())].1)
    }

    /// Bytes that a manifest has.
    ///
    /// # Panics
    /// If there is no such manifest.
    #[must_use]
    pub fn manifest_size(&self, repository: &str, digest: &str) -> usize {
        self.kept().manifests[&(repository.to_owned(), digest.to_owned())].1.len()
    }

    /// Makes it answer otherwise where this gives an answer.
    pub fn answer_instead(&self, hook: impl Fn(&Seen) -> Option<Scripted> + Send + 'static) {
        self.kept().hook = Some(Box::new(hook));
    }

    /// Makes the registry say this of namespaces of packages.
    pub fn say_of_packages(&self, metadata: &Value) {
        self.kept().metadata = Some(metadata.to_string());
    }

    /// Makes it a registry of MCP servers as well, with this page.
    pub fn list_servers(&self, page: &str) {
        self.kept().servers = Some(page.to_owned());
    }

    /// Forgets all that is attached to manifests of a repository.
    pub fn forget_attached(&self, repository: &str) {
        let is_attached = |bytes: &[u8]| json_of(bytes).get("subject").is_some();
        self.kept().manifests.retain(|(of, _), (_, bytes)| of != repository || !is_attached(bytes));
    }

    /// Makes each manifest that is attached be about this digest instead.
    ///
    /// # Panics
    /// If there is none of this repository.
    pub fn attach_to(&self, repository: &str, subject: &str) {
        let mut kept = self.kept();
        let of_repository = kept.manifests.iter().filter(|((of, _), _)| of == repository);
        let (_, subject_bytes) = &kept.manifests[&(repository.to_owned(), subject.to_owned())];
        let size = subject_bytes.len();
        let changed: Vec<_> = of_repository
            .filter_map(|(_, (kind, bytes))| {
                let mut manifest = json_of(bytes);
                let named = manifest.get_mut("subject")?;
                named["digest"] = json!(subject);
                named["size"] = json!(size);
                Some((kind.clone(), manifest.to_string().into_bytes()))
            })
            .collect();
        assert!(!changed.is_empty());
        for (kind, bytes) in changed {
            kept.manifests.insert((repository.to_owned(), sha256(&bytes)), (kind, bytes));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

impl Kept {
    fn answer(&mut self, seen: &Seen) -> Scripted {
        if let Some(answer) = self.hook.as_ref().and_then(|hook| hook(seen)) {
            return answer;
        }
        let target = seen.target();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path == "/.well-known/wasm-pkg/registry.json" {
            return self.metadata.as_ref().map_or_else(missing, |said| found("application/json", said.as_bytes()));
        }
        if path == "/v0.1/servers" {
            return self.servers.as_ref().map_or_else(missing, |page| found("application/json", page.as_bytes()));
        }
        let rest = path.trim_start_matches("/v2/");
        if let Some((repository, upload)) = rest.split_once("/blobs/uploads") {
            return self.upload(seen, repository, upload, query);
        }
        if let Some((_, digest)) = rest.split_once("/blobs/") {
            return self.blobs.get(digest).map_or_else(missing, |bytes| found("application/octet-stream", bytes));
        }
        if let Some((repository, name)) = rest.split_once("/manifests/") {
            return self.manifest(seen, repository, name);
        }
        if let Some((repository, digest)) = rest.split_once("/referrers/") {
            return found(INDEX, self.referrers(repository, digest).to_string().as_bytes());
        }
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            let of_repository = self.tags.keys().filter(|(of, _)| of == repository);
            let tags: Vec<&String> = of_repository.map(|(_, tag)| tag).collect();
            let list = json!({"name": repository, "tags": tags});
            return found("application/json", list.to_string().as_bytes());
        }
        if rest.is_empty() { found("application/json", b"{}") } else { missing() }
    }

    fn upload(&mut self, seen: &Seen, repository: &str, upload: &str, query: &str) -> Scripted {
        if seen.method() == "POST" {
            self.uploads += 1;
            let place = format!("/v2/{repository}/blobs/uploads/{}", self.uploads);
            return Scripted::Bytes(202, vec![("Location", place)], Vec::new());
        }
        let digest = query.strip_prefix("digest=").unwrap_or_default().replace("%3A", ":");
        if upload.is_empty() || sha256(&seen.body) != digest {
            return Scripted::Whole(400, "application/json", "{}".to_owned());
        }
        self.blobs.insert(digest.clone(), seen.body.clone());
        let place = format!("/v2/{repository}/blobs/{digest}");
        Scripted::Bytes(201, vec![("Location", place), ("Docker-Content-Digest", digest)], Vec::new())
    }

    fn manifest(&mut self, seen: &Seen, repository: &str, name: &str) -> Scripted {
        if seen.method() != "PUT" {
            let digest = self.tags.get(&(repository.to_owned(), name.to_owned())).map_or(name, String::as_str);
            let manifest = self.manifests.get(&(repository.to_owned(), digest.to_owned()));
            return manifest.map_or_else(missing, |(kind, bytes)| {
                let fields = vec![("Content-Type", kind.clone()), ("Docker-Content-Digest", digest.to_owned())];
                Scripted::Bytes(200, fields, bytes.clone())
            });
        }
        let digest = sha256(&seen.body);
        let kind = seen.values("content-type").concat();
        self.manifests.insert((repository.to_owned(), digest.clone()), (kind, seen.body.clone()));
        if !name.starts_with("sha256:") {
            self.tags.insert((repository.to_owned(), name.to_owned()), digest.clone());
        }
        let mut fields = vec![("Docker-Content-Digest", digest)];
        if let Some(subject) = json_of(&seen.body)["subject"]["digest"].as_str() {
            fields.push(("OCI-Subject", subject.to_owned()));
        }
        Scripted::Bytes(201, fields, Vec::new())
    }

    fn referrers(&self, repository: &str, digest: &str) -> Value {
        let of_subject = self.manifests.iter().filter_map(|((of, own), (kind, bytes))| {
            let manifest = json_of(bytes);
            (of == repository && manifest["subject"]["digest"] == digest).then(|| {
                json!({
                    "mediaType": kind, "digest": own, "size": bytes.len(), "artifactType": manifest["artifactType"],
                    "annotations": manifest.get("annotations").cloned().unwrap_or_else(|| json!({})),
                })
            })
        });
        json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": of_subject.collect::<Vec<_>>()})
    }
}

fn found(kind: &str, bytes: &[u8]) -> Scripted {
    Scripted::Bytes(200, vec![("Content-Type", kind.to_owned())], bytes.to_vec())
}

fn missing() -> Scripted {
    Scripted::Whole(404, "application/json", json!({"errors": [{"code": "NAME_UNKNOWN"}]}).to_string())
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The digest of these bytes, as registries write it.
pub fn sha256(bytes: &[u8]) -> String {
    let hexadecimal: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}
