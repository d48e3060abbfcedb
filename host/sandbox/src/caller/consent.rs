//! Requests that no rule allows, and that a person may allow while the guest waits. Must not hold:
//! which requests those are (`toolcell_policy::Askable`), or how anybody is asked.
//!
//! A request that is allowed becomes a rule of the call's network, and is then decided on like any
//! other. Nothing else is allowed by it.
use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::{Askable, Capability, Host, HttpAsk};
use wasmtime::component::Resource;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use super::Consent;
use super::asking::EndedByAsking;
use crate::wasi::sockets::resolved;
use crate::wasi::state::CallState;

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
        let Some(ask) = self.table().get(request).ok().and_then(http_ask) else { return Ok(()) };
        let net = Arc::clone(self.net());
        let capabilities = Arc::clone(self.capabilities());
        let grants = capabilities.grants();
        let allowed = net.decide(grants, |network| match (network.http(&ask), ask.host()) {
            (Ok(permit), Host::Addr(address)) => permit.check_address(*address).is_ok(),
            (Ok(_), Host::Name(_)) => true,
            (Err(_), _) => false,
        });
        if !allowed && let Some(offer) = grants.offer_http(&ask) {
            self.ask_person(&offer).await?;
        }
        Ok(())
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
        let net = self.socket_net();
        let capabilities = Arc::clone(self.capabilities());
        let grants = capabilities.grants();
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
                Ok(resolved(self, capability, &name, target.port).await.unwrap_or(to))
            }
            _ => Ok(to),
        }
    }

    /// Asks a person, once in a call about each request. True if it is allowed: from then on the
    /// call's network has a rule for it.
    async fn ask_person(&mut self, offer: &Askable) -> wasmtime::Result<bool> {
        let net = Arc::clone(self.net());
        if net.was_refused(offer) {
            return Ok(false);
        }
        let caller = Arc::clone(&self.caller);
        let consent = if caller.has_consent(offer) {
            Consent::Given
        } else if self.asking.charge_own() {
            self.asking.wait_for(async { caller.consent(offer).await }).await.unwrap_or(Consent::Refused)
        } else {
            Consent::Refused
        };
        match consent {
            Consent::Given => {
                net.allow(self.capabilities().grants(), offer);
                Ok(true)
            }
            Consent::Refused => {
                net.refuse(offer);
                Ok(false)
            }
            Consent::Ended(refused) => Err(wasmtime::Error::new(EndedByAsking { refused })),
        }
    }
}

/// The request that a guest is about to send; `None` where it is not well formed.
fn http_ask(request: &HostOutgoingRequest) -> Option<HttpAsk> {
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
    let authority = request.authority.as_deref().unwrap_or_default();
    HttpAsk::new(method, scheme, authority, request.path_with_query.as_deref().unwrap_or("/")).ok()
}
