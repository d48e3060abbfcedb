//! A registry on loopback with its contents in memory. A hook may answer any request otherwise, and
//! write whatever it likes.
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use toolcell_registry::{Artifact, OCI_INDEX, OCI_MANIFEST};

use crate::digest;

/// Pause of a registry that drips: an answer of 500 bytes takes a second.
const BETWEEN_BYTES: Duration = Duration::from_millis(2);

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.target.contains(part)
    }
}

/// An answer: bytes that are written as they are.
pub enum Reply {
    /// Written, then the connection is closed.
    Bytes(Vec<u8>),
    /// Written, then nothing comes until the client leaves.
    Held(Vec<u8>),
    /// Written byte by byte with a pause after each, then the connection is closed.
    Dripped(Vec<u8>),
    /// Written, then the second again and again until the client leaves.
    Endless(Vec<u8>, Vec<u8>),
}

impl Reply {
    /// A whole answer.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut bytes = head(status, headers);
        bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        bytes.extend(body);
        Self::Bytes(bytes)
    }

    /// A whole answer that drips, or the beginning of one that says to be longer.
    pub fn dripped(status: u16, headers: &[(&str, &str)], length: usize, body: &[u8]) -> Self {
        let length = format!("content-length: {length}\r\n\r\n").into_bytes();
        Self::Dripped([head(status, headers), length, body.to_vec()].concat())
    }

    pub fn redirect(to: &str) -> Self {
        Self::new(307, &[("location", to)], b"")
    }
}

/// Status line and headers, without the empty line.
pub fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Status\r\n{headers}").into_bytes()
}

type Hook = Box<dyn Fn(&Request, &Contents) -> Option<Reply> + Send>;

/// Contents of the one repository.
#[derive(Default)]
pub struct Contents {
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// By tag and by digest.
    pub manifests: BTreeMap<String, Vec<u8>>,
    pub has_referrers: bool,
}

#[derive(Default)]
struct State {
    contents: Mutex<Contents>,
    requests: Mutex<Vec<Request>>,
    hook: Mutex<Option<Hook>>,
}

pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    /// Authority of its certificate, if it speaks TLS.
    pub authority: Option<String>,
}

impl Server {
    pub fn start() -> Self {
        Self::serving(None, None)
    }

    /// A server with a certificate for 127.0.0.1.
    pub fn with_tls() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certified = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certified.der().clone()], key).unwrap();
        Self::serving(Some(Arc::new(config)), Some(certified.pem()))
    }

    fn serving(tls: Option<Arc<ServerConfig>>, authority: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        state.contents.lock().unwrap().has_referrers = true;
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    Some(config) => {
                        serve(StreamOwned::new(ServerConnection::new(config).unwrap(), stream), &state);
                    }
                    None => serve::<TcpStream>(stream, &state),
                });
            }
        });
        Self { address, state, authority }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// The number of requests with this method and part of a target.
    pub fn count(&self, method: &str, part: &str) -> usize {
        self.requests().iter().filter(|request| request.is(method, part)).count()
    }

    pub fn hook(&self, hook: impl Fn(&Request, &Contents) -> Option<Reply> + Send + 'static) {
        *self.state.hook.lock().unwrap() = Some(Box::new(hook));
    }

    pub fn honest(&self) {
        *self.state.hook.lock().unwrap() = None;
    }

    pub fn contents<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        change(&mut self.state.contents.lock().unwrap())
    }

    pub fn add_blob(&self, bytes: &[u8]) -> String {
        let digest = digest(bytes).to_string();
        self.contents(|contents| contents.blobs.insert(digest.clone(), bytes.to_vec()));
        digest
    }

    pub fn add_manifest(&self, tag: Option<&str>, bytes: &[u8]) -> String {
        let digest = digest(bytes).to_string();
        self.contents(|contents| {
            for name in [Some(digest.as_str()), tag].into_iter().flatten() {
                contents.manifests.insert(name.to_owned(), bytes.to_vec());
            }
        });
        digest
    }

    pub fn add_artifact(&self, tag: &str, artifact: &Artifact) {
        self.add_blob(&artifact.component);
        self.add_blob(&artifact.config);
        self.add_manifest(Some(tag), &artifact.manifest_bytes());
    }
}

fn serve<S: Read + Write>(stream: S, state: &State) {
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader) else { return };
    state.requests.lock().unwrap().push(request.clone());
    let reply = {
        let mut contents = state.contents.lock().unwrap();
        let hooked = state.hook.lock().unwrap().as_ref().and_then(|hook| hook(&request, &contents));
        hooked.unwrap_or_else(|| contents.answer(&request))
    };
    let stream = reader.get_mut();
    let held = match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).and_then(|()| stream.flush());
            return;
        }
        Reply::Dripped(bytes) => {
            let written = |byte: &u8| stream.write_all(&[*byte]).and_then(|()| stream.flush());
            bytes.iter().map(written).take_while(Result::is_ok).for_each(|_| std::thread::sleep(BETWEEN_BYTES));
            return;
        }
        Reply::Held(bytes) => stream.write_all(&bytes).and_then(|()| stream.flush()),
        Reply::Endless(first, again) => {
            let _ = stream.write_all(&first);
            while stream.write_all(&again).and_then(|()| stream.flush()).is_ok() {}
            return;
        }
    };
    if held.is_ok() {
        // Ends once the client has closed its side.
        let _ = reader.read(&mut [0; 1]);
    }
}

fn read<S: Read>(reader: &mut BufReader<S>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let method = words.next()?.to_owned();
    let target = words.next()?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body })
}

impl Contents {
    /// The answer of an honest registry.
    pub fn answer(&mut self, request: &Request) -> Reply {
        let path = request.target.split('?').next().unwrap().to_owned();
        let Some((_, rest)) = path.split_once("/v2/example/weather/") else { return not_found() };
        let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
        match (request.method.as_str(), kind) {
            ("HEAD" | "GET", "manifests") => self.manifest(request, name),
            ("HEAD" | "GET", "blobs") => self.blob(request, name),
            ("GET", "referrers") if self.has_referrers => self.referrers(name),
            ("GET", "tags") => {
                let tags: Vec<_> = self.manifests.keys().filter(|name| !name.contains(':')).collect();
                Reply::new(200, &[], json!({"name": "example/weather", "tags": tags}).to_string().as_bytes())
            }
            ("POST", "blobs") => Reply::new(202, &[("location", "/v2/example/weather/blobs/uploads/1?state=a")], b""),
            ("PUT", "blobs") => {
                let named = request.target.rsplit("digest=").next().unwrap().replace("%3A", ":");
                if digest(&request.body).as_str() != named || !request.target.contains("state=a") {
                    return Reply::new(400, &[], b"");
                }
                self.blobs.insert(named, request.body.clone());
                Reply::new(201, &[], b"")
            }
            ("PUT", "manifests") => self.put_manifest(request, name),
            _ => not_found(),
        }
    }

    fn manifest(&self, request: &Request, name: &str) -> Reply {
        let Some(bytes) = self.manifests.get(name) else { return not_found() };
        let digest = digest(bytes).to_string();
        let kind = if bytes.windows(11).any(|part| part == b"\"manifests\"") { OCI_INDEX } else { OCI_MANIFEST };
        let headers = [("docker-content-digest", digest.as_str()), ("content-type", kind)];
        if request.method == "HEAD" {
            let mut bytes = head(200, &headers);
            bytes.extend(b"\r\n");
            return Reply::Bytes(bytes);
        }
        Reply::new(200, &headers, bytes)
    }

    fn blob(&self, request: &Request, name: &str) -> Reply {
        let Some(bytes) = self.blobs.get(name) else { return not_found() };
        if request.method == "HEAD" {
            return Reply::Bytes([head(200, &[]), b"\r\n".to_vec()].concat());
        }
        let from =
            request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        match from {
            Some(from) if from < bytes.len() => {
                let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
                Reply::new(206, &[("content-range", &range)], &bytes[from..])
            }
            Some(_) => Reply::new(416, &[], b""),
            None => Reply::new(200, &[], bytes),
        }
    }

    fn referrers(&self, subject: &str) -> Reply {
        let mut entries = Vec::new();
        for (name, bytes) in self.manifests.iter().filter(|(name, _)| name.contains(':')) {
            let Ok(manifest) = serde_json::from_slice::<Value>(bytes) else { continue };
            if manifest["subject"]["digest"] == subject {
                entries.push(json!({
                    "mediaType": OCI_MANIFEST, "digest": name, "size": bytes.len(),
                    "artifactType": manifest["artifactType"],
                }));
            }
        }
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries});
        Reply::new(200, &[("content-type", OCI_INDEX)], index.to_string().as_bytes())
    }

    fn put_manifest(&mut self, request: &Request, name: &str) -> Reply {
        let digest = digest(&request.body).to_string();
        self.manifests.insert(name.to_owned(), request.body.clone());
        self.manifests.insert(digest.clone(), request.body.clone());
        let manifest: Value = serde_json::from_slice(&request.body).unwrap();
        let subject = manifest["subject"]["digest"].as_str().filter(|_| self.has_referrers);
        let mut headers = vec![("docker-content-digest", digest.as_str())];
        headers.extend(subject.map(|subject| ("oci-subject", subject)));
        Reply::new(201, &headers, b"")
    }
}

fn not_found() -> Reply {
    Reply::new(404, &[], br#"{"errors":[{"code":"NOT_FOUND"}]}"#)
}
