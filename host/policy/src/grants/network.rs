//! The network grants, and the decisions.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Subject;
use super::denial::{Capability, Denial, Reason};
use super::host::{Host, HostPattern};
use super::http::{AskError, HttpAsk, HttpPermit, HttpRule};
use super::private::{self, PrivateRule};
use super::proxy::ProxyUrl;
use super::rule::RuleRef;
use super::sockets::{LookupPermit, Resolved, SocketRule};
use crate::diagnostic::Span;
use crate::settings::accessors;

accessors! {
    /// The network grants of a component or a tool.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Network {
        pub(crate) subject: Arc<Subject>,
        pub(crate) http: Vec<HttpRule>,
        pub(crate) tcp: Vec<SocketRule>,
        pub(crate) udp: Vec<SocketRule>,
        /// Addresses that are not public and that a rule may still lead to.
        pub(crate) private: Arc<[PrivateRule]> => &[PrivateRule],
        /// The table in which an entry of `private` belongs: the tool's table, if that has its own
        /// list.
        pub(crate) private_section: Arc<str>,
        /// Files of certificates that TLS trusts besides the platform's.
        pub(crate) ca: Vec<CaFile> => &[CaFile],
        /// The proxy of HTTP requests.
        pub(crate) proxy: Option<ProxyUrl> => Option<&ProxyUrl>,
        /// The component's network, if this is narrowed for a tool.
        pub(crate) wider: Option<Arc<Network>>,
    }
}

accessors! {
    /// A file of certificates that TLS trusts as well.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CaFile {
        /// The file, relative to the manifest, as it was written.
        pub(crate) path: String => &str,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
    }
}

accessors! {
    /// The permit to connect to one address and port: every connection needs one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AddressPermit {
        /// The address and the port.
        address: SocketAddr => SocketAddr,
        /// The rule that allows it.
        rule: RuleRef => &RuleRef,
    }
}

impl AddressPermit {
    pub(crate) const fn new(address: SocketAddr, rule: RuleRef) -> Self {
        Self { address, rule }
    }
}

impl Network {
    /// No network.
    #[must_use]
    pub(crate) fn sealed(subject: Arc<Subject>) -> Self {
        let private_section = Arc::from(subject.section("network"));
        Self {
            subject,
            http: Vec::new(),
            tcp: Vec::new(),
            udp: Vec::new(),
            private: Arc::from([]),
            private_section,
            ca: Vec::new(),
            proxy: None,
            wider: None,
        }
    }

    /// A copy for another subject.
    pub(crate) fn of(&self, subject: &Arc<Subject>) -> Self {
        Self { subject: Arc::clone(subject), ..self.clone() }
    }

    /// True if nothing can be reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.tcp.is_empty() && self.udp.is_empty()
    }

    /// The rules of HTTP requests, in the order of the manifest.
    #[must_use]
    pub fn http_rules(&self) -> &[HttpRule] {
        &self.http
    }

    /// The rules of TCP connections.
    #[must_use]
    pub fn tcp_rules(&self) -> &[SocketRule] {
        &self.tcp
    }

    /// The rules of UDP packets.
    #[must_use]
    pub fn udp_rules(&self) -> &[SocketRule] {
        &self.udp
    }

    /// The rules of [`Capability::Tcp`] or of [`Capability::Udp`].
    pub(crate) fn sockets(&self, capability: Capability) -> &[SocketRule] {
        if capability == Capability::Udp { &self.udp } else { &self.tcp }
    }

    /// True if some rule may lead to an address of an entry of `private`.
    pub(crate) fn leads_to(&self, entry: &PrivateRule) -> bool {
        let http = self.http.iter().any(|rule| {
            let host = match rule.host() {
                HostPattern::Exact(Host::Addr(address)) => entry.net().contains(address),
                pattern => pattern.has_names(),
            };
            host && entry.ports().contains(rule.port())
        });
        http || self.tcp.iter().chain(&self.udp).any(|rule| rule.meets(entry))
    }

    /// True if one rule allows every request that this one allows.
    #[must_use]
    pub fn allows_all_of(&self, rule: &HttpRule) -> bool {
        self.http.iter().any(|wider| rule.lies_within(wider))
    }

    /// Decides on sending a request.
    ///
    /// # Errors
    /// [`Denial`] where no rule matches it.
    pub fn http(&self, ask: &HttpAsk) -> Result<HttpPermit, Denial> {
        match self.http.iter().find(|rule| rule.matches(ask)) {
            Some(rule) => Ok(HttpPermit::new(ask, rule, self)),
            None => {
                let denial = ask.denied(&self.http, &self.subject, &self.sections(|wider| wider.http(ask).is_ok()));
                Err(if denial.allow().is_none() { denial } else { self.and_private(denial, ask.host(), ask.port()) })
            }
        }
    }

    /// [`HttpAsk::new`] and [`Network::http`] in one.
    ///
    /// # Errors
    /// [`Denial`] where the request is not well formed or no rule matches it.
    pub fn http_request(
        &self,
        method: &str,
        scheme: &str,
        authority: &str,
        target: &str,
    ) -> Result<HttpPermit, Denial> {
        match HttpAsk::new(method, scheme, authority, target) {
            Ok(ask) => self.http(&ask),
            Err(error) => {
                let path = target.split(['?', '#']).next().unwrap_or_default();
                // The text before an @ may be a password.
                let host = authority.rsplit('@').next().unwrap_or_default();
                Err(self.malformed_http(&format!("{method} {scheme}://{host}{path}"), error))
            }
        }
    }

    /// The denial of a request that is not well formed; `asked` must not hold its query.
    #[must_use]
    pub fn malformed_http(&self, asked: &str, error: AskError) -> Denial {
        Denial::new(Capability::Http, asked.to_owned(), Reason::Malformed(error), &self.subject)
    }

    /// Decides on looking up a name: a rule of `tcp` or `udp` has to name it. An address stands for
    /// itself.
    ///
    /// # Errors
    /// [`Denial`] if no rule does, or the text is not a host.
    pub fn lookup(&self, name: &str) -> Result<LookupPermit, Denial> {
        let denied = |reason| Denial::new(Capability::Lookup, format!("lookup {name}"), reason, &self.subject);
        // An IPv6 address has no brackets here, unlike in a URL.
        let bare = name.parse().map(Host::Addr);
        let host = match bare.or_else(|_| Host::parse(name)) {
            Ok(host) => host,
            Err(error) => return Err(denied(Reason::Malformed(AskError::Host(error)))),
        };
        match self.tcp.iter().chain(&self.udp).find(|rule| rule.matches_name(&host)) {
            Some(rule) => Ok(LookupPermit::new(host, rule, self)),
            None => {
                let line = format!("tcp = [\"{host}:PORT\"]");
                Err(self.and_line(denied(Reason::NoRule), &line, |wider| wider.lookup(name).is_ok()))
            }
        }
    }

    /// Decides on a TCP connection to an address.
    ///
    /// # Errors
    /// [`Denial`] where no rule names the address, nor a name that led to it in this call, and
    /// where the address is not public and `private` does not name it.
    pub fn tcp(&self, address: SocketAddr, resolved: &Resolved) -> Result<AddressPermit, Denial> {
        self.connect(Capability::Tcp, address, resolved)
    }

    /// Decides on sending UDP packets to an address and receiving them from there.
    ///
    /// # Errors
    /// As [`Network::tcp`].
    pub fn udp(&self, address: SocketAddr, resolved: &Resolved) -> Result<AddressPermit, Denial> {
        self.connect(Capability::Udp, address, resolved)
    }

    /// The denial of binding to a chosen address, or of listening: `what` is `bind` or `listen`.
    #[must_use]
    pub fn never_listens(&self, capability: Capability, what: &str, address: SocketAddr) -> Denial {
        let asked = format!("{} {what} {address}", capability.name());
        Denial::new(capability, asked, Reason::NeverListens, &self.subject)
    }

    /// The rule that names a host and a port, whose addresses are checked when they are known.
    ///
    /// # Errors
    /// [`Denial`] where none does.
    pub fn socket_of_name(&self, capability: Capability, host: &Host, port: u16) -> Result<RuleRef, Denial> {
        let named = |rule: &&SocketRule| rule.ports().contains(port) && rule.matches_name(host);
        match self.sockets(capability).iter().find(named) {
            Some(rule) => Ok(rule.rule().clone()),
            None => {
                let granted = |wider: &Network| wider.socket_of_name(capability, host, port).is_ok();
                let line = format!("{} = [\"{host}:{port}\"]", capability.name());
                let denial = self.and_line(self.unresolved(capability, host, port), &line, granted);
                Err(self.and_private(denial, host, port))
            }
        }
    }

    fn connect(
        &self,
        capability: Capability,
        address: SocketAddr,
        resolved: &Resolved,
    ) -> Result<AddressPermit, Denial> {
        if let Some(host) = resolved.placeheld(address.ip()) {
            let named = self.socket_of_name(capability, host, address.port());
            return Err(named.err().unwrap_or_else(|| self.unresolved(capability, host, address.port())));
        }
        let denied =
            |reason| Denial::new(capability, format!("{} {address}", capability.name()), reason, &self.subject);
        let Some(rule) = self.sockets(capability).iter().find(|rule| rule.matches(address, resolved)) else {
            // Prefer the name, as a person would write it: a guest may have chosen the address
            // itself.
            let name = resolved.names_of(address.ip()).next();
            let target = match name {
                Some(name) => format!("{name}:{}", address.port()),
                None => address.to_string(),
            };
            let line = format!("{} = [\"{target}\"]", capability.name());
            let granted = |wider: &Network| wider.connect(capability, address, resolved).is_ok();
            let denial = self.and_line(denied(Reason::NoRule), &line, granted);
            return Err(self.and_private(denial, &Host::Addr(address.ip()), address.port()));
        };
        match private::check(address.ip(), address.port(), &self.private) {
            Ok(()) => Ok(AddressPermit::new(address, rule.rule().clone())),
            Err(class) => Err(denied(Reason::NotPublic(class))
                .allowed_by(&self.private_section, format!("private = [\"{address}\"]"))),
        }
    }

    /// The denial of a connection to a name that no rule names, or that was never looked up.
    fn unresolved(&self, capability: Capability, host: &Host, port: u16) -> Denial {
        Denial::new(capability, format!("{} {host}:{port}", capability.name()), Reason::NoRule, &self.subject)
    }

    /// The denial, with the tables in which a line would allow the request.
    fn and_line(&self, denial: Denial, line: &str, granted: impl Fn(&Network) -> bool) -> Denial {
        self.sections(granted).iter().fold(denial, |denial, section| denial.allowed_by(section, line.to_owned()))
    }

    /// The denial, with the entries of `private` that the request needs as well.
    fn and_private(&self, denial: Denial, host: &Host, port: u16) -> Denial {
        denial.allowed_by_private(&self.private_section, &private::missing(host, port, &self.private))
    }

    /// The tables that need a line: only the tool's if its component grants the request, otherwise
    /// both.
    fn sections(&self, granted: impl Fn(&Network) -> bool) -> Vec<String> {
        match &self.wider {
            None => vec![self.subject.section("network")],
            Some(wider) if granted(wider) => vec![self.subject.narrowed_section("network")],
            Some(_) => vec![self.subject.section("network"), self.subject.narrowed_section("network")],
        }
    }
}
