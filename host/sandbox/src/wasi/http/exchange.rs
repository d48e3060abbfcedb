//! One request and its response, from the permit to the response's body.
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};
use http::response::Parts;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming as HyperBody;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use toolcell_policy::{HttpAsk, HttpPermit};
use toolcell_wall::doors::http::RequestWaits;
use toolcell_wall::doors::http_fault::HttpFault;
use toolcell_wall::doors::net_limits::NetLimits;

use super::connect::Connector;
use super::connections::{ConnectionLease, IdleConnections, PooledConnection, PooledServer, RequestSender};
use super::incoming::{self, BodyTerms, ServerBody};
use super::inject::NotInjected;
use super::outgoing::{GuestHttpBody, Sent};
use super::requests::{Answered, HttpBody};
use super::{fault, fields, framing};
use crate::secrets::Redactor;
use crate::wasi::net::CallNet;
use toolcell_wall::caller::Requested;
use toolcell_wall::denials::CallDenials;

/// Times that the parts of a request may take: the limits, or less if the guest asks for less.
#[derive(Clone, Copy)]
pub(super) struct PhaseLimits {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Option<Duration>,
    deadline: Instant,
}

/// A permitted request.
pub(super) struct PermittedRequest {
    pub(super) connector: Connector,
    pub(super) idle: Arc<IdleConnections>,
    pub(super) permit: HttpPermit,
    pub(super) waits: PhaseLimits,
}

/// The task that runs along with a response until its body is dropped.
pub(super) type BodyTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request for the caller's records.
struct Noted {
    denials: CallDenials,
    ask: HttpAsk,
    began: SystemTime,
}

impl Noted {
    fn report(self, came: Result<StatusCode, &HttpFault>) {
        let failed = came.err().map(|error| format!("{error:?}"));
        // The kind of an error is enough for counting; its content is left out.
        let kind = failed.as_deref().and_then(|text| text.split(['(', ' ', '{']).next()).unwrap_or_default();
        let came = came.map(|status| status.as_u16()).map_err(|_| kind);
        self.denials.requested(&Requested { ask: &self.ask, began: self.began, came });
    }
}

/// A request to be sent, before it is adapted to its connection.
struct OutgoingHead {
    method: Method,
    target: String,
    fields: HeaderMap,
    /// True if it carries a secret.
    confidential: bool,
}

impl PhaseLimits {
    pub(super) fn new(limits: &NetLimits, waits: RequestWaits) -> Self {
        Self {
            connect: waits.connect.map_or(limits.connect, |wait| wait.min(limits.connect)),
            first_byte: waits.first_byte.map_or(limits.first_byte, |wait| wait.min(limits.first_byte)),
            between_bytes: waits.between_bytes.filter(|wait| *wait < limits.total),
            deadline: Instant::now() + limits.total,
        }
    }
}

impl PermittedRequest {
    /// Makes the request. Ends when the call does.
    pub(super) async fn run(self, request: Request<HttpBody>) -> Result<Answered, HttpFault> {
        let net = Arc::clone(&self.connector.net);
        let deadline = self.waits.deadline;
        let noted = self.noted();
        let answer = tokio::select! {
            biased;
            () = net.ended() => Err(HttpFault::ConnectionTerminated),
            answer = timeout_at(deadline, self.answer(request)) => answer.unwrap_or(Err(HttpFault::HttpResponseTimeout)),
        };
        if let Some(noted) = noted {
            noted.report(answer.as_ref().map(|(response, _)| response.status()));
        }
        answer
    }

    /// The request for its caller's records, if the caller wants it.
    fn noted(&self) -> Option<Noted> {
        let denials = &self.connector.denials;
        let noted = || Noted { denials: denials.clone(), ask: self.permit.ask().clone(), began: SystemTime::now() };
        denials.notes_requests().then(noted)
    }

    async fn answer(self, request: Request<HttpBody>) -> Result<Answered, HttpFault> {
        let net = &self.connector.net;
        let limits = *net.limits();
        let (mut parts, body) = request.into_parts();
        if body.is_end_stream() {
            framing::set_empty_length(&parts.method, &mut parts.headers);
        }
        let head = self.head(parts.method, parts.headers).await?;
        let body = GuestHttpBody::new(body, declared_bytes(&head.fields), limits.headers, limits.header_bytes);
        let connected_by = Instant::now() + self.waits.connect;
        let turn = timeout_at(connected_by, net.turn()).await.map_err(|_| HttpFault::ConnectionLimitReached)?;
        let turn = turn.ok_or(HttpFault::ConnectionTerminated)?;
        let (link, response, sent) = self.send(&head, body, connected_by).await?;
        self.receive(&head, response, Carried { link, sent, turn }).await
    }

    /// The request's head, with the secrets that go with it.
    async fn head(&self, method: Method, mut fields: HeaderMap) -> Result<OutgoingHead, HttpFault> {
        let mut target = self.permit.ask().target();
        let injector = self.connector.client.injector();
        let injected = injector.inject(self.permit.ask(), &mut fields, &mut target).await;
        if injected == Err(NotInjected::NoValue) {
            self.connector.denials.add(self.permit.without_login());
        }
        let confidential = injected?;
        Ok(OutgoingHead { method, target, fields, confidential })
    }

    /// Sends the request over a waiting connection or a new one. A server may close a waiting
    /// connection. If nothing of a request was sent, it is then sent again over a new one. So is
    /// one without a body that may be repeated (RFC 9110, section 9.2.2).
    async fn send(
        &self,
        head: &OutgoingHead,
        mut body: GuestHttpBody,
        connected_by: Instant,
    ) -> Result<(PooledConnection, Response<HyperBody>, Sent), HttpFault> {
        let server = self.server();
        let waiting = timeout_at(connected_by, self.idle.take(&server)).await;
        if let Some(mut link) = waiting.map_err(|_| HttpFault::ConnectionTimeout)? {
            let sent = body.sent();
            let repeatable = sent.is_whole() && head.method.is_idempotent();
            let request = self.request(head, body, &link)?;
            match self.in_time(link.send(request)).await? {
                Ok(response) => return Ok((link, response, sent)),
                Err(mut error) => match (error.take_message(), fault::of_hyper(error.error(), &self.connector.net)) {
                    (Some(request), _) => body = request.into_body(),
                    (None, HttpFault::ConnectionTerminated | HttpFault::HttpResponseIncomplete) if repeatable => {
                        body = GuestHttpBody::none();
                    }
                    (None, error) => return Err(error),
                },
            }
        }
        let link = timeout_at(connected_by, self.connector.link(&self.permit)).await;
        let mut link = link.map_err(|_| HttpFault::ConnectionTimeout)??;
        self.idle.share(&server, &link);
        let sent = body.sent();
        let request = self.request(head, body, &link)?;
        let response = self.in_time(link.send(request)).await?;
        let response = response.map_err(|error| fault::of_hyper(error.error(), &self.connector.net))?;
        Ok((link, response, sent))
    }

    async fn in_time<T>(&self, sending: impl Future<Output = T>) -> Result<T, HttpFault> {
        timeout(self.waits.first_byte, sending).await.map_err(|_| HttpFault::HttpResponseTimeout)
    }

    fn server(&self) -> PooledServer {
        let ask = self.permit.ask();
        PooledServer { scheme: ask.scheme(), host: ask.host().clone(), port: ask.port() }
    }

    /// The request in the form that this connection needs. Host and path are those that were
    /// decided on, not those that the guest wrote.
    fn request(
        &self,
        head: &OutgoingHead,
        body: GuestHttpBody,
        link: &PooledConnection,
    ) -> Result<Request<GuestHttpBody>, HttpFault> {
        let ask = self.permit.ask();
        let many = matches!(link.sender, RequestSender::Many(_));
        let authority = ask.authority();
        let uri = if many || link.proxied {
            Uri::builder()
                .scheme(ask.scheme().name())
                .authority(authority.as_str())
                .path_and_query(head.target.as_str())
                .build()
        } else {
            Uri::builder().path_and_query(head.target.as_str()).build()
        };
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = uri.map_err(|_| HttpFault::HttpRequestUriInvalid)?;
        *request.headers_mut() = head.fields.clone();
        if many {
            *request.version_mut() = Version::HTTP_2;
        } else {
            let host = HeaderValue::try_from(authority).map_err(|_| HttpFault::HttpRequestUriInvalid)?;
            request.headers_mut().insert(header::HOST, host);
        }
        Ok(request)
    }

    /// The response for the guest.
    async fn receive(
        &self,
        head: &OutgoingHead,
        response: Response<HyperBody>,
        Carried { link, sent, turn }: Carried,
    ) -> Result<Answered, HttpFault> {
        let net = &self.connector.net;
        let (mut parts, body) = response.into_parts();
        let lease = ConnectionLease { idle: Arc::clone(&self.idle), server: self.server(), link, sent };
        let redactor = self.connector.client.injector().redactor();
        let checked = check(&parts, net).and_then(|()| coding(&parts.headers, head, &redactor));
        if let Err(error) = checked {
            lease.close();
            return Err(error);
        }
        incoming::redact_fields(&redactor, &mut parts.headers);
        if !redactor.is_empty() {
            // It may be wrong now.
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        let PhaseLimits { deadline, between_bytes, .. } = self.waits;
        let closes = worker(&lease.link, deadline);
        let terms = BodyTerms { net: Arc::clone(net), redactor, deadline, between_bytes, lease, turn };
        let body = ServerBody::new(body, terms).with_ahead().await;
        // A response that was received completely has returned its connection, which others may use
        // by then.
        let worker = if body.is_received() { Box::pin(std::future::ready(())) } else { closes };
        Ok((Response::from_parts(parts, body.boxed_unsync()), worker))
    }
}

/// A request that was sent, with its connection.
struct Carried {
    link: PooledConnection,
    sent: Sent,
    turn: OwnedSemaphorePermit,
}

/// Closes a connection whose response the guest leaves unread until its time is over. An unread
/// response of HTTP/2 holds no more than its window, and others may use the same connection.
fn worker(link: &PooledConnection, deadline: Instant) -> BodyTask {
    match &link.sender {
        RequestSender::One(..) => {
            let driver = link.driver.clone();
            Box::pin(async move {
                tokio::time::sleep_until(deadline).await;
                driver.abort();
            })
        }
        RequestSender::Many(_) => Box::pin(std::future::ready(())),
    }
}

/// Checks that a response may go to the guest.
fn check(parts: &Parts, net: &CallNet) -> Result<(), HttpFault> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(HttpFault::HttpUpgradeFailed);
    }
    let limits = net.limits();
    fields::check(&parts.headers, limits.headers, limits.header_bytes)
        .map_err(|bytes| HttpFault::HttpResponseHeaderSectionSize(Some(fault::clamped(bytes))))?;
    framing::check(&parts.headers, parts.version, parts.status)
}

/// A secret within a compressed answer would not be found. The request asked for an uncompressed
/// one. Each field and each word in a field counts.
fn coding(fields: &HeaderMap, head: &OutgoingHead, redactor: &Redactor) -> Result<(), HttpFault> {
    if !head.confidential {
        return Ok(());
    }
    let words =
        fields.get_all(header::CONTENT_ENCODING).iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
    let mut words = words.map(<[u8]>::trim_ascii);
    match words.find(|word| !word.is_empty() && !word.eq_ignore_ascii_case(b"identity")) {
        // It is the server's own word, and the guest can read it.
        Some(word) => {
            Err(HttpFault::HttpResponseContentCoding(redactor.text(&String::from_utf8_lossy(word)).into_owned()))
        }
        None => Ok(()),
    }
}

fn declared_bytes(fields: &HeaderMap) -> Option<u64> {
    fields.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
