//! Requests that no rule allows: they are denied, or a person is asked.
//!
//! | request | asked about |
//! |---|---|
//! | HTTP, by a method that rules can name, of one path | the rule for exactly that |
//! | a TCP connection, or UDP packets to one target | the rule for that host and port |
//! | an address that is not public and that the request itself names | the entry of `private` too |
//! | a metadata service, `0.0.0.0`; a name that leads to an address that is not public | never |
//! | a request that would carry a secret | never |
//! | what a tool's own table takes away | never |
//! | files, variables, settings, state, secrets | never |
//!
//! If nobody is asked, operators can still add a rule for these requests with one decision.

use std::fmt::Write as _;
use std::sync::Arc;

use super::address::AddressClass;
use super::denial::Capability;
use super::host::Host;
use super::http::{HttpAsk, HttpRule};
use super::network::Network;
use super::private::{self, PrivateRule};
use super::sockets::SocketRule;
use super::{Delivery, Grants};
use crate::explain::Ask;
use crate::names::toml_string;
use crate::words::words;

words! {
    /// The answer to requests without a rule. `ungranted` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum Ungranted {
        /// The default.
        #[default]
        Deny "deny",
        /// A person is asked, through the client.
        Ask "ask",
    }
}

/// A request that a person may allow, as manifest lines. Only [`Grants`] makes one, and it has no
/// effect before it is [added](Network::with).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Askable {
    capability: Capability,
    asked: String,
    section: String,
    http: Option<HttpRule>,
    socket: Option<SocketRule>,
    private: Vec<PrivateRule>,
}

impl Askable {
    /// The capability that it needs.
    #[must_use]
    pub const fn capability(&self) -> Capability {
        self.capability
    }

    /// The request in full: `GET https://x.example/a` or `tcp db.example.com:5432`. A guest chose
    /// it. At most as long as a rule.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The header of the table that its lines belong to.
    #[must_use]
    pub fn section(&self) -> &str {
        &self.section
    }

    /// True if it leads to an address that is not public.
    #[must_use]
    pub fn is_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// The lines of the table, as TOML. `private` comes first, so that a long rule cannot hide it.
    #[must_use]
    pub fn lines(&self) -> String {
        let rule = match (&self.http, &self.socket) {
            (Some(rule), _) => rule.rule().text(),
            (None, Some(rule)) => rule.rule().text(),
            (None, None) => "",
        };
        let mut text = String::new();
        let entries: Vec<String> = self.private.iter().map(|entry| toml_string(entry.rule().text())).collect();
        if !entries.is_empty() {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "private = [{}]", entries.join(", "));
        }
        let _ = write!(text, "{} = [{}]", self.capability.name(), toml_string(rule));
        text
    }

    /// The table with its lines, to merge into a manifest.
    #[must_use]
    pub fn table(&self) -> String {
        format!("[{}]\n{}\n", self.section, self.lines())
    }
}

impl Grants {
    /// The rule that a person may be asked about after a request was denied.
    #[must_use]
    pub fn offer_http(&self, ask: &HttpAsk) -> Option<Askable> {
        self.asks().then(|| self.http_lines(ask))?
    }

    /// The rule that a person may be asked about after a connection or packets were denied.
    #[must_use]
    pub fn offer_socket(&self, capability: Capability, host: &Host, port: u16) -> Option<Askable> {
        self.asks().then(|| self.socket_lines(capability, host, port))?
    }

    /// The rule that an operator may add by one decision after a denial, by [`Denial::asked`].
    /// `None` if the text was cut or escaped, or is allowed by now.
    ///
    /// [`Denial::asked`]: super::Denial::asked
    #[must_use]
    pub fn offer_to_operator(&self, asked: &str) -> Option<Askable> {
        let ask = Ask::parse(asked).ok().filter(|ask| ask.to_string() == asked)?;
        if self.explain(&ask).is_allowed() {
            return None;
        }
        match ask {
            // A text with an ellipsis was cut.
            Ask::Http(ask) if !asked.ends_with('…') => self.http_lines(&ask),
            Ask::Socket(capability, host, port) => self.socket_lines(capability, &host, port),
            _ => None,
        }
    }

    fn asks(&self) -> bool {
        self.ungranted() == Ungranted::Ask
    }

    fn http_lines(&self, ask: &HttpAsk) -> Option<Askable> {
        // Only the manifest decides where a secret is sent, not a person whom a guest asks.
        let carries = self.secrets().iter().any(|secret| *secret.delivery() != Delivery::Expose && secret.matches(ask));
        // In a rule, a path with a star would be a pattern.
        if carries || ask.path().contains('*') {
            return None;
        }
        let asked = format!("{} {}://{}{}", ask.method(), ask.scheme().name(), ask.authority(), ask.path());
        let rule = HttpRule::parse(&asked, 0..0).ok().filter(|rule| rule.matches(ask))?;
        let private = self.offered(ask.host(), ask.port())?;
        let section = self.subject().section("network");
        Some(Askable { capability: Capability::Http, asked, section, http: Some(rule), socket: None, private })
    }

    fn socket_lines(&self, capability: Capability, host: &Host, port: u16) -> Option<Askable> {
        if port == 0 || !matches!(capability, Capability::Tcp | Capability::Udp) {
            return None;
        }
        let rule = SocketRule::parse(&format!("{host}:{port}"), 0..0).ok().filter(|rule| rule.matches_name(host))?;
        let private = self.offered(host, port)?;
        let asked = format!("{} {host}:{port}", capability.name());
        let section = self.subject().section("network");
        Some(Askable { capability, asked, section, http: None, socket: Some(rule), private })
    }

    /// The entries of `private` that the host needs; `None` if nobody may be asked about it.
    fn offered(&self, host: &Host, port: u16) -> Option<Vec<PrivateRule>> {
        let network = self.network();
        if network.wider.is_some() {
            return None;
        }
        if let Some(address) = host.addr() {
            let class = AddressClass::of(address);
            let carried = super::address::carried(address).and_then(AddressClass::of);
            let never = [AddressClass::Metadata, AddressClass::Unspecified];
            if [class, carried].into_iter().flatten().any(|class| never.contains(&class)) {
                return None;
            }
        }
        let entries = private::missing(host, port, network.private());
        let entries: Vec<PrivateRule> =
            entries.iter().filter_map(|entry| PrivateRule::parse(entry, 0..0).ok()).collect();
        Some(entries)
    }
}

impl Network {
    /// A copy that also allows what a person allowed.
    #[must_use]
    pub fn with(&self, offer: &Askable) -> Self {
        let mut network = self.clone();
        network.http.extend(offer.http.clone());
        match offer.capability {
            Capability::Tcp => network.tcp.extend(offer.socket.clone()),
            Capability::Udp => network.udp.extend(offer.socket.clone()),
            _ => {}
        }
        if !offer.private.is_empty() {
            network.private = self.private.iter().chain(&offer.private).cloned().collect::<Arc<[_]>>();
        }
        network
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Source;
    use crate::parse;

    use super::*;

    fn grants(tables: &str, tool: &str) -> Arc<Grants> {
        let text = format!("version = 1\n[components.c]\nsource = \"c.wasm\"\nungranted = \"ask\"\n{tables}");
        parse(&Source { name: "toolcell.toml", text: &text }).unwrap().manifest.components()[0].tool_grants(tool)
    }

    fn http(grants: &Grants, text: &str) -> Option<Askable> {
        match crate::Ask::parse(text).unwrap() {
            crate::Ask::Http(ask) => grants.offer_http(&ask),
            crate::Ask::Socket(capability, host, port) => grants.offer_socket(capability, &host, port),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_offer_is_the_lines_of_exactly_the_request() {
        let grants = grants("", "t");
        for (asked, lines) in [
            ("GET https://x.example/a/b?q=1", "http = [\"GET https://x.example/a/b\"]"),
            (
                "POST http://127.0.0.1:8080/x",
                "private = [\"127.0.0.1:8080\"]\nhttp = [\"POST http://127.0.0.1:8080/x\"]",
            ),
            ("tcp db.example.com:5432", "tcp = [\"db.example.com:5432\"]"),
            ("tcp [::1]:80", "private = [\"[::1]:80\"]\ntcp = [\"[::1]:80\"]"),
            ("udp 9.9.9.9:53", "udp = [\"9.9.9.9:53\"]"),
        ] {
            let offer = http(&grants, asked);
            assert_eq!(offer.as_ref().map(Askable::lines).as_deref(), Some(lines), "{asked}");
            let table = offer.unwrap().table();
            assert!(table.starts_with("[components.c.network]\n"), "{table}");
        }
    }

    #[test]
    fn what_is_allowed_is_that_request_and_no_other() {
        let grants = grants("", "t");
        let offer = http(&grants, "GET https://x.example/a").unwrap();
        let network = grants.network().with(&offer);
        let sends = |method: &str, scheme: &str, host: &str, path: &str| {
            network.http_request(method, scheme, host, path).is_ok()
        };
        assert!(sends("GET", "https", "x.example", "/a") && sends("GET", "https", "x.example", "/a?q=2"));
        assert!(!sends("POST", "https", "x.example", "/a") && !sends("GET", "http", "x.example", "/a"));
        assert!(!sends("GET", "https", "x.example", "/a/b") && !sends("GET", "https", "y.example", "/a"));
        assert!(!sends("GET", "https", "x.example:444", "/a"));
        assert!(grants.network().http_request("GET", "https", "x.example", "/a").is_err());
        let permit = network.http_request("GET", "https", "x.example", "/a").unwrap();
        for refused in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"] {
            assert!(permit.check_address(refused.parse().unwrap()).is_err(), "{refused}");
        }
    }

    #[test]
    fn nobody_is_asked_about_metadata_secrets_patterns_or_what_a_table_takes_away() {
        let secret = "[components.c.network]\nhttp = [\"GET https://api.example/v1/*\"]\n[components.c.secrets]\n\
                      KEY = { from = \"env:KEY\", header = \"A\", value = \"{}\", for = \"https://api.example\" }\n";
        let narrowed = "[components.c.network]\nhttp = [\"https://a.example\"]\n\
                        [components.c.tools.t]\nnetwork = { http = [\"GET https://a.example/x\"] }\n";
        let own = "[components.c.tools.t]\nungranted = \"deny\"\n";
        for (tables, asked) in [
            ("", "GET http://169.254.169.254/latest/meta-data"),
            ("", "GET http://[::ffff:169.254.169.254]/latest"),
            ("", "GET http://[fd00:ec2::254]/latest"),
            ("", "tcp 169.254.169.254:80"),
            ("", "GET http://0.0.0.0/"),
            ("", "GET https://x.example/*"),
            ("", "GET https://x.example/a*b"),
            ("", "GET https://x.example/a/..%2Fb"),
            (secret, "DELETE https://api.example/v1/all"),
            (narrowed, "GET https://a.example/y"),
            (narrowed, "tcp a.example:443"),
            (own, "GET https://x.example/a"),
        ] {
            assert_eq!(http(&grants(tables, "t"), asked), None, "{tables}{asked}");
        }
        assert!(http(&grants(secret, "t"), "GET https://other.example/").is_some());
        assert!(http(&grants(narrowed, "other"), "GET https://b.example/y").is_some());
        assert!(http(&grants(own, "other"), "GET https://x.example/a").is_some());
        let none = parse(&Source { name: "toolcell.toml", text: "version = 1\n[components.c]\nsource = \"c.wasm\"\n" });
        let none = none.unwrap().manifest.components()[0].tool_grants("t");
        assert_eq!(http(&none, "GET https://x.example/a"), None, "never by default");
    }

    #[test]
    fn an_operator_is_offered_exactly_the_request_and_nothing_wider() {
        let text = "version = 1\n[components.c]\nsource = \"c.wasm\"\n[components.c.network]\n\
                    http = [\"https://api.example/v1/*\"]\n[components.c.secrets]\n\
                    KEY = { from = \"env:KEY\", header = \"A\", value = \"{}\", for = \"https://api.example\" }\n\
                    [components.c.tools.t]\nnetwork = { http = [] }\n";
        let manifest = parse(&Source { name: "toolcell.toml", text }).unwrap().manifest;
        let grants = manifest.components()[0].grants();
        let lines = |asked: &str| grants.offer_to_operator(asked).map(|offer| offer.lines());
        let local = "private = [\"127.0.0.1:80\"]\nhttp = [\"GET http://127.0.0.1/x\"]";
        assert_eq!(lines("GET http://127.0.0.1/x").as_deref(), Some(local));
        assert_eq!(lines("tcp a.example:1").as_deref(), Some("tcp = [\"a.example:1\"]"));
        assert_eq!(lines("udp 9.9.9.9:53").as_deref(), Some("udp = [\"9.9.9.9:53\"]"));
        for asked in [
            "GET https://x.example/*",
            "GET https://x.example/v1/*",
            "GET https://x.example/..;/x",
            "GET https://x.example/a/../b",
            "BREW https://x.example/x",
            "GET http://169.254.169.254/latest",
            "GET https://api.example/v2",
            "GET https://api.example/v1/allowed",
            "tcp 169.254.169.254:80",
            "write /tls/x",
            "read /etc/passwd",
            "env HOME",
            "config key",
            "secret KEY",
            "keyvalue",
            "lookup db.example",
            "GET https://x.example/cut…",
            "GET https://x.example/a\u{202e}b",
            "tcp bind 127.0.0.1:1",
            "",
        ] {
            assert_eq!(lines(asked), None, "{asked}");
        }
        let narrowed = manifest.components()[0].tool_grants("t");
        assert_eq!(narrowed.offer_to_operator("GET https://x.example/"), None);
    }

    #[test]
    fn a_tool_cannot_ask_where_its_component_does_not() {
        let text = "version = 1\n[components.c]\nsource = \"c.wasm\"\n[components.c.tools.t]\nungranted = \"ask\"\n";
        let problems = parse(&Source { name: "toolcell.toml", text }).unwrap_err();
        assert_eq!(problems[0].code(), "grants::wider");
    }
}
