//! The entries of `private`: the only way to addresses that are not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::address::{self, AddressClass};
use super::host::Host;
use super::ports::{PortRange, port};
use super::rule::{RuleError, RuleRef};
use super::sockets::show_net;
use crate::diagnostic::Span;
use crate::settings::accessors;

accessors! {
    /// An address or a range of them, on one port, several or all.
    ///
    /// | form | names |
    /// |---|---|
    /// | `127.0.0.1:8080` | one address, one port |
    /// | `10.0.0.0/8` | a range, all ports |
    /// | `10.1.0.0/16:443`, `10.1.0.0/16:8000-8010` | a range, one port or several |
    /// | `[::1]:80`, `::1`, `[fd00::/8]:443`, `fd00::/8` | the same of IPv6; with a port in brackets |
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PrivateRule {
        /// The addresses.
        net: IpNet => IpNet,
        /// The ports; all where the entry names none.
        ports: PortRange => PortRange,
        /// The entry as it was written, and where.
        rule: RuleRef => &RuleRef,
    }
}

impl PrivateRule {
    pub(crate) fn parse(text: &str, span: Span) -> Result<Self, RuleError> {
        let (net, ports) = parse_net(text)?;
        let ports = ports.map_or(Ok(PortRange::ALL), PortRange::parse)?;
        let net = net.ok_or(RuleError::NotAnAddress)?;
        Ok(Self { net, ports, rule: RuleRef::new(text, span) })
    }

    /// True if it allows an address of a class. Metadata services must be named alone, this host by
    /// its loopback addresses.
    fn names(&self, address: IpAddr, port: u16, class: AddressClass) -> bool {
        let enough = match class {
            AddressClass::Unspecified => false,
            AddressClass::Metadata => self.is_exact(),
            _ => true,
        };
        enough && self.ports.contains(port) && self.net.contains(&address)
    }

    pub(crate) fn lies_within(&self, wider: &Self) -> bool {
        // A range does not include the metadata services in it.
        let named =
            AddressClass::of(self.net.addr()) != Some(AddressClass::Metadata) || !self.is_exact() || wider.is_exact();
        named && wider.net.contains(&self.net) && self.ports.lies_within(wider.ports)
    }

    fn is_exact(&self) -> bool {
        self.net.prefix_len() == self.net.max_prefix_len()
    }

    /// True if all its addresses are public anyway.
    pub(crate) fn is_public(&self) -> bool {
        // Classes are ranges: a range with public ends that contains no start of a class is public.
        AddressClass::of(self.net.network()).is_none()
            && AddressClass::of(self.net.broadcast()).is_none()
            && !address::starts().any(|start| self.net.contains(&start))
    }
}

/// Decides on connecting to an address and a port: it is public, or an entry of `private` names it.
/// The same holds for an IPv4 address within an IPv6 one.
pub(crate) fn check(address: IpAddr, port: u16, private: &[PrivateRule]) -> Result<(), AddressClass> {
    let Some(class) = AddressClass::of(address) else { return Ok(()) };
    if !private.iter().any(|rule| rule.names(address, port, class)) {
        return Err(class);
    }
    match address::carried(address) {
        Some(carried) => check(carried, port, private),
        None => Ok(()),
    }
}

/// The missing entries of `private` for connecting to a host, as far as its name tells: an address
/// that is not public, or a name of this machine (RFC 6761). `None` if no entry could allow it.
pub(crate) fn missing(host: &Host, port: u16, private: &[PrivateRule]) -> Vec<String> {
    let addresses = match host {
        Host::Addr(address) => vec![*address],
        Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
        }
        Host::Name(_) => Vec::new(),
    };
    let lacks =
        |address: &IpAddr| check(*address, port, private).is_err_and(|class| class != AddressClass::Unspecified);
    addresses.into_iter().filter(lacks).map(|address| std::net::SocketAddr::new(address, port).to_string()).collect()
}

/// Splits `ADDRESS[/BITS][:PORTS]`; `None` if the text names a host.
pub(crate) fn parse_net(text: &str) -> Result<(Option<IpNet>, Option<&str>), RuleError> {
    if text.is_empty() {
        return Err(RuleError::Empty);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or_else(|| RuleError::Range(text.to_owned()))?;
        let (bits, ports) = match after.strip_prefix('/') {
            // `[fd00::]/8:443`
            Some(after) => {
                let (bits, ports) = after.split_once(':').map_or((after, None), |(bits, ports)| (bits, Some(ports)));
                (Some(bits), ports)
            }
            None if after.is_empty() => (None, None),
            None => (None, Some(after.strip_prefix(':').ok_or_else(|| RuleError::Range(text.to_owned()))?)),
        };
        let (address, bits) = match bits {
            Some(bits) => (inside, Some(bits)),
            None => inside.split_once('/').map_or((inside, None), |(address, bits)| (address, Some(bits))),
        };
        let address: Ipv6Addr = address.parse().map_err(|_| RuleError::Range(text.to_owned()))?;
        return Ok((Some(net(IpAddr::V6(address), bits, text)?), ports));
    }
    if text.matches(':').count() > 1 {
        // IPv6 without brackets has no port.
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: Ipv6Addr = address.parse().map_err(|_| RuleError::Range(text.to_owned()))?;
        return Ok((Some(net(IpAddr::V6(address), bits, text)?), None));
    }
    let (host, ports) = text.split_once(':').map_or((text, None), |(host, ports)| (host, Some(ports)));
    if let Some((address, bits)) = host.split_once('/') {
        let address: Ipv4Addr = address.parse().map_err(|_| RuleError::Range(text.to_owned()))?;
        return Ok((Some(net(IpAddr::V4(address), Some(bits), text)?), ports));
    }
    let address = Host::parse(host).ok().and_then(|host| host.addr());
    Ok((address.map(IpNet::from), ports))
}

fn net(address: IpAddr, bits: Option<&str>, text: &str) -> Result<IpNet, RuleError> {
    let Some(bits) = bits else { return Ok(IpNet::from(address)) };
    let wrong = || RuleError::Range(text.to_owned());
    // `/0` is valid, but `port` refuses 0.
    let bits = if bits == "0" { 0 } else { port(bits).and_then(|bits| u8::try_from(bits).ok()).ok_or_else(wrong)? };
    let net = IpNet::new(address, bits).map_err(|_| wrong())?;
    if net.addr() != net.network() {
        return Err(RuleError::HostBits(net.trunc().to_string()));
    }
    Ok(net)
}

impl std::fmt::Display for PrivateRule {
    /// In its normal form: equal entries give equal texts.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&show_net(&self.net))?;
        if self.ports == PortRange::ALL { Ok(()) } else { write!(formatter, ":{}", self.ports) }
    }
}
