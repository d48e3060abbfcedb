//! From manifest and command line to bound sockets and a ready transport.
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use tokio::runtime::Handle;
use toolcell_mcp::http::{
    AdmitEveryone, CallerLimits, Certificate, Gatekeeper, HttpLimits, HttpListener, HttpOptions, OriginPolicy,
};
use toolcell_policy::{AdvisedFault, HttpPolicy, ListenAddress, Manifest};

use super::certificate;
use crate::files::FilePolling;
use crate::identity::{Authenticator, Oauth, TokenFile, Tokens};
use crate::listening::listener_process::{cannot_listen, listens_on};
use crate::machine::descriptors;
use crate::machine::socket_paths::{SocketFile, remove_if_dead};

/// Address if neither the manifest nor the command line has one.
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";

/// Address that HTTP is served at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpAddress {
    /// The manifest's.
    Manifest,
    /// This one.
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

/// Settings of the transport from the command line and the manifest.
pub struct HttpSettings<'a> {
    /// The address of the command line.
    pub address: &'a HttpAddress,
    /// True allows an address that other machines reach without asking callers for a token.
    pub insecure_public: bool,
    /// The manifest with the policy of the transport.
    pub manifest: &'a Manifest,
    /// The manifest's folder.
    pub folder: &'a Path,
}

/// A transport that is ready to serve.
pub struct BoundTransport {
    /// Options of the transport.
    pub options: HttpOptions,
    /// URL of each socket, for people.
    pub endpoints: Vec<String>,
    /// True if callers have to show a token.
    pub asks_for_tokens: bool,
    /// Checks tokens, if callers have to show one.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Kept while it serves.
    pub guard: Guard,
}

/// Resources that end with the serving.
pub struct Guard {
    _sockets: Vec<SocketFile>,
    _polling: FilePolling,
}

/// Binds the sockets and prepares the transport.
pub fn open(settings: &HttpSettings<'_>, runtime: &Handle) -> Result<BoundTransport, AdvisedFault> {
    let HttpSettings { address, insecure_public, manifest, folder } = *settings;
    let default = HttpPolicy::default();
    let policy = manifest.http().unwrap_or(&default);
    let addresses = addresses(address, policy)?;
    if let Some(fault) = open_access_fault(&addresses, policy).filter(|_| !insecure_public) {
        return Err(fault);
    }
    let mut polling = FilePolling::new(runtime);
    let certificate = match policy.tls() {
        Some(files) => Some(certificate::open(&files, folder, &mut polling).map_err(AdvisedFault::unadvised)?),
        None => None,
    };
    let authenticator = authenticator(manifest, folder, &mut polling)?.map(Arc::new);
    let gatekeeper: Arc<dyn Gatekeeper> = match &authenticator {
        Some(authenticator) => Arc::<Authenticator>::clone(authenticator),
        None => Arc::new(AdmitEveryone),
    };
    let mut sockets = Vec::new();
    let mut listeners = Vec::new();
    let mut endpoints = Vec::new();
    let _inside = runtime.enter();
    for address in &addresses {
        let (listener, shown) = bind(address, certificate.clone(), folder, &mut sockets)?;
        listeners.push(listener);
        endpoints.push(format!("{shown}{}", policy.path()));
    }
    let limits = limits(policy);
    descriptors::raise(limits.connections_max as u64);
    let origin_policy = origin_policy(policy).map_err(|error| AdvisedFault::unadvised(error.to_string()))?;
    let traffic = Arc::default();
    let path = policy.path().to_owned();
    let refusals = None;
    let readiness = None;
    let replicas = None;
    let options =
        HttpOptions { listeners, path, origin_policy, limits, gatekeeper, traffic, refusals, readiness, replicas };
    let asks_for_tokens = authenticator.is_some();
    let guard = Guard { _sockets: sockets, _polling: polling };
    Ok(BoundTransport { options, endpoints, asks_for_tokens, authenticator, guard })
}

/// True if callers have to authenticate.
fn asks_for_tokens(policy: &HttpPolicy) -> bool {
    policy.tokens().is_some() || policy.oauth().is_some()
}

/// Checks tokens as the manifest says; `None` where callers show none.
pub fn authenticator(
    manifest: &Manifest,
    folder: &Path,
    polling: &mut FilePolling,
) -> Result<Option<Authenticator>, AdvisedFault> {
    let Some(policy) = manifest.http().filter(|policy| asks_for_tokens(policy)) else { return Ok(None) };
    let tokens = tokens(policy, folder, polling)?;
    let scopes: Vec<&str> =
        manifest.callers().rules().iter().flat_map(|rule| rule.scopes()).map(String::as_str).collect();
    let oauth = policy.oauth().map(|oauth| Oauth::new(oauth, &scopes)).transpose().map_err(|problem| {
        let hint = "issuers are trusted by the machine's roots: install them, or name a file of them in SSL_CERT_FILE";
        AdvisedFault::new(problem, hint)
    })?;
    Ok(Some(Authenticator::new(tokens, oauth)))
}

/// The tokens of the manifest's file.
fn tokens(policy: &HttpPolicy, folder: &Path, polling: &mut FilePolling) -> Result<Option<Arc<Tokens>>, AdvisedFault> {
    let Some(file) = policy.tokens() else { return Ok(None) };
    let file = TokenFile::at(folder.join(file));
    let opened = Tokens::open(file.clone(), polling);
    opened.map(|tokens| Some(Arc::new(tokens))).map_err(|problem| AdvisedFault::new(problem, file.hint()))
}

fn addresses(arg: &HttpAddress, policy: &HttpPolicy) -> Result<Vec<ListenAddress>, AdvisedFault> {
    match arg {
        HttpAddress::At(address) => Ok(vec![address.clone()]),
        HttpAddress::Manifest if !policy.listen().is_empty() => Ok(policy.listen().to_vec()),
        HttpAddress::Manifest => {
            let default = ListenAddress::parse(LISTEN_DEFAULT);
            default
                .map(|address| vec![address])
                .ok_or_else(|| AdvisedFault::unadvised("there is no address to listen on"))
        }
    }
}

/// Why one of these addresses is refused: other machines reach it without authentication, so
/// anybody there may call every tool.
pub(crate) fn open_access_fault(addresses: &[ListenAddress], policy: &HttpPolicy) -> Option<AdvisedFault> {
    let address = addresses.iter().find(|address| address.is_public()).filter(|_| !asks_for_tokens(policy))?;
    Some(AdvisedFault::new(
        format!("{address} can be reached from other machines, and nobody would have to say who they are"),
        "name a file of tokens in the manifest ([http] tokens = \"tokens.jsonl\", see `toolcell token new`) or an issuer ([http.oauth]), \
             listen on 127.0.0.1, or type --insecure-public where something else keeps strangers out",
    ))
}

fn bind(
    address: &ListenAddress,
    certificate: Option<Certificate>,
    folder: &Path,
    sockets: &mut Vec<SocketFile>,
) -> Result<(HttpListener, String), AdvisedFault> {
    match address {
        ListenAddress::Tcp(tcp) => {
            let wrong = |error: std::io::Error| {
                AdvisedFault::unadvised(format!("{tcp} cannot be listened on: {}", cannot_listen(*tcp, &error)))
            };
            let socket = std::net::TcpListener::bind(tcp).map_err(wrong)?;
            let bound: SocketAddr = socket.local_addr().map_err(wrong)?;
            let scheme = if certificate.is_some() { "https" } else { "http" };
            Ok((HttpListener::tcp(socket, certificate).map_err(wrong)?, format!("{scheme}://{bound}")))
        }
        ListenAddress::Unix(path) => {
            let path = folder.join(path);
            let shown = path.display().to_string();
            let wrong =
                |error: std::io::Error| AdvisedFault::unadvised(format!("{shown} cannot be listened on: {error}"));
            if !remove_if_dead(&path) {
                return Err(AdvisedFault::unadvised(format!("{shown} cannot be listened on: {}", listens_on(&path))));
            }
            let socket = UnixListener::bind(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => no_folder(&path),
                _ => wrong(error),
            })?;
            sockets.push(SocketFile::made_at(path.clone()).map_err(wrong)?);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(wrong)?;
            Ok((HttpListener::unix(socket).map_err(wrong)?, format!("unix:{shown} http://localhost")))
        }
    }
}

/// The folder of this socket is missing.
fn no_folder(path: &Path) -> AdvisedFault {
    AdvisedFault::new(format!("{} cannot be listened on: there is no such folder", path.display()), "make it first")
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
        answers_bytes_max: limits.answers_bytes(),
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
            sent_bytes_per_minute: limits.sent_per_minute_bytes(),
            answers_bytes_max: limits.answers_per_caller_bytes(),
        },
        head_time: limits.head_time(),
        body_time: limits.body_time(),
        write_time: limits.write_time(),
        idle_time: limits.idle(),
        beat: limits.keep_alive(),
        stream_time: limits.stream_time(),
        session_idle: limits.session_idle(),
        session_time: limits.session_time(),
        notice: limits.notice(),
        drain: limits.drain(),
    }
}
