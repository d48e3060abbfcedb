//! TCP and UDP: the rules, name look-ups and what they led to.
//!
//! A rule of `tcp` or `udp` is `target:ports`.
//!
//! | form | allows |
//! |---|---|
//! | `db.example.com:5432` | the addresses that this name led to in the call, one port |
//! | `*.example.com:1000-2000` | those of every name below, a range of ports |
//! | `192.0.2.1:53`, `[2001:db8::1]:53` | one address |
//! | `192.0.2.0/24:53`, `[2001:db8::/32]:53` | a range of addresses |
//!
//! Only a name of these rules can be looked up. Addresses that are not public need an entry of
//! `private` as well.
//!
//! ```
//! use toolcell_policy::SocketRule;
//! let is_rule = |text: &str| SocketRule::parse(text, 0..0).is_ok();
//! for text in ["db.example.com:5432", "*.example.com:1000-2000", "192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.0/24:53",
//!     "[2001:db8::/32]:53"] {
//!     assert!(is_rule(text), "{text}");
//! }
//! for text in ["db.example.com", "db.example.com:0", "192.0.2.1/24:53", "db.example.com:5432/x", "a.*.b:1", ":5432"] {
//!     assert!(!is_rule(text), "{text}");
//! }
//! ```

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use super::Subject;
use super::denial::{Capability, Denial, Reason};
use super::host::{Host, HostPattern};
use super::http::split_port;
use super::network::Network;
use super::ports::PortRange;
use super::private::{self, PrivateRule};
use super::rule::{RuleError, RuleRef};
use crate::diagnostic::Span;
use crate::settings::accessors;

/// The longest rule, in bytes: the longest name and a range of ports.
const RULE_BYTES_MAX: usize = 512;

/// The first byte of placeholder addresses: 240.0.0.0/8 is reserved.
const PLACEHELD: u8 = 240;

/// Resolved addresses that a call remembers: 64 names with 16 addresses each.
const RESOLVED_MAX: usize = 1_024;

accessors! {
    /// One rule of `tcp` or `udp`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SocketRule {
        /// Its target.
        target: SocketTarget => &SocketTarget,
        /// The ports.
        ports: PortRange => PortRange,
        /// The rule as it was written, and where.
        rule: RuleRef => &RuleRef,
    }
}

/// Names of a call that get a placeholder address.
const PLACEHELD_MAX: usize = 64;

/// The target of a rule of `tcp` or `udp`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SocketTarget {
    /// The addresses of names.
    Name(HostPattern),
    /// Addresses.
    Net(IpNet),
}

accessors! {
    /// The permit to look up a name, which is needed to remember its addresses.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LookupPermit {
        /// The host to look up: a name, or an address that stands for itself.
        host: Host => &Host,
        /// The rule that allows it.
        rule: RuleRef => &RuleRef,
        private: Arc<[PrivateRule]>,
        subject: Arc<Subject>,
        section: Arc<str>,
    }
}

/// The names that a call has looked up, by address. Only a [`LookupPermit`] adds to those that can
/// be connected to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    names: HashMap<IpAddr, Vec<Arc<str>>>,
    /// The number of all addresses together.
    count: usize,
    /// Names with a placeholder address instead of a lookup.
    placeheld: Vec<Host>,
}

impl SocketRule {
    /// Reads a rule of the table above; `span` is where the manifest has it.
    ///
    /// # Errors
    /// [`RuleError`] if the text is not a rule.
    pub fn parse(text: &str, span: Span) -> Result<Self, RuleError> {
        if text.len() > RULE_BYTES_MAX {
            return Err(RuleError::TooLong { bytes: text.len(), max: RULE_BYTES_MAX });
        }
        let written = text.trim();
        if written.is_empty() {
            return Err(RuleError::Empty);
        }
        if written.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(RuleError::Character);
        }
        if written.contains("://") {
            return Err(RuleError::Path);
        }
        if written.contains('@') {
            return Err(RuleError::User);
        }
        let rule = RuleRef::new(written, span);
        let is_net = written.starts_with('[') || written.contains('/') || written.matches(':').count() > 1;
        if is_net {
            let (host, _) = split_port(written);
            let range = host
                .split_once('/')
                .is_some_and(|(address, _)| address.starts_with(|c: char| c.is_ascii_digit() || c == '['));
            if written.contains('/') && !range {
                return Err(RuleError::Path);
            }
            let (net, ports) = private::parse_net(written)?;
            let ports = PortRange::parse(ports.ok_or(RuleError::NoPort)?)?;
            let net = net.ok_or_else(|| RuleError::Range(written.to_owned()))?;
            return Ok(Self { target: SocketTarget::Net(net), ports, rule });
        }
        let (host, ports) = split_port(written);
        let ports = PortRange::parse(ports.ok_or(RuleError::NoPort)?)?;
        let target = match HostPattern::parse(host)? {
            HostPattern::Exact(Host::Addr(address)) => SocketTarget::Net(IpNet::from(address)),
            pattern => SocketTarget::Name(pattern),
        };
        Ok(Self { target, ports, rule })
    }

    /// True if this rule allows nothing that the other does not.
    #[must_use]
    pub fn lies_within(&self, wider: &Self) -> bool {
        let target = match (&self.target, &wider.target) {
            (SocketTarget::Name(name), SocketTarget::Name(wider)) => name.lies_within(wider),
            (SocketTarget::Net(net), SocketTarget::Net(wider)) => wider.contains(net),
            (SocketTarget::Name(_), SocketTarget::Net(_)) | (SocketTarget::Net(_), SocketTarget::Name(_)) => false,
        };
        target && self.ports.lies_within(wider.ports)
    }

    /// True if it may lead to an address of an entry of `private`. A name may lead anywhere.
    pub(crate) fn meets(&self, entry: &PrivateRule) -> bool {
        let addresses = match &self.target {
            SocketTarget::Name(_) => true,
            SocketTarget::Net(net) => net.contains(&entry.net()) || entry.net().contains(net),
        };
        addresses && entry.ports().overlaps(self.ports)
    }

    pub(crate) fn matches_name(&self, host: &Host) -> bool {
        match (&self.target, host) {
            (SocketTarget::Name(pattern), Host::Name(_)) => pattern.matches(host),
            (SocketTarget::Net(net), Host::Addr(address)) => net.contains(address),
            (SocketTarget::Name(_), Host::Addr(_)) | (SocketTarget::Net(_), Host::Name(_)) => false,
        }
    }

    pub(crate) fn matches(&self, address: SocketAddr, resolved: &Resolved) -> bool {
        self.ports.contains(address.port())
            && match &self.target {
                SocketTarget::Net(net) => net.contains(&address.ip()),
                SocketTarget::Name(pattern) => resolved.names_of(address.ip()).any(|name| matches_text(pattern, name)),
            }
    }
}

impl fmt::Display for SocketRule {
    /// In its normal form: equal rules give equal texts.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            SocketTarget::Name(name) => write!(formatter, "{name}")?,
            SocketTarget::Net(net) => write!(formatter, "{}", show_net(net))?,
        }
        write!(formatter, ":{}", self.ports)
    }
}

impl LookupPermit {
    pub(crate) fn new(host: Host, rule: &SocketRule, network: &Network) -> Self {
        Self {
            host,
            rule: rule.rule.clone(),
            private: Arc::clone(&network.private),
            subject: Arc::clone(&network.subject),
            section: Arc::clone(&network.private_section),
        }
    }

    /// Checks that the guest may learn an address of the name: a public one, or one that `private`
    /// names for some port. Connecting checks the address again, with its port.
    ///
    /// # Errors
    ///
    /// [`Denial`] of an address that no connection could use.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Denial> {
        let ports =
            self.private.iter().filter(|entry| entry.net().contains(&address)).map(|entry| entry.ports().first());
        let allowed = ports.chain([1]).any(|port| private::check(address, port, &self.private).is_ok());
        if allowed {
            return Ok(());
        }
        let reason = super::AddressClass::of(address).map_or(Reason::NoRule, Reason::NotPublic);
        let denial = Denial::new(Capability::Lookup, format!("lookup {}", self.host), reason, &self.subject);
        Err(denial.allowed_by(&self.section, format!("private = [\"{address}\"]")))
    }
}

impl Resolved {
    /// Remembers the addresses of a permitted lookup. Beyond 1,024 per call they are not
    /// remembered, and connecting to them is denied.
    pub fn note(&mut self, permit: &LookupPermit, addresses: &[IpAddr]) {
        let Host::Name(name) = &permit.host else { return };
        let name: Arc<str> = Arc::from(name.as_str());
        for address in addresses {
            let known = self.names.get(address).is_some_and(|names| names.contains(&name));
            if !known && self.count < RESOLVED_MAX {
                self.names.entry(*address).or_default().push(Arc::clone(&name));
                self.count += 1;
            }
        }
    }

    /// A placeholder address for a name without a rule, so that an observation sees the port that
    /// is connected to. Nothing is looked up, and no connection goes there: the addresses are
    /// reserved (RFC 1112), and connecting to them is denied with the name in the text. `None` past
    /// 64 names of a call, and for a malformed name.
    pub fn placehold(&mut self, name: &str) -> Option<IpAddr> {
        let host = Host::parse(name).ok().filter(|host| host.addr().is_none())?;
        let number = match self.placeheld.iter().position(|known| *known == host) {
            Some(number) => number,
            None if self.placeheld.len() < PLACEHELD_MAX => {
                self.placeheld.push(host);
                self.placeheld.len() - 1
            }
            None => return None,
        };
        Some(IpAddr::from([PLACEHELD, 0, 0, u8::try_from(number).ok()?]))
    }

    /// The name that a placeholder address stands for.
    #[must_use]
    pub fn placeheld(&self, address: IpAddr) -> Option<&Host> {
        let IpAddr::V4(address) = address else { return None };
        let [PLACEHELD, 0, 0, number] = address.octets() else { return None };
        self.placeheld.get(usize::from(number))
    }

    /// The names that resolved to an address.
    pub fn names_of(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        self.names.get(&address).into_iter().flatten().map(|name| &**name)
    }
}

/// A range as in rules: IPv6 in brackets; a single address without its bits.
pub(crate) fn show_net(net: &IpNet) -> String {
    let single = net.prefix_len() == net.max_prefix_len();
    let text = if single { net.addr().to_string() } else { net.to_string() };
    if net.addr().is_ipv6() { format!("[{text}]") } else { text }
}

fn matches_text(pattern: &HostPattern, name: &str) -> bool {
    match pattern {
        HostPattern::Any => true,
        HostPattern::Exact(Host::Name(exact)) => exact == name,
        HostPattern::Exact(Host::Addr(_)) => false,
        HostPattern::Suffix(suffix) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
    }
}
