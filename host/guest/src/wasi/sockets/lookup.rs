//! `wasi:sockets/ip-name-lookup` of a guest. The host looks the names up.
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use toolcell_wall::doors::Opening;
use toolcell_wall::doors::sockets::NameAddresses;
use toolcell_walls::door::{self, HOST_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress};
use wasmtime_wasi::p2::{DynPollable, Network, Pollable, SocketResult, subscribe};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};

use super::bindings::wasi::sockets::ip_name_lookup::{Host, HostResolveAddressStream};
use super::{denied, error_code};
use crate::wasi::net::OutsideNet;
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;

/// Bytes of a name that is passed to the host: longer than any name.
const NAME_BYTES_MAX: usize = 1 << 10;

pub(super) type FoundAddresses = Result<std::vec::IntoIter<IpAddr>, ErrorCode>;

/// A lookup in progress, or its result. Dropping it abandons the lookup.
pub enum Answers {
    /// Nothing yet.
    Waiting(AbortOnDropJoinHandle<FoundAddresses>),
    /// The addresses that it found.
    Ready(FoundAddresses),
}

impl Answers {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Self::Waiting(task) = self {
            match Pin::new(task).poll(context) {
                Poll::Ready(found) => *self = Self::Ready(found),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    fn next(&mut self) -> Result<Option<IpAddr>, ErrorCode> {
        let _ = self.poll(&mut Context::from_waker(Waker::noop()));
        match self {
            Self::Waiting(_) => Err(ErrorCode::WouldBlock),
            Self::Ready(Ok(addresses)) => Ok(addresses.next()),
            Self::Ready(Err(code)) => Err(*code),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Answers {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }
}

/// A lookup that may begin.
pub(super) struct Lookup {
    pub(super) outside: Arc<dyn Outside>,
    pub(super) net: Arc<OutsideNet>,
    pub(super) name: String,
}

impl CallState {
    /// Counts a lookup.
    pub(super) fn lookup(&mut self, name: String) -> SocketResult<Lookup> {
        if name.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidArgument.into());
        }
        let outside = self.caller.outside().ok_or_else(denied)?;
        let net = Arc::clone(self.net());
        if net.lookup() { Ok(Lookup { outside, net, name }) } else { Err(ErrorCode::PermanentResolverFailure.into()) }
    }
}

/// Asks the host to look a name up.
pub(super) async fn look_up_outside(outside: Arc<dyn Outside>, net: Arc<OutsideNet>, name: String) -> FoundAddresses {
    let _turn = net.lookup_turn().await.ok_or(ErrorCode::TemporaryResolverFailure)?;
    let said = async {
        let (mut reader, _writer) = door::open(&*outside, &Opening::Lookup(name)).await?;
        reader.message::<NameAddresses>(HOST_BYTES_MAX).await
    };
    let found = said.await.map_err(|_| ErrorCode::TemporaryResolverFailure)?;
    found.map(Vec::into_iter).map_err(error_code)
}

impl Host for CallState {
    fn resolve_addresses(&mut self, network: Resource<Network>, name: String) -> SocketResult<Resource<Answers>> {
        self.table().get(&network)?;
        let Lookup { outside, net, name } = self.lookup(name)?;
        let answers = Answers::Waiting(spawn(look_up_outside(outside, net, name)));
        Ok(self.table().push(answers)?)
    }
}

impl HostResolveAddressStream for CallState {
    fn resolve_next_address(&mut self, answers: Resource<Answers>) -> SocketResult<Option<IpAddress>> {
        let next = self.table().get_mut(&answers)?.next();
        Ok(next?.map(IpAddress::from))
    }

    fn subscribe(&mut self, answers: Resource<Answers>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table(), answers)
    }

    fn drop(&mut self, answers: Resource<Answers>) -> wasmtime::Result<()> {
        self.table().delete(answers)?;
        Ok(())
    }
}
