//! The proxy of a component's HTTP requests.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::address::AddressClass;
use super::host::Host;
use super::http::split_port;
use super::network::AddressPermit;
use super::ports::port;
use super::rule::{RuleError, RuleRef};
use crate::diagnostic::Span;
use crate::settings::accessors;
use crate::words::{Word as _, words};

words! {
    /// The protocol to a proxy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ProxyScheme {
        /// `http://`
        Http "http",
        /// `https://`
        Https "https",
    }
}

accessors! {
    /// A proxy: `http://proxy.example:3128`. The manifest names it, not a guest, so its address may
    /// be of any class.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ProxyUrl {
        /// The protocol to it.
        scheme: ProxyScheme => ProxyScheme,
        /// Its host.
        host: Host => &Host,
        /// Its port.
        port: u16 => u16,
        /// As it was written, and where.
        rule: RuleRef => &RuleRef,
    }
}

impl ProxyUrl {
    /// Reads `scheme://host:port`.
    ///
    /// # Errors
    /// [`RuleError`] where the text has another form.
    pub(crate) fn parse(text: &str, span: Span) -> Result<Self, RuleError> {
        let (scheme, rest) = text.split_once("://").ok_or(RuleError::NoScheme)?;
        let scheme = ProxyScheme::of(scheme).ok_or_else(|| RuleError::Scheme(scheme.to_owned()))?;
        if rest.contains('@') {
            return Err(RuleError::User);
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(RuleError::Path);
        }
        let (host, written) = split_port(rest);
        let written = written.ok_or(RuleError::NoPort)?;
        let port = port(written).ok_or_else(|| RuleError::Port(written.to_owned()))?;
        Ok(Self { scheme, host: Host::parse(host)?, port, rule: RuleRef::new(text, span) })
    }

    /// The permit to connect to one of its addresses, unless the address does not belong to a
    /// single host.
    #[must_use]
    pub fn check_address(&self, address: IpAddr) -> Option<AddressPermit> {
        let of_one_host = !matches!(
            AddressClass::of(address),
            Some(AddressClass::Unspecified | AddressClass::Multicast | AddressClass::Broadcast)
        );
        let named = self.host.addr().is_none_or(|named| named == address);
        (of_one_host && named).then(|| AddressPermit::new(SocketAddr::new(address, self.port), self.rule.clone()))
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}:{}", self.scheme.name(), self.host, self.port)
    }
}
