//! From what the manifest and the command line say to sockets that are bound and a transport that is set up.
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Handle;
use toolcell_mcp::http::{
    AdmitEveryone, CallerLimits, Certificate, Gatekeeper, HttpLimits, HttpOptions, Listener, OriginPolicy,
};
use toolcell_policy::{Callers, HttpPolicy, ListenAddress, Manifest};

use super::certificate;
use super::doorkeeper::Doorkeeper;
use super::oauth::Oauth;
use super::tokens::{TokenFile, Tokens};
use super::watch::Watching;
use crate::control::remove_if_dead;

/// Where the server listens where neither the manifest nor the command line says so.
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";

/// Descriptors that the process needs beside those of connections: components, files of tools, requests of tools.
const DESCRIPTORS_BESIDE: u64 = 1_024;

/// Where HTTP is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpAddress {
    /// Where the manifest says.
    Manifest,
    /// Here.
    At(ListenAddress),
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Manifest);
        }
        let address = ListenAddress::parse(text);
        address.map(Self::At).ok_or_else(|| "write 127.0.0.1:8080, [::1]:8080 or unix:PATH".to_owned())
    }
}

/// What is wrong, and what to do about it.
pub struct Problem {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<&'static str>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

/// Everything that is needed to serve.
pub struct Bound {
    /// For the transport.
    pub options: HttpOptions,
    /// The endpoint at each socket, for people.
    pub endpoints: Vec<String>,
    /// Whether callers have to show a token.
    pub asks_for_tokens: bool,
    /// To be kept while it serves.
    pub guard: Guard,
}

/// What ends with the serving.
pub struct Guard {
    _sockets: Sockets,
    _watching: Watching,
}

/// Socket files, removed when this is dropped.
struct Sockets(Vec<PathBuf>);

impl Drop for Sockets {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Binds the sockets and sets the transport up. `folder` is the manifest's.
pub fn open(
    arg: &HttpAddress,
    manifest: &Manifest,
    insecure_public: bool,
    (folder, runtime): (&Path, &Handle),
) -> Result<Bound, Problem> {
    let default = HttpPolicy::default();
    let policy = manifest.http().unwrap_or(&default);
    let addresses = addresses(arg, policy)?;
    refuse_open_doors(&addresses, policy, insecure_public)?;
    let mut watching = Watching::new(runtime);
    let certificate = match policy.tls() {
        Some(files) => Some(certificate::open(&files, folder, &mut watching).map_err(Problem::new)?),
        None => None,
    };
    let gatekeeper = gatekeeper(policy, manifest.callers(), (folder, &mut watching))?;
    let mut sockets = Sockets(Vec::new());
    let (mut listeners, mut endpoints) = (Vec::new(), Vec::new());
    let _inside = runtime.enter();
    for address in &addresses {
        let (listener, shown) = bind(address, certificate.clone(), folder, &mut sockets)?;
        listeners.push(listener);
        endpoints.push(format!("{shown}{}", policy.path()));
    }
    let limits = limits(policy);
    raise_descriptors(limits.connections_max as u64);
    let origin_policy = origin_policy(policy).map_err(|error| Problem::new(error.to_string()))?;
    let traffic = Arc::default();
    let path = policy.path().to_owned();
    let options = HttpOptions { listeners, path, origin_policy, limits, gatekeeper, traffic };
    let asks_for_tokens = asks_for_tokens(policy);
    Ok(Bound { options, endpoints, asks_for_tokens, guard: Guard { _sockets: sockets, _watching: watching } })
}

/// Whether callers have to show who they are.
fn asks_for_tokens(policy: &HttpPolicy) -> bool {
    policy.tokens().is_some() || policy.oauth().is_some()
}

fn gatekeeper(
    policy: &HttpPolicy,
    callers: &Callers,
    (folder, watching): (&Path, &mut Watching),
) -> Result<Arc<dyn Gatekeeper>, Problem> {
    if !asks_for_tokens(policy) {
        return Ok(Arc::new(AdmitEveryone));
    }
    let tokens = policy.tokens().map(|file| Tokens::open(TokenFile::at(folder.join(file)), watching)).transpose();
    let tokens =
        tokens.map_err(|message| Problem { message, hint: Some("`toolcell token new NAME` writes the file") })?;
    let scopes: Vec<&str> = callers.rules().iter().flat_map(|rule| rule.scopes()).map(String::as_str).collect();
    let oauth = policy.oauth().map(|oauth| Oauth::new(oauth, &scopes)).transpose().map_err(|message| Problem {
        message,
        hint: Some("issuers are trusted by the machine's roots: install them, or name a file of them in SSL_CERT_FILE"),
    })?;
    Ok(Arc::new(Doorkeeper::new(tokens, oauth)))
}

fn addresses(arg: &HttpAddress, policy: &HttpPolicy) -> Result<Vec<ListenAddress>, Problem> {
    match arg {
        HttpAddress::At(address) => Ok(vec![address.clone()]),
        HttpAddress::Manifest if !policy.listen().is_empty() => Ok(policy.listen().to_vec()),
        HttpAddress::Manifest => {
            let default = ListenAddress::parse(LISTEN_DEFAULT);
            default.map(|address| vec![address]).ok_or_else(|| Problem::new("there is no address to listen on"))
        }
    }
}

/// Anybody who can reach an address may call every tool, unless callers have to show who they are.
fn refuse_open_doors(addresses: &[ListenAddress], policy: &HttpPolicy, insecure: bool) -> Result<(), Problem> {
    let public = addresses.iter().find(|address| address.is_public());
    let Some(address) = public.filter(|_| !asks_for_tokens(policy) && !insecure) else { return Ok(()) };
    Err(Problem {
        message: format!("{address} can be reached from other machines, and nobody would have to say who they are"),
        hint: Some(
            "name a file of tokens in the manifest ([http] tokens = \"tokens.jsonl\", see `toolcell token new`) or an issuer ([http.oauth]), \
             listen on 127.0.0.1, or type --insecure-public where something else keeps strangers out",
        ),
    })
}

fn bind(
    address: &ListenAddress,
    certificate: Option<Certificate>,
    folder: &Path,
    sockets: &mut Sockets,
) -> Result<(Listener, String), Problem> {
    match address {
        ListenAddress::Tcp(tcp) => {
            let wrong = |error: std::io::Error| Problem::new(format!("{tcp} cannot be listened on: {error}"));
            let socket = std::net::TcpListener::bind(tcp).map_err(wrong)?;
            let bound: SocketAddr = socket.local_addr().map_err(wrong)?;
            let scheme = if certificate.is_some() { "https" } else { "http" };
            Ok((Listener::tcp(socket, certificate).map_err(wrong)?, format!("{scheme}://{bound}")))
        }
        ListenAddress::Unix(path) => {
            let path = folder.join(path);
            let shown = path.display().to_string();
            let wrong = |error: std::io::Error| Problem::new(format!("{shown} cannot be listened on: {error}"));
            if fs::symlink_metadata(&path).is_ok() && !remove_if_dead(&path) {
                return Err(Problem::new(format!("{shown} cannot be listened on: something is there already")));
            }
            let socket = UnixListener::bind(&path).map_err(wrong)?;
            sockets.0.push(path.clone());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(wrong)?;
            Ok((Listener::unix(socket).map_err(wrong)?, format!("unix:{shown} http://localhost")))
        }
    }
}

fn origin_policy(policy: &HttpPolicy) -> Result<OriginPolicy, toolcell_mcp::http::OriginError> {
    let doors = policy.hosts().iter().try_fold(OriginPolicy::default(), |doors, host| doors.host(host))?;
    policy.origins().iter().try_fold(doors, |doors, origin| doors.origin(origin))
}

fn limits(policy: &HttpPolicy) -> HttpLimits {
    let limits = policy.limits();
    HttpLimits {
        body_bytes_max: limits.body_bytes(),
        bodies_bytes_max: limits.bodies_bytes(),
        head_bytes_max: limits.head_bytes(),
        connections_max: limits.connections(),
        requests_max: limits.requests(),
        streams_max: limits.streams(),
        sessions_max: limits.sessions(),
        per_caller: CallerLimits {
            connections_max: limits.connections_per_caller(),
            requests_max: limits.requests_per_caller(),
            streams_max: limits.streams_per_caller(),
            sessions_max: limits.sessions_per_caller(),
            bodies_bytes_max: limits.bodies_per_caller_bytes(),
        },
        head_time: limits.head_time(),
        body_time: limits.body_time(),
        write_time: limits.write_time(),
        idle_time: limits.idle(),
        beat: limits.keep_alive(),
        stream_time: limits.stream_time(),
        session_idle: limits.session_idle(),
        session_time: limits.session_time(),
        drain: limits.drain(),
        ..HttpLimits::default()
    }
}

/// Lets the process have as many descriptors as it may need, as far as it may have them.
fn raise_descriptors(connections: u64) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections.saturating_add(DESCRIPTORS_BESIDE);
    let Some(current) = limit.current.filter(|current| *current < wanted) else { return };
    let current = limit.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
    if setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum }).is_err()
        || current < wanted
    {
        tracing::warn!("this process may have {current} descriptors, and {connections} connections are allowed");
    }
}
