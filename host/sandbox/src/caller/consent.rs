//! Requests that no rule allows, and that a person may allow while the guest waits. Must not hold:
//! which requests those are (`toolcell_policy::Askable`), or how anybody is asked.
//!
//! A request that is allowed becomes a rule of the call's network, and is then decided on like any
//! other. Nothing else is allowed by it.
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toolcell_policy::{Askable, Capability, Host, HttpAsk};
use wasmtime::component::Resource;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::wasi::doors::frame::HOST_BYTES_MAX;
use crate::wasi::doors::{Door, DoorError, FrameReader, FrameWriter, Opening};
use crate::wasi::sockets::{Asked, resolved};
use crate::wasi::state::CallState;
use toolcell_wall::asking::{AskBudget, EndedByAsking};
use toolcell_wall::caller::{Caller, Consent, Outside};

/// The operation that a guest is about to begin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Wish {
    Request(WishedRequest),
    Connect(SocketAddr),
    /// Packets to this address.
    Send(SocketAddr),
}

/// An HTTP request, as the guest wrote it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WishedRequest {
    method: String,
    scheme: String,
    authority: String,
    target: String,
}

/// A message of the host about a wish.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// A person is asked now, and the call waits.
    Waits,
    /// The operation can begin, and is decided on then. For a socket, with the address to go to.
    Goes(Option<SocketAddr>),
    /// The call ends here.
    Ended(Option<String>),
}

/// The parts of a call that ask a person.
pub(crate) struct Consenting<'a> {
    pub(crate) asked: Asked<'a>,
    pub(crate) caller: &'a dyn Caller,
    pub(crate) budget: &'a mut AskBudget,
    /// Is told when a person is asked.
    pub(crate) waits: Option<&'a Notify>,
}

/// A socket's target as the guest named it.
struct Target {
    host: Host,
    port: u16,
    /// The host is a name that was never looked up, and this address only stands in for it.
    placeheld: bool,
}

impl CallState {
    /// Asks about a request that no rule allows, before it is decided on. What is denied then is
    /// denied as ever.
    ///
    /// # Errors
    /// The call ends where it asks.
    pub(crate) async fn ask_before_request(&mut self, request: &Resource<HostOutgoingRequest>) -> wasmtime::Result<()> {
        if !self.capabilities().may_ask() {
            return Ok(());
        }
        let Some(wish) = self.table().get(request).ok().map(WishedRequest::of) else { return Ok(()) };
        let Some(outside) = self.caller.outside() else { return Ok(()) };
        self.ask_outside(&*outside, Wish::Request(wish)).await.map(drop)
    }

    /// The address to connect to: as the guest named it, or one of the name that its address stands
    /// in for. Asks about a target that no rule allows. What is denied then is denied as ever.
    ///
    /// # Errors
    /// The call ends where it asks.
    pub(crate) async fn ask_before_socket(
        &mut self,
        capability: Capability,
        to: SocketAddr,
    ) -> wasmtime::Result<SocketAddr> {
        if !self.capabilities().may_ask() {
            return Ok(to);
        }
        let Some(outside) = self.caller.outside() else { return Ok(to) };
        let wish = if capability == Capability::Udp { Wish::Send(to) } else { Wish::Connect(to) };
        Ok(self.ask_outside(&*outside, wish).await?.unwrap_or(to))
    }

    /// Has the host ask, where it must, with the call's deadline stopped while a person thinks.
    async fn ask_outside(&mut self, outside: &dyn Outside, wish: Wish) -> wasmtime::Result<Option<SocketAddr>> {
        if !self.net().wish() {
            return Ok(None);
        }
        let Ok(said) = self.wish(outside, wish).await else { return Ok(None) };
        match said {
            Said::Ended(refused) => Err(EndedByAsking { refused }.into()),
            Said::Goes(to) => Ok(to),
            Said::Waits => Ok(None),
        }
    }

    async fn wish(&mut self, outside: &dyn Outside, wish: Wish) -> Result<Said, DoorError> {
        let (mut reader, mut writer) = Door::open(outside).await?.split();
        writer.message(&Opening::Consent(wish)).await?;
        match reader.message(HOST_BYTES_MAX).await? {
            Said::Waits => {
                self.asking.charge_own();
                let said = self.asking.wait_for(reader.message(HOST_BYTES_MAX)).await;
                said.unwrap_or(Err(DoorError::Closed))
            }
            said => Ok(said),
        }
    }
}

impl WishedRequest {
    /// The request that a guest is about to send.
    fn of(request: &HostOutgoingRequest) -> Self {
        let method = match &request.method {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Other(method) => method.as_str(),
        };
        let scheme = match &request.scheme {
            Some(Scheme::Http) => "http",
            Some(Scheme::Https) | None => "https",
            Some(Scheme::Other(scheme)) => scheme.as_str(),
        };
        Self {
            method: method.to_owned(),
            scheme: scheme.to_owned(),
            authority: request.authority.clone().unwrap_or_default(),
            target: request.path_with_query.clone().unwrap_or_else(|| "/".to_owned()),
        }
    }

    /// `None` where it is not well formed.
    fn ask(&self) -> Option<HttpAsk> {
        HttpAsk::new(&self.method, &self.scheme, &self.authority, &self.target).ok()
    }
}

/// The host's side of a wish: asks, where it must, and says how it goes on.
pub(crate) async fn serve(
    mut consenting: Consenting<'_>,
    wish: Wish,
    (_, mut writer): (FrameReader, FrameWriter),
) -> Result<(), DoorError> {
    let waits = Notify::new();
    consenting.waits = Some(&waits);
    let said = {
        let mut asked = pin!(consenting.wished(wish));
        tokio::select! {
            biased;
            said = &mut asked => said,
            () = waits.notified() => {
                writer.message(&Said::Waits).await?;
                asked.await
            }
        }
    };
    writer.message(&said).await
}

impl Consenting<'_> {
    async fn wished(&mut self, wish: Wish) -> Said {
        if !self.asked.capabilities.may_ask() {
            return Said::Goes(None);
        }
        let ended = |EndedByAsking { refused }| Said::Ended(refused);
        let goes = |to| Said::Goes(Some(to));
        match wish {
            Wish::Request(request) => match request.ask() {
                Some(ask) => self.before_request(&ask).await.map_or_else(ended, |()| Said::Goes(None)),
                None => Said::Goes(None),
            },
            Wish::Connect(to) => self.before_socket(Capability::Tcp, to).await.map_or_else(ended, goes),
            Wish::Send(to) => self.before_socket(Capability::Udp, to).await.map_or_else(ended, goes),
        }
    }

    /// Asks about a request that no rule allows.
    async fn before_request(&mut self, ask: &HttpAsk) -> Result<(), EndedByAsking> {
        let grants = self.asked.capabilities.grants();
        let allowed = self.asked.net.decide(grants, |network| match (network.http(ask), ask.host()) {
            (Ok(permit), Host::Addr(address)) => permit.check_address(*address).is_ok(),
            (Ok(_), Host::Name(_)) => true,
            (Err(_), _) => false,
        });
        if !allowed && let Some(offer) = grants.offer_http(ask) {
            self.ask_person(&offer).await?;
        }
        Ok(())
    }

    /// Asks about a target that no rule allows. Returns the address to go to.
    async fn before_socket(&mut self, capability: Capability, to: SocketAddr) -> Result<SocketAddr, EndedByAsking> {
        let (net, grants) = (self.asked.net, self.asked.capabilities.grants());
        let target = {
            let known = net.resolved();
            let placeheld = known.placeheld(to.ip()).cloned();
            let named = known.names_of(to.ip()).next().and_then(|name| Host::parse(name).ok());
            let is_placeheld = placeheld.is_some();
            let host = placeheld.or(named).unwrap_or(Host::Addr(to.ip()));
            Target { host, port: to.port(), placeheld: is_placeheld }
        };
        let allowed = net.decide(grants, |network| match (&target.placeheld, capability) {
            (true, _) => network.socket_of_name(capability, &target.host, target.port).is_ok(),
            (false, Capability::Udp) => network.udp(to, &net.resolved()).is_ok(),
            (false, _) => network.tcp(to, &net.resolved()).is_ok(),
        });
        if !allowed {
            let offer = grants.offer_socket(capability, &target.host, target.port);
            let Some(offer) = offer else { return Ok(to) };
            if !self.ask_person(&offer).await? {
                return Ok(to);
            }
        }
        match target.host {
            Host::Name(name) if target.placeheld => {
                Ok(resolved(self.asked, capability, &name, target.port).await.unwrap_or(to))
            }
            _ => Ok(to),
        }
    }

    /// Asks a person, once in a call about each request. True if it is allowed: from then on the
    /// call's network has a rule for it.
    async fn ask_person(&mut self, offer: &Askable) -> Result<bool, EndedByAsking> {
        let Asked { capabilities, net, .. } = self.asked;
        if net.was_refused(offer) {
            return Ok(false);
        }
        let consent = if self.caller.has_consent(offer) {
            Consent::Given
        } else if self.budget.charge_own() {
            self.waits.iter().for_each(|waits| waits.notify_one());
            let began = Instant::now();
            let answer = tokio::time::timeout(self.budget.wait_left(), self.caller.consent(offer)).await;
            self.budget.waited(began.elapsed());
            answer.unwrap_or(Consent::Refused)
        } else {
            Consent::Refused
        };
        match consent {
            Consent::Given => {
                net.allow(capabilities.grants(), offer);
                Ok(true)
            }
            Consent::Refused => {
                net.refuse(offer);
                Ok(false)
            }
            Consent::Ended(refused) => Err(EndedByAsking { refused }),
        }
    }
}
