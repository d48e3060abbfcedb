//! Name lookups, with the system's settings or at the name servers of the manifest.
//!
//! Names are looked up exactly as written. Search domains of the system are not tried, so that a
//! name means the same host wherever the manifest is used.
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};

/// Addresses of one answer that are used. More would not help as a fallback, and each is checked
/// and tried in turn.
pub(crate) const ADDRESSES_MAX: usize = 16;

/// Time that one name server has for an answer, before the next is asked or this one again.
const SERVER_WAIT: Duration = Duration::from_secs(2);
/// Attempts at each server.
const ATTEMPTS: usize = 2;
/// Answers that are cached, for as long as they allow but no longer than the next two.
const CACHE_ENTRIES: u64 = 256;
/// Longest time for which an address is cached: some names change sooner than their answer says.
const CACHED_MAX: Duration = Duration::from_secs(30);
/// Longest time for which a missing name is cached.
const MISSING_MAX: Duration = Duration::from_secs(5);

/// Looks names up. Cheap to share; set up at the first lookup, so that no start waits for it.
pub(crate) struct Resolver {
    servers: Vec<SocketAddr>,
    ready: OnceLock<ResolvedAddresses>,
}

struct ResolvedAddresses {
    dns: Option<TokioResolver>,
    hosts: Hosts,
}

/// Why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// The name does not exist.
    #[error("there is no such name")]
    NoName,
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// No server answered in time.
    #[error("no name server answered in time")]
    Timeout,
    /// The name servers could not be asked, or did not answer properly. For the operator.
    #[error("the name servers failed: {0}")]
    Failed(String),
}

impl Resolver {
    /// With the system's settings (`resolv.conf` and the hosts file) if `servers` is empty;
    /// otherwise only at these servers.
    pub(crate) fn new(servers: &[SocketAddr]) -> Arc<Self> {
        Arc::new(Self { servers: servers.to_vec(), ready: OnceLock::new() })
    }

    /// The addresses of a host name in ASCII, IPv6 and IPv4 alternating, at most [`ADDRESSES_MAX`].
    ///
    /// Dropping the future abandons the lookup. Must be polled within a tokio runtime.
    ///
    /// # Errors
    /// [`LookupError`] if there is no address within `wait`.
    pub(crate) async fn addresses(&self, name: &str, wait: Duration) -> Result<Vec<IpAddr>, LookupError> {
        let mut name = Name::from_ascii(name).map_err(|_| LookupError::NoName)?;
        name.set_fqdn(true);
        let ready = self.ready.get_or_init(|| ResolvedAddresses::new(&self.servers));
        let static_addresses = ready.static_addresses(&name);
        if !static_addresses.is_empty() {
            return Ok(in_turns(static_addresses));
        }
        let dns = ready.dns.as_ref().ok_or_else(|| LookupError::Failed("none is known".to_owned()))?;
        let found = tokio::time::timeout(wait, dns.lookup_ip(name)).await.map_err(|_| LookupError::Timeout)?;
        let addresses: Vec<IpAddr> = found.map_err(|error| failure(&error))?.iter().collect();
        if addresses.is_empty() { Err(LookupError::NoAddress) } else { Ok(in_turns(addresses)) }
    }
}

impl ResolvedAddresses {
    /// Reads the system's files, which takes less than a millisecond.
    fn new(servers: &[SocketAddr]) -> Self {
        if servers.is_empty() {
            let system = hickory_resolver::system_conf::read_system_conf().ok();
            let dns = system.and_then(|(config, options)| dns(config.name_servers, options));
            return Self { dns, hosts: Hosts::from_system().unwrap_or_default() };
        }
        let config = servers.iter().map(|server| name_server(*server)).collect();
        Self { dns: dns(config, ResolverOpts::default()), hosts: Hosts::default() }
    }

    /// The addresses in the hosts file. If it names a host, no name server is asked.
    fn static_addresses(&self, name: &Name) -> Vec<IpAddr> {
        let of_type = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found = [of_type(RecordType::AAAA), of_type(RecordType::A)];
        let address = |record: &hickory_resolver::proto::rr::Record| record.data.ip_addr();
        found.iter().flatten().flat_map(|lookup| lookup.answers().iter().filter_map(address)).collect()
    }
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let connection = |protocol| {
        let mut connection = ConnectionConfig::new(protocol);
        connection.port = server.port();
        connection
    };
    NameServerConfig::new(server.ip(), true, vec![connection(ProtocolConfig::Udp), connection(ProtocolConfig::Tcp)])
}

fn dns(name_servers: Vec<NameServerConfig>, system: ResolverOpts) -> Option<TokioResolver> {
    let config = ResolverConfig::from_parts(None, Vec::new(), name_servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    *options = system;
    options.timeout = options.timeout.min(SERVER_WAIT);
    options.attempts = options.attempts.min(ATTEMPTS);
    options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
    options.cache_size = CACHE_ENTRIES;
    options.positive_max_ttl = Some(CACHED_MAX);
    options.negative_max_ttl = Some(MISSING_MAX);
    options.use_hosts_file = ResolveHosts::Never;
    builder.build().ok()
}

fn failure(error: &NetError) -> LookupError {
    match error {
        NetError::Timeout => LookupError::Timeout,
        NetError::Dns(DnsError::NoRecordsFound(none)) if none.response_code == ResponseCode::NXDomain => {
            LookupError::NoName
        }
        NetError::Dns(DnsError::NoRecordsFound(none)) if none.response_code == ResponseCode::NoError => {
            LookupError::NoAddress
        }
        other => LookupError::Failed(other.to_string()),
    }
}

/// The first of each kind, then the second, and so on: if one kind does not get through, the other
/// is next.
fn in_turns(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (six, four): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let mut six = six.into_iter();
    let mut four = four.into_iter();
    let mut turns = Vec::new();
    while turns.len() < ADDRESSES_MAX {
        let before = turns.len();
        turns.extend(six.next().into_iter().chain(four.next()));
        if turns.len() == before {
            break;
        }
    }
    turns.truncate(ADDRESSES_MAX);
    turns
}
