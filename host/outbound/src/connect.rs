//! Connecting to a server: its name, TCP and TLS.
//!
//! The address that was checked is the one that is connected to: a name is resolved once, here.
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::{OutboundError, Reach};

/// Most addresses of a name that are tried; large registries have eight.
const ADDRESSES_MAX: usize = 16;

/// How to send a request.
#[derive(Clone)]
pub struct Way<'w> {
    /// The addresses that it may go to.
    pub reach: Reach,
    /// TLS for `https`.
    pub tls: Option<&'w TlsConnector>,
    /// Time to connect: name, TCP and TLS.
    pub connect: Duration,
}

/// A connection to a server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to the first address of the host that is allowed and answers.
pub(crate) async fn connect(url: &Url, way: &Way<'_>) -> Result<Box<dyn Stream>, OutboundError> {
    let within = way.connect;
    let deadline = Instant::now() + within;
    let dialled = timeout_at(deadline, dial(url, way.reach, look_up)).await;
    let tcp = dialled.map_err(|_| OutboundError::ConnectTime(within))??;
    if url.scheme() == "http" {
        return Ok(Box::new(tcp));
    }
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).map_err(|_| OutboundError::Address)?,
        Some(Host::Ipv4(address)) => ServerName::from(IpAddr::from(address)),
        Some(Host::Ipv6(address)) => ServerName::from(IpAddr::from(address)),
        None => return Err(OutboundError::Address),
    };
    let tls = way.tls.ok_or(OutboundError::NoRoots)?;
    let shaken = timeout_at(deadline, tls.connect(name, tcp)).await.map_err(|_| OutboundError::TlsTime(within))?;
    Ok(Box::new(shaken.map_err(OutboundError::Connect)?))
}

/// The first addresses of a name, as this machine's resolver has them.
async fn look_up(name: String, port: u16) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, port)).await?;
    Ok(found.map(|address| address.ip()).take(ADDRESSES_MAX).collect())
}

/// Connects to a host, resolving its name once.
async fn dial<F: Future<Output = io::Result<Vec<IpAddr>>>>(
    url: &Url,
    reach: Reach,
    look_up: impl FnOnce(String, u16) -> F,
) -> Result<TcpStream, OutboundError> {
    let port = url.port_or_known_default().unwrap_or_default();
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => look_up(name.to_owned(), port).await.map_err(OutboundError::Connect)?,
        None => return Err(OutboundError::Address),
    };
    let mut refused = None;
    let mut problem = None;
    for address in addresses {
        if let Some(class) = reach.refused(address) {
            refused.get_or_insert(OutboundError::Refused(address, class));
            continue;
        }
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = Some(OutboundError::Connect(error)),
        }
    }
    let no_address = || OutboundError::Connect(io::Error::other("its name has no address"));
    Err(problem.or(refused).unwrap_or_else(no_address))
}

#[cfg(test)]
mod tests {
    use toolcell_policy::AddressClass;

    use super::*;

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
                OutboundError::Refused(address, of) => {
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
}
