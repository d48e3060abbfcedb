//! Addresses of the servers and how to connect to them.
use std::fmt;
use std::time::Duration;

use redis::{
    Client, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisResult, TlsCertificates,
};

/// A server and how to connect to it.
#[derive(Clone)]
pub struct ValkeyOptions {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The kind of server there.
    pub arrangement: Arrangement,
    /// True for TLS, also to sentinels.
    pub tls: bool,
    /// Certificate authorities for TLS, as PEM; `None`: the machine's.
    pub authorities_pem: Option<Vec<u8>>,
    /// User in the server's ACL; `None`: the default user.
    pub user: Option<String>,
    /// The user's password; `None`: none is sent.
    pub password: Option<String>,
    /// Number of the database.
    pub database: u8,
    /// Prefix of all keys.
    pub prefix: String,
    /// Time limit of one operation: see [`OPERATION_WITHIN`](crate::OPERATION_WITHIN).
    pub within: Duration,
    /// How many replicas must have a write before it counts as done, for writes that are reported
    /// to somebody. They have a third of [`within`](Self::within) for that: a script that the
    /// server does not know yet is sent twice.
    pub copies: u16,
}

impl ValkeyOptions {
    /// A standalone server at this address, without TLS or a password; database 0, prefix
    /// `toolcell`, and [`OPERATION_WITHIN`](crate::OPERATION_WITHIN).
    #[must_use]
    pub fn at(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
            arrangement: Arrangement::Alone,
            tls: false,
            authorities_pem: None,
            user: None,
            password: None,
            database: 0,
            prefix: "toolcell".to_owned(),
            within: super::OPERATION_WITHIN,
            copies: 0,
        }
    }
}

/// A kind of server at an address.
#[derive(Clone, Default)]
pub enum Arrangement {
    /// A standalone server.
    #[default]
    Alone,
    /// A sentinel, which knows the server.
    Sentinels {
        /// The name of the primary at the sentinels.
        main: String,
        /// Further sentinels.
        others: Vec<(String, u16)>,
        /// User in the sentinels' ACL; `None`: the default user.
        user: Option<String>,
        /// That user's password; `None`: none is sent.
        password: Option<String>,
    },
    /// A node of a cluster.
    Cluster {
        /// Further nodes, which are used if the first is unreachable.
        others: Vec<(String, u16)>,
    },
}

/// The address, the certificates or the machine make a connection impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(String);

impl BadAddress {
    pub(super) fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// Parses a node's address as another node names it: `HOST:PORT`, or `:PORT` for the same host.
    pub fn named_by(text: &str, by: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { &by.host } else { host.trim_matches(['[', ']']) };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// Makes clients with the same settings for several addresses.
pub struct Opener {
    pub tls: bool,
    pub authorities_pem: Option<Vec<u8>>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u8,
    /// The replicas that a write waits for.
    pub copies: Option<Copies>,
}

/// Replicas that must have a write.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    pub count: u16,
    pub within: Duration,
}

impl Opener {
    pub fn client(&self, place: &Address) -> RedisResult<Client> {
        if self.tls {
            // The client uses the process's cryptography provider, and panics if it would have to
            // choose one. An error means that one is set already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let host = place.host.clone();
        let port = place.port;
        let address = match self.tls {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        let mut settings =
            RedisConnectionInfo::default().set_db(self.database.into()).set_protocol(ProtocolVersion::RESP3);
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        let info = address.into_connection_info()?.set_redis_settings(settings);
        match self.authorities_pem.clone() {
            Some(pem) => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(pem) }),
            None => Client::open(info),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_name_addresses_with_and_without_a_host() {
        let by = Address { host: "a.example.com".to_owned(), port: 1 };
        let place = |host: &str, port| Some(Address { host: host.to_owned(), port });
        for (text, expected) in [
            ("10.0.0.1:6379", place("10.0.0.1", 6_379)),
            ("::1:6379", place("::1", 6_379)),
            ("[::1]:6379", place("::1", 6_379)),
            (":6380", place("a.example.com", 6_380)),
            ("b.example.com", None),
            ("b.example.com:", None),
            ("b.example.com:70000", None),
        ] {
            assert_eq!(Address::named_by(text, &by), expected, "{text}");
        }
    }
}
