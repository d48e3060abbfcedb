//! `wasi:sockets/ip-name-lookup`: the names that the rules name, looked up by the host's resolver.
//! An answer is checked before the guest is told, and remembered: only these addresses can be
//! connected to by their name.
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use toolcell_policy::{Capability, Denial, Host as Named, LookupPermit};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress};
use wasmtime_wasi::p2::{DynPollable, Network, Pollable, SocketResult, subscribe};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};

use super::bindings::wasi::sockets::ip_name_lookup::{Host, HostResolveAddressStream};
use super::message::{Addresses, Code};
use crate::wasi::capabilities::Capabilities;
use crate::wasi::doors::bounded::List;
use crate::wasi::doors::frame::HOST_BYTES_MAX;
use crate::wasi::doors::{Door, Opening};
use crate::wasi::net::{CallNet, LookupError, Resolver};
use crate::wasi::state::CallState;
use toolcell_wall::caller::Outside;
use toolcell_wall::denials::Denials;

/// Bytes of a name that the host is asked for: more than any name has.
const NAME_BYTES_MAX: usize = 1 << 10;

type Found = Result<std::vec::IntoIter<IpAddr>, ErrorCode>;

/// A look-up under way, or its result. Dropping it gives the look-up up.
pub enum Answers {
    /// Nothing yet.
    Waiting(AbortOnDropJoinHandle<Found>),
    /// The addresses that it found.
    Ready(Found),
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

/// The parts of one look-up, which runs anywhere.
struct Lookup {
    permit: LookupPermit,
    resolver: Arc<Resolver>,
    net: Arc<CallNet>,
    denials: Denials,
}

impl Lookup {
    async fn run(self) -> Found {
        let addresses = match self.permit.host() {
            Named::Addr(address) => vec![*address],
            Named::Name(name) => {
                let found = self.resolver.addresses(name.as_str(), self.net.limits().connect).await;
                found.map_err(|error| code(&error))?
            }
        };
        let (told, refused) = sorted(&self.permit, addresses);
        if let (true, Some(denial)) = (told.is_empty(), refused) {
            self.denials.add(denial);
            return Err(ErrorCode::AccessDenied);
        }
        self.net.resolved().note(&self.permit, &told);
        Ok(told.into_iter())
    }
}

/// The addresses that the guest is told, and the denial of the first of the others.
fn sorted(permit: &LookupPermit, addresses: Vec<IpAddr>) -> (Vec<IpAddr>, Option<Denial>) {
    let mut refused = None;
    let told = addresses.into_iter().filter(|address| match permit.check_address(*address) {
        Ok(()) => true,
        Err(denial) => {
            refused.get_or_insert(denial);
            false
        }
    });
    let told = told.collect();
    (told, refused)
}

/// The parts of a call that decide on its look-ups.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) net: &'a Arc<CallNet>,
    pub(crate) denials: &'a Denials,
}

/// A look-up that may be made, or the address in the name's place.
enum Begun {
    Looks(Lookup),
    Placeheld(IpAddr),
}

impl Asked<'_> {
    /// Decides on a look-up, and counts it.
    fn begin(self, name: &str) -> Result<Begun, ErrorCode> {
        let Asked { capabilities, net, denials } = self;
        match net.decide(capabilities.grants(), |network| network.lookup(name)) {
            Ok(permit) if net.lookup() => {
                let resolver = Arc::clone(capabilities.http().resolver());
                Ok(Begun::Looks(Lookup { permit, resolver, net: Arc::clone(net), denials: denials.clone() }))
            }
            Ok(_) => Err(ErrorCode::PermanentResolverFailure),
            Err(denial) => {
                let address = self.placeheld(name);
                if capabilities.observing() || address.is_none() {
                    denials.add(denial);
                }
                address.map(Begun::Placeheld).ok_or(ErrorCode::AccessDenied)
            }
        }
    }

    /// An address in the place of a name that nothing allows to look up, to see which port it is
    /// connected to. None where nobody wants to know.
    fn placeheld(self, name: &str) -> Option<IpAddr> {
        let wanted = self.capabilities.observing() || self.capabilities.may_ask();
        wanted.then(|| self.net.resolved().placehold(name)).flatten()
    }
}

/// The host's side of a look-up.
pub(crate) async fn look_up(asked: Asked<'_>, name: &str) -> Addresses {
    let found = match asked.begin(name) {
        Ok(Begun::Looks(lookup)) => lookup.run().await,
        Ok(Begun::Placeheld(address)) => Ok(vec![address].into_iter()),
        Err(code) => Err(code),
    };
    found.map(|addresses| List(addresses.collect())).map_err(Code::from)
}

/// Has the host look a name up.
async fn look_up_outside(outside: Arc<dyn Outside>, net: Arc<CallNet>, name: String) -> Found {
    let _turn = net.lookup_turn().await.ok_or(ErrorCode::TemporaryResolverFailure)?;
    let door = Door::open(&*outside).await.map_err(|_| ErrorCode::TemporaryResolverFailure)?;
    let (mut reader, mut writer) = door.split();
    let said = match writer.message(&Opening::Lookup(name)).await {
        Ok(()) => reader.message::<Addresses>(HOST_BYTES_MAX).await,
        Err(error) => Err(error),
    };
    let found = said.map_err(|_| ErrorCode::TemporaryResolverFailure)?;
    found.map(|addresses| addresses.0.into_iter()).map_err(ErrorCode::from)
}

impl Host for CallState {
    fn resolve_addresses(&mut self, network: Resource<Network>, name: String) -> SocketResult<Resource<Answers>> {
        self.table().get(&network)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidArgument.into());
        }
        let outside = self.caller.outside().ok_or_else(super::denied)?;
        let net = Arc::clone(self.net());
        if !net.lookup() {
            return Err(ErrorCode::PermanentResolverFailure.into());
        }
        let answers = Answers::Waiting(spawn(look_up_outside(outside, net, name)));
        Ok(self.table().push(answers)?)
    }
}

/// Looks up a name that a person allowed to connect to; its first address that may be connected to.
pub(crate) async fn resolved(asked: Asked<'_>, capability: Capability, name: &str, port: u16) -> Option<SocketAddr> {
    let Asked { capabilities, net, denials } = asked;
    let permit = net.decide(capabilities.grants(), |network| network.lookup(name)).ok().filter(|_| net.lookup())?;
    let resolver = Arc::clone(capabilities.http().resolver());
    let lookup = Lookup { permit, resolver, net: Arc::clone(net), denials: denials.clone() };
    let addresses = lookup.run().await.ok()?;
    net.decide(capabilities.grants(), |network| {
        let mut targets = addresses.map(|address| SocketAddr::new(address, port));
        targets.find(|to| {
            // The guest made its socket for the address in the name's place.
            to.is_ipv4()
                && match capability {
                    Capability::Udp => network.udp(*to, &net.resolved()).is_ok(),
                    _ => network.tcp(*to, &net.resolved()).is_ok(),
                }
        })
    })
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

fn code(error: &LookupError) -> ErrorCode {
    match error {
        LookupError::NoName | LookupError::NoAddress => ErrorCode::NameUnresolvable,
        LookupError::Timeout => ErrorCode::TemporaryResolverFailure,
        LookupError::Failed(_) => ErrorCode::PermanentResolverFailure,
    }
}
