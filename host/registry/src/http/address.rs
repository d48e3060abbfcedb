//! Addresses that may be connected to, and connecting to them.
//!
//! The address that was checked is the one that is connected to: a name is looked up once, here.
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use toolcell_policy::AddressClass;
use url::{Host, Url};

use crate::error::PullError;

/// Most addresses of a name that are tried; large registries have eight.
const ADDRESSES_MAX: usize = 16;

/// Addresses that a connection may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those of the internet.
    Public,
    /// These, and those of an own network.
    Private,
    /// Those of this machine alone: plain HTTP without being told to.
    Loopback,
}

impl Reach {
    /// The kind of the address where it is not in reach.
    fn refused(self, address: IpAddr) -> Option<AddressClass> {
        let class = AddressClass::of(address);
        match class {
            // Such an address is as public as the one that packets end at.
            Some(AddressClass::V4Mapped | AddressClass::Nat64) => match AddressClass::carried(address) {
                Some(carried) => self.refused(carried),
                None => class,
            },
            None => (self == Self::Loopback).then_some(AddressClass::Reserved),
            Some(AddressClass::Loopback) if self != Self::Public => None,
            Some(AddressClass::Private | AddressClass::SharedNat | AddressClass::UniqueLocal)
                if self == Self::Private =>
            {
                None
            }
            Some(class) => Some(class),
        }
    }
}

/// The host of an address with its port, as errors show it.
pub(crate) fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// True if the address names this machine by itself.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Connects to the first address of the host that is in reach and answers.
pub(crate) async fn connect(url: &Url, reach: Reach, within: Duration) -> Result<TcpStream, PullError> {
    let late = |_| PullError::Late { host: shown(url), step: crate::error::CONNECTING, within };
    tokio::time::timeout(within, dial(url, reach, look_up)).await.map_err(late)?
}

/// The first addresses of a name, as this machine's resolver has them.
async fn look_up(name: String, port: u16) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, port)).await?;
    Ok(found.map(|address| address.ip()).take(ADDRESSES_MAX).collect())
}

/// Connects to a host, whose name is looked up this once.
async fn dial<F: Future<Output = io::Result<Vec<IpAddr>>>>(
    url: &Url,
    reach: Reach,
    look_up: impl FnOnce(String, u16) -> F,
) -> Result<TcpStream, PullError> {
    let failed = |source| PullError::Connect { host: shown(url), source };
    let port = url.port_or_known_default().unwrap_or_default();
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => look_up(name.to_owned(), port).await.map_err(failed)?,
        None => Vec::new(),
    };
    let mut refused = None;
    let mut problem = None;
    for address in addresses {
        if let Some(class) = reach.refused(address) {
            refused.get_or_insert((address, class));
            continue;
        }
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = Some(error),
        }
    }
    Err(match (problem, refused) {
        (Some(source), _) => failed(source),
        (None, Some((address, class))) => PullError::Address { host: shown(url), address, class },
        (None, None) => failed(io::Error::other("its name has no address")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_reach_or_not() {
        for (address, public, private, loopback) in [
            ("1.1.1.1", true, true, false),
            ("2606:4700::1", true, true, false),
            ("127.0.0.1", false, true, true),
            ("::1", false, true, true),
            ("10.1.2.3", false, true, false),
            ("172.16.0.1", false, true, false),
            ("192.168.1.1", false, true, false),
            ("100.64.0.1", false, true, false),
            ("fd00::1", false, true, false),
            ("::ffff:10.0.0.1", false, true, false),
            ("::ffff:127.0.0.1", false, true, true),
            ("::ffff:1.1.1.1", true, true, false),
            ("64:ff9b::1.1.1.1", true, true, false),
            ("64:ff9b::10.0.0.1", false, true, false),
            ("64:ff9b::169.254.169.254", false, false, false),
            ("169.254.169.254", false, false, false),
            ("::ffff:169.254.169.254", false, false, false),
            ("fd00:ec2::254", false, false, false),
            ("100.100.100.200", false, false, false),
            ("169.254.1.1", false, false, false),
            ("fe80::1", false, false, false),
            ("0.0.0.0", false, false, false),
            ("::", false, false, false),
            ("224.0.0.1", false, false, false),
            ("ff02::1", false, false, false),
            ("255.255.255.255", false, false, false),
            ("2002:7f00:1::1", false, false, false),
            ("2001::1", false, false, false),
            ("192.0.2.1", false, false, false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let reached = [Reach::Public, Reach::Private, Reach::Loopback].map(|r| r.refused(address).is_none());
            assert_eq!(reached, [public, private, loopback], "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_leads_to_no_address_that_is_out_of_reach() {
        let url = Url::parse("https://registry.example.com/").unwrap();
        let dialled = async |reach: Reach, found: &[&str]| {
            let found: Vec<IpAddr> = found.iter().map(|address| address.parse().unwrap()).collect();
            dial(&url, reach, async |_, _| Ok(found)).await
        };
        for (reach, found, refused, class) in [
            (Reach::Public, &["10.1.2.3"][..], "10.1.2.3", AddressClass::Private),
            (Reach::Public, &["169.254.169.254"], "169.254.169.254", AddressClass::Metadata),
            (Reach::Public, &["169.254.1.1"], "169.254.1.1", AddressClass::LinkLocal),
            (Reach::Public, &["::ffff:10.1.2.3"], "::ffff:10.1.2.3", AddressClass::Private),
            (Reach::Public, &["127.0.0.1", "10.1.2.3"], "127.0.0.1", AddressClass::Loopback),
            (Reach::Private, &["169.254.169.254"], "169.254.169.254", AddressClass::Metadata),
            (Reach::Private, &["169.254.1.1"], "169.254.1.1", AddressClass::LinkLocal),
            (Reach::Loopback, &["10.1.2.3"], "10.1.2.3", AddressClass::Private),
        ] {
            match dialled(reach, found).await.unwrap_err() {
                PullError::Address { host, address, class: of } => {
                    assert_eq!(host, "registry.example.com");
                    assert_eq!((address.to_string().as_str(), of), (refused, class), "{reach:?} {found:?}");
                }
                other => panic!("{found:?}: {other}"),
            }
        }
        // The address that was checked is the one that is connected to.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let url = Url::parse(&format!("https://registry.example.com:{}/", at.port())).unwrap();
        let found = vec!["169.254.169.254".parse().unwrap(), at.ip()];
        let stream = dial(&url, Reach::Private, async |_, _| Ok(found)).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), at);
    }

    #[test]
    fn numbers_in_other_clothes_are_the_addresses_that_they_are() {
        for text in ["http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://[::1]/", "http://localhost/"]
        {
            assert!(is_loopback(&Url::parse(text).unwrap()), "{text}");
        }
        for text in ["http://localhost.example.com/", "http://127.0.0.1.example.com/", "http://10.0.0.1/"] {
            assert!(!is_loopback(&Url::parse(text).unwrap()), "{text}");
        }
    }
}
