//! A call that makes requests: a guest's use of wasi:http, without the guest.
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;
use toolcell_policy::{Grants, Limits, SecretSource};
use toolcell_wall::doors::net_limits::NetLimits;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks as _};
use zeroize::Zeroizing;

use crate::testing::TestDoors;
use crate::wasi::http::HttpHooks;
use crate::wasi::http::outside::Worker;
use crate::wasi::net::OutsideNetGuard;
use toolcell_sandbox::{GrantSources, GrantedCapabilities, HeldSecret, SecretValue};

/// The grants and limits of a call.
#[derive(Default)]
pub(super) struct Granted {
    /// Lines of the component's tables: `[network]`'s first, then any other tables.
    pub(super) lines: String,
    /// Lines of its limits.
    pub(super) limits: String,
    pub(super) name_servers: Vec<SocketAddr>,
    /// The content of a `ca` file named `ca.pem`.
    pub(super) ca_pem: String,
    /// The values of its secrets, by name.
    pub(super) secrets: Vec<(&'static str, &'static str)>,
}

/// One call.
pub(super) struct Call {
    hooks: HttpHooks,
    _guard: OutsideNetGuard,
    /// The host's side of the call.
    pub(super) doors: TestDoors,
    workers: JoinSet<()>,
}

/// A request in progress: its response, and the task that runs along.
pub(super) type Beginning = Pin<Box<dyn Future<Output = Result<(Response<WasiBody>, Worker), Error>> + Send>>;

/// A response that was read to its end.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) trailers: Option<HeaderMap>,
}

impl Granted {
    /// These lines of `[components.it.network]`.
    pub(super) fn network(lines: impl Into<String>) -> Self {
        Self { lines: lines.into(), ..Self::default() }
    }

    /// Every request to this address.
    pub(super) fn to(address: SocketAddr) -> Self {
        Self::network(format!("http = [\"http://{address}\"]\nprivate = [\"{address}\"]\n"))
    }

    pub(super) fn limited(mut self, limits: &str) -> Self {
        self.limits = limits.to_owned();
        self
    }

    fn parse(&self) -> (Arc<Grants>, Limits) {
        let Self { lines, limits, .. } = self;
        let manifest = format!(
            "version = 1\n[components.it]\nsource = \"it.wasm\"\n[components.it.limits]\n{limits}\n\
             [components.it.network]\n{lines}\n"
        );
        let manifest = toolcell_policy::parse(&toolcell_policy::Source { name: "toolcell.toml", text: &manifest })
            .unwrap_or_else(|problems| panic!("{problems:?}"))
            .manifest;
        let component = manifest.component("it").unwrap();
        (Arc::clone(&component.tool_grants("tool")), *component.tool_limits("tool"))
    }

    /// A call of a tool that is granted this.
    pub(super) fn call(&self) -> Call {
        let (grants, limits) = self.parse();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), &self.ca_pem).unwrap();
        let value = |name: &str| self.secrets.iter().find(|(of, _)| *of == name).unwrap().1;
        let value = |name: &str| HeldSecret::Fixed(SecretValue::new(Zeroizing::new(value(name).to_owned())).unwrap());
        let secret = |source: &SecretSource| {
            let of = grants.secrets().iter().find(|secret| secret.source() == source).unwrap();
            Ok(value(of.name()))
        };
        let sources = GrantSources {
            folder: folder.path(),
            variable: &|_| None,
            secret: &secret,
            state_folder: folder.path(),
            shared_state: None,
            name_servers: &self.name_servers,
            observing: false,
        };
        let capabilities = GrantedCapabilities::prepare(&grants, &sources).unwrap_or_else(|p| panic!("{p:?}"));
        Call::new(TestDoors::new(&capabilities, &limits), &limits)
    }
}

impl Call {
    /// A call of a process that has only doors.
    fn new(doors: TestDoors, limits: &Limits) -> Self {
        let guard = OutsideNetGuard::new(NetLimits::from(limits));
        let hooks = HttpHooks::new(Arc::clone(guard.net()), doors.caller().as_ref());
        Self { hooks, _guard: guard, doors, workers: JoinSet::new() }
    }

    /// Makes a request, and runs the task along with its response.
    pub(super) async fn send(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<Response<WasiBody>, Error> {
        let (response, worker) = self.begin(request, options).await?;
        self.workers.spawn(async move {
            let _ = Box::into_pin(worker).await;
        });
        Ok(response)
    }

    /// Begins a request.
    pub(super) fn begin(&mut self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Beginning {
        Box::into_pin(self.hooks.send_request(request, options, Box::new(std::future::ready(Ok(())))))
    }

    /// Makes a request, and leaves its response unread.
    pub(super) async fn open(&mut self, url: &str) -> Result<Response<WasiBody>, Error> {
        self.send(get(url), None).await
    }

    /// Makes a request, and reads its response.
    pub(super) async fn fetch(&mut self, request: Request<WasiBody>) -> Result<Got, Error> {
        read(self.send(request, None).await?).await
    }

    pub(super) async fn get(&mut self, url: &str) -> Result<Got, Error> {
        self.fetch(get(url)).await
    }

    /// The denials of the call.
    pub(super) fn denied(&self) -> Vec<String> {
        self.doors.calls.denials().0.iter().map(ToString::to_string).collect()
    }

    pub(super) fn traffic_bytes(&self) -> (u64, u64) {
        self.doors.calls.traffic_bytes()
    }
}

/// Reads a response to its end.
pub(super) async fn read(response: Response<WasiBody>) -> Result<Got, Error> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    Ok(Got { status: parts.status, headers: parts.headers, body, trailers })
}

pub(super) fn get(url: &str) -> Request<WasiBody> {
    request("GET", url, &[], "")
}

pub(super) fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Request<WasiBody> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes())).map_err(Error::from).boxed_unsync();
    request.body(body).unwrap()
}
