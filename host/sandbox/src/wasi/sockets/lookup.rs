//! Names of the rules, looked up by the host's resolver for `wasi:sockets/ip-name-lookup`. An
//! answer is checked before the guest gets it, and remembered: only these addresses can be
//! connected to by their name.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use toolcell_policy::{Ask, Capability, Denial, Host, LookupPermit};
use toolcell_wall::doors::sockets::{NameAddresses, SocketCode};

use crate::wasi::capabilities::GrantedCapabilities;
use crate::wasi::net::{CallNet, LookupError};
use toolcell_wall::denials::CallDenials;

/// The addresses that the guest gets, and the denial of the first of the others.
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

/// What a call needs to decide on its lookups.
#[derive(Clone, Copy)]
pub(crate) struct LookupParts<'a> {
    pub(crate) capabilities: &'a GrantedCapabilities,
    pub(crate) net: &'a Arc<CallNet>,
    pub(crate) denials: &'a CallDenials,
}

impl LookupParts<'_> {
    /// Looks up a name that the rules permit.
    async fn run(self, permit: &LookupPermit) -> NameAddresses {
        let addresses = match permit.host() {
            Host::Addr(address) => vec![*address],
            Host::Name(name) => {
                let resolver = self.capabilities.http().resolver();
                let found = resolver.addresses(name.as_str(), self.net.limits().connect).await;
                found.map_err(|error| code(&error))?
            }
        };
        let (told, refused) = sorted(permit, addresses);
        if let (true, Some(denial)) = (told.is_empty(), refused) {
            self.denials.add(denial);
            return Err(SocketCode::AccessDenied);
        }
        self.net.resolved().note(permit, &told);
        Ok(told)
    }

    /// A placeholder address for a name without a rule, to find out which port it is connected to.
    /// `None` if nobody observes or can be asked.
    fn placeheld(self, name: &str) -> Option<IpAddr> {
        let wanted = self.capabilities.observing() || self.capabilities.may_ask();
        wanted.then(|| self.net.resolved().placehold(name)).flatten()
    }
}

/// The host's side of a lookup: decides on it, and counts it.
pub(crate) async fn look_up(asked: LookupParts<'_>, name: &str) -> NameAddresses {
    let LookupParts { capabilities, net, denials } = asked;
    match net.decide(capabilities.grants(), |network| network.lookup(name)) {
        Ok(permit) if net.lookup() => {
            net.used(|| Ask::Named(Capability::Lookup, permit.host().to_string()).to_string());
            asked.run(&permit).await
        }
        Ok(_) => Err(SocketCode::PermanentResolverFailure),
        Err(denial) => {
            let address = asked.placeheld(name);
            if capabilities.observing() || address.is_none() {
                denials.add(denial);
            }
            address.map(|address| vec![address]).ok_or(SocketCode::AccessDenied)
        }
    }
}

/// Looks up a name that a person allowed to connect to. Returns its first address that may be
/// connected to.
pub(crate) async fn resolved(
    asked: LookupParts<'_>,
    capability: Capability,
    name: &str,
    port: u16,
) -> Option<SocketAddr> {
    let LookupParts { capabilities, net, .. } = asked;
    let permit = net.decide(capabilities.grants(), |network| network.lookup(name)).ok().filter(|_| net.lookup())?;
    let addresses = asked.run(&permit).await.ok()?;
    net.decide(capabilities.grants(), |network| {
        let mut targets = addresses.into_iter().map(|address| SocketAddr::new(address, port));
        targets.find(|to| {
            // The guest made its socket for the family of the placeholder address.
            to.is_ipv4()
                && match capability {
                    Capability::Udp => network.udp(*to, &net.resolved()).is_ok(),
                    _ => network.tcp(*to, &net.resolved()).is_ok(),
                }
        })
    })
}

fn code(error: &LookupError) -> SocketCode {
    match error {
        LookupError::NoName | LookupError::NoAddress => SocketCode::NameUnresolvable,
        LookupError::Timeout => SocketCode::TemporaryResolverFailure,
        LookupError::Failed(_) => SocketCode::PermanentResolverFailure,
    }
}
