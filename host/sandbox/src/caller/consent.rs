//! Requests that no rule allows, and that a person may allow while the guest waits.
//!
//! A request that is allowed becomes a rule of the call's network, and is then decided on like any
//! other. Nothing else is allowed by it.
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Instant;

use tokio::sync::Notify;
use toolcell_policy::{Askable, Capability, Host, HttpAsk};
use toolcell_wall::doors::consent::{HttpWanted, PermissionReply, PermissionRequest};
use toolcell_walls::door::{DoorError, FrameWriter};

use crate::wasi::sockets::{LookupParts, resolved};
use toolcell_wall::asking::AskBudget;
use toolcell_wall::caller::{CallerLink, ConsentAnswer};

/// The parts of a call that ask a person.
pub(crate) struct ConsentParts<'a> {
    pub(crate) asked: LookupParts<'a>,
    pub(crate) caller: &'a dyn CallerLink,
    pub(crate) budget: &'a mut AskBudget,
    /// Woken when a person is asked.
    pub(crate) waits: Option<&'a Notify>,
}

/// A socket's target, as the guest named it.
struct NamedTarget {
    host: Host,
    port: u16,
    /// The host is a name that was never looked up; this address is only a placeholder.
    placeheld: bool,
}

/// `None` if it is malformed.
fn http_ask(request: &HttpWanted) -> Option<HttpAsk> {
    HttpAsk::new(&request.method, &request.scheme, &request.authority, &request.target).ok()
}

/// The host's side of a permission request: asks a person if it must, and answers the guest.
pub(crate) async fn serve(
    mut consenting: ConsentParts<'_>,
    request: PermissionRequest,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    let waits = Notify::new();
    consenting.waits = Some(&waits);
    let said = {
        let mut asked = pin!(consenting.decide(request));
        tokio::select! {
            biased;
            said = &mut asked => said,
            () = waits.notified() => {
                writer.message(&PermissionReply::Waits).await?;
                asked.await
            }
        }
    };
    writer.message(&said).await
}

impl ConsentParts<'_> {
    async fn decide(&mut self, request: PermissionRequest) -> PermissionReply {
        if !self.asked.capabilities.may_ask() {
            return PermissionReply::Goes(None);
        }
        let goes = |to| PermissionReply::Goes(Some(to));
        match request {
            PermissionRequest::Request(request) => match http_ask(&request) {
                Some(ask) => {
                    self.before_request(&ask).await.map_or_else(|ended| ended, |()| PermissionReply::Goes(None))
                }
                None => PermissionReply::Goes(None),
            },
            PermissionRequest::Connect(to) => {
                self.before_socket(Capability::Tcp, to).await.map_or_else(|ended| ended, goes)
            }
            PermissionRequest::Send(to) => {
                self.before_socket(Capability::Udp, to).await.map_or_else(|ended| ended, goes)
            }
        }
    }

    /// Asks about a request that no rule allows. The error ends the call.
    async fn before_request(&mut self, ask: &HttpAsk) -> Result<(), PermissionReply> {
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
    async fn before_socket(&mut self, capability: Capability, to: SocketAddr) -> Result<SocketAddr, PermissionReply> {
        let net = self.asked.net;
        let grants = self.asked.capabilities.grants();
        let target = {
            let known = net.resolved();
            let placeheld = known.placeheld(to.ip()).cloned();
            let named = known.names_of(to.ip()).next().and_then(|name| Host::parse(name).ok());
            let is_placeheld = placeheld.is_some();
            let host = placeheld.or(named).unwrap_or(Host::Addr(to.ip()));
            NamedTarget { host, port: to.port(), placeheld: is_placeheld }
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

    /// Asks a person, once per request in a call. True if it is allowed; then the call's network
    /// has a rule for it.
    async fn ask_person(&mut self, offer: &Askable) -> Result<bool, PermissionReply> {
        let LookupParts { capabilities, net, .. } = self.asked;
        if net.was_refused(offer) {
            return Ok(false);
        }
        let consent = if self.caller.has_consent(offer) {
            ConsentAnswer::Given
        } else if self.budget.charge_own() {
            self.waits.iter().for_each(|waits| waits.notify_one());
            let began = Instant::now();
            let answer = tokio::time::timeout(self.budget.wait_left(), self.caller.consent(offer)).await;
            self.budget.waited(began.elapsed());
            answer.unwrap_or(ConsentAnswer::Refused)
        } else {
            ConsentAnswer::Refused
        };
        match consent {
            ConsentAnswer::Given => {
                net.allow(capabilities.grants(), offer);
                Ok(true)
            }
            ConsentAnswer::Refused => {
                net.refuse(offer);
                Ok(false)
            }
            ConsentAnswer::Ended(refused) => Err(PermissionReply::Ended(refused)),
        }
    }
}
