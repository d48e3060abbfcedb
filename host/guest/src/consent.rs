//! A guest's way to ask for what no rule allows, before it begins.
use std::net::SocketAddr;
use std::sync::Arc;

use toolcell_policy::Capability;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::consent::{HttpWanted, PermissionReply, PermissionRequest};
use toolcell_walls::door::{self, DoorError, HOST_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::run::asking::CallQuestions;
use crate::wasi::state::CallState;
use toolcell_wall::asking::EndedByAsking;
use toolcell_wall::caller::Outside;

/// What a guest wants, and nobody is asked about yet.
pub(crate) struct PermissionQuestion {
    outside: Arc<dyn Outside>,
    questions: CallQuestions,
    request: PermissionRequest,
}

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
        match self.question(PermissionRequest::Request(wanted)) {
            Some(question) => question.ask().await.map(drop),
            None => Ok(()),
        }
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
        match self.question_before_socket(capability, to) {
            Some(question) => Ok(question.ask().await?.unwrap_or(to)),
            None => Ok(to),
        }
    }

    /// The question about a target, for a task that asks without the store; `None` if nobody is to
    /// be asked.
    pub(crate) fn question_before_socket(
        &mut self,
        capability: Capability,
        to: SocketAddr,
    ) -> Option<PermissionQuestion> {
        let request =
            if capability == Capability::Udp { PermissionRequest::Send(to) } else { PermissionRequest::Connect(to) };
        self.question(request)
    }

    /// The question about this request.
    pub(crate) fn question(&mut self, request: PermissionRequest) -> Option<PermissionQuestion> {
        if !self.capabilities().may_ask() {
            return None;
        }
        let outside = self.caller.outside()?;
        let questions = self.asking.clone();
        self.net().ask().then_some(PermissionQuestion { outside, questions, request })
    }
}

impl PermissionQuestion {
    /// Lets the host ask if it must. The call's deadline stands still meanwhile. Returns the
    /// address to use in place of the guest's, if there is one.
    ///
    /// # Errors
    /// The call ends while it asks.
    pub(crate) async fn ask(self) -> wasmtime::Result<Option<SocketAddr>> {
        let Self { outside, questions, request } = self;
        let _turn = questions.turn().await;
        let Ok(said) = said(&*outside, &questions, request).await else { return Ok(None) };
        match said {
            PermissionReply::Ended(refused) => Err(EndedByAsking { refused }.into()),
            PermissionReply::Goes(to) => Ok(to),
            PermissionReply::Waits => Ok(None),
        }
    }
}

async fn said(
    outside: &dyn Outside,
    questions: &CallQuestions,
    request: PermissionRequest,
) -> Result<PermissionReply, DoorError> {
    let (mut reader, _writer) = door::open(outside, &Opening::Consent(request)).await?;
    match reader.message(HOST_BYTES_MAX).await? {
        PermissionReply::Waits => {
            questions.charge_own();
            let said = questions.wait_for(reader.message(HOST_BYTES_MAX)).await;
            said.unwrap_or(Err(DoorError::Closed))
        }
        said => Ok(said),
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
