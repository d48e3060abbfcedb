//! TLS to servers: trusted roots, and the handshake.
//!
//! Trusted are the platform's roots, Mozilla's bundled ones, and the files that a component's `ca`
//! names. The platform's are read at the first HTTPS request of the process, not at start. Sessions
//! are never resumed: a ticket would link calls that share nothing else.
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use toolcell_outbound::{client_config, machine_roots};
use toolcell_policy::Host;

/// Certificates of one `ca` file: bundles of all public authorities hold about 150.
pub(crate) const CA_CERTIFICATES_MAX: usize = 1_000;

/// Both versions: HTTP/2, if the server supports it.
pub(crate) const BOTH: &[&[u8]] = &[ALPN_H2, ALPN_H1];
/// HTTP/1.1 alone.
pub(crate) const H1: &[&[u8]] = &[ALPN_H1];
/// The protocol chosen by a server that speaks HTTP/2.
pub(crate) const ALPN_H2: &[u8] = b"h2";
const ALPN_H1: &[u8] = b"http/1.1";

/// The platform's and the bundled roots.
static PUBLIC_ROOTS: OnceCell<Arc<RootCertStore>> = OnceCell::const_new();

/// TLS settings of one component's client, made at its first HTTPS request.
pub(crate) struct Tls {
    own_roots: Vec<CertificateDer<'static>>,
    config: OnceLock<Arc<ClientConfig>>,
}

/// Why a `ca` file has no usable roots. The message completes "the file …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CaError {
    /// It is not PEM, or malformed.
    #[error("is not a list of certificates in PEM form")]
    NotPem,
    /// It is PEM, but has no certificate.
    #[error("holds no certificate")]
    Empty,
    /// It has too many certificates.
    #[error("holds more than {CA_CERTIFICATES_MAX} certificates")]
    TooMany,
    /// A certificate that cannot be a root.
    #[error("holds a certificate that cannot be a root of trust")]
    NotARoot,
}

impl Tls {
    /// Only the public roots.
    pub(crate) const fn public() -> Self {
        Self { own_roots: Vec::new(), config: OnceLock::new() }
    }

    /// The certificates of these PEM files, in addition to the public roots.
    ///
    /// # Errors
    /// The place of a file in the list, and its fault.
    pub(crate) fn new(ca_files: &[Vec<u8>]) -> Result<Self, (usize, CaError)> {
        let mut own_roots = Vec::new();
        for (at, pem) in ca_files.iter().enumerate() {
            own_roots.extend(certificates(pem).map_err(|error| (at, error))?);
        }
        Ok(Self { own_roots, config: OnceLock::new() })
    }

    /// Connects to the server of this name, and to no other; `protocols` are offered to it.
    ///
    /// # Errors
    /// `InvalidData` with [`rustls::Error`] inside if the server cannot prove its name, or does not
    /// use TLS.
    pub(crate) async fn connect<S>(&self, stream: S, host: &Host, protocols: &[&[u8]]) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
            Host::Addr(address) => ServerName::from(*address),
        };
        let connector = TlsConnector::from(self.config().await?);
        let protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        connector.with_alpn(protocols).connect(name, stream).await
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let public = PUBLIC_ROOTS.get_or_try_init(public_roots).await?;
        let roots = if self.own_roots.is_empty() {
            Arc::clone(public)
        } else {
            let mut roots = RootCertStore::clone(public);
            roots.add_parsable_certificates(self.own_roots.iter().cloned());
            Arc::new(roots)
        };
        let mut config = client_config(roots).map_err(io::Error::other)?;
        config.resumption = Resumption::disabled();
        let config = Arc::new(config);
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

/// Reads the platform's roots on a thread for blocking work: on some platforms that takes a tenth
/// of a second.
async fn public_roots() -> io::Result<Arc<RootCertStore>> {
    let read = || {
        // A platform without roots, or with some that do not parse, has the bundled ones.
        let mut roots = machine_roots();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        Arc::new(roots)
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CaError> {
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        if certificates.len() == CA_CERTIFICATES_MAX {
            return Err(CaError::TooMany);
        }
        certificates.push(certificate.map_err(|_| CaError::NotPem)?);
    }
    if certificates.is_empty() {
        return Err(CaError::Empty);
    }
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| CaError::NotARoot)?;
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_without_certificates_is_a_problem_of_its_line() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
        let broken = certificate.replace('M', "!");
        let wrong = |pem: &str| Tls::new(&[pem.as_bytes().to_vec()]).err().map(|(_, error)| error);
        assert_eq!(wrong(&certificate), None);
        assert_eq!(wrong(&certificate.repeat(3)), None);
        assert_eq!(wrong("# nothing\n"), Some(CaError::Empty));
        assert_eq!(wrong(&broken), Some(CaError::NotPem));
        assert_eq!(wrong(&certificate.repeat(1_001)), Some(CaError::TooMany));
    }
}
