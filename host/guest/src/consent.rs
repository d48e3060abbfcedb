//! A guest's way to ask for what no rule allows, before it begins.
use std::net::SocketAddr;

use toolcell_policy::Capability;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::consent::{HttpWanted, PermissionReply, PermissionRequest};
use toolcell_walls::door::{self, DoorError, HOST_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::wasi::state::CallState;
use toolcell_wall::asking::EndedByAsking;
use toolcell_wall::caller::Outside;

impl CallState {
    /// Asks the person behind the caller about a request that no rule allows. If they refuse, the
    /// usual decision denies it.
    ///
    /// # Errors
    /// The call ends while it asks.
    pub(crate) async fn ask_before_request(&mut self, request: &Resource<HostOutgoingRequest>) -> wasmtime::Result<()> {
        if !self.capabilities().may_ask() {
            return Ok(());
        }
        let Some(wanted) = self.table().get(request).ok().map(wanted) else { return Ok(()) };
        let Some(outside) = self.caller.outside() else { return Ok(()) };
        self.ask_outside(&*outside, PermissionRequest::Request(wanted)).await.map(drop)
    }

    /// Asks about a target that no rule allows. Returns the address to connect to: as the guest
    /// named it, or one of the name that its address stands in for. If the person refuses, the
    /// usual decision denies it.
    ///
    /// # Errors
    /// The call ends while it asks.
    pub(crate) async fn ask_before_socket(
        &mut self,
        capability: Capability,
        to: SocketAddr,
    ) -> wasmtime::Result<SocketAddr> {
        if !self.capabilities().may_ask() {
            return Ok(to);
        }
        let Some(outside) = self.caller.outside() else { return Ok(to) };
        let request =
            if capability == Capability::Udp { PermissionRequest::Send(to) } else { PermissionRequest::Connect(to) };
        Ok(self.ask_outside(&*outside, request).await?.unwrap_or(to))
    }

    /// Lets the host ask if it must. The call's deadline stands still meanwhile.
    async fn ask_outside(
        &mut self,
        outside: &dyn Outside,
        request: PermissionRequest,
    ) -> wasmtime::Result<Option<SocketAddr>> {
        if !self.net().ask() {
            return Ok(None);
        }
        let Ok(said) = self.ask(outside, request).await else { return Ok(None) };
        match said {
            PermissionReply::Ended(refused) => Err(EndedByAsking { refused }.into()),
            PermissionReply::Goes(to) => Ok(to),
            PermissionReply::Waits => Ok(None),
        }
    }

    async fn ask(&mut self, outside: &dyn Outside, request: PermissionRequest) -> Result<PermissionReply, DoorError> {
        let (mut reader, _writer) = door::open(outside, &Opening::Consent(request)).await?;
        match reader.message(HOST_BYTES_MAX).await? {
            PermissionReply::Waits => {
                self.asking.charge_own();
                let said = self.asking.wait_for(reader.message(HOST_BYTES_MAX)).await;
                said.unwrap_or(Err(DoorError::Closed))
            }
            said => Ok(said),
        }
    }
}

fn wanted(request: &HostOutgoingRequest) -> HttpWanted {
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
    HttpWanted {
        method: method.to_owned(),
        scheme: scheme.to_owned(),
        authority: request.authority.clone().unwrap_or_default(),
        target: request.path_with_query.clone().unwrap_or_else(|| "/".to_owned()),
    }
}
