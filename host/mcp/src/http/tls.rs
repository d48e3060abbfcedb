//! TLS: one certificate and key, which may be replaced during serving.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The protocols offered in the handshake, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Most certificates of one chain. Three are common; a file with more is some other file.
const CHAIN_MAX: usize = 32;

/// The server's certificate. Handshakes after [`replace`](Self::replace) use the new one.
#[derive(Clone)]
pub struct Certificate {
    shown: Arc<ShownCertificate>,
    config: Arc<ServerConfig>,
}

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file has no certificate, or something else among them.
    #[error("the certificate file holds no chain of certificates in PEM")]
    Chain,
    /// No private key.
    #[error("the key file holds no private key in PEM")]
    Key,
    /// They do not belong together, or are of a kind that cannot be used.
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(#[source] rustls::Error),
}

#[derive(Debug)]
struct ShownCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificate {
    /// Reads a certificate chain, the server's own first, and its private key, both in PEM.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn new(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let shown = Arc::new(ShownCertificate(ArcSwap::from_pointee(pair(&provider, chain_pem, key_pem)?)));
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<ShownCertificate>::clone(&shown);
        let mut config = builder.map_err(TlsError::Pair)?.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self { shown, config: Arc::new(config) })
    }

    /// Uses another certificate from now on.
    ///
    /// # Errors
    /// As [`new`](Self::new); the old certificate stays in use.
    pub fn replace(&self, chain_pem: &[u8], key_pem: &[u8]) -> Result<(), TlsError> {
        let pair = pair(self.config.crypto_provider(), chain_pem, key_pem)?;
        self.shown.0.store(Arc::new(pair));
        Ok(())
    }

    /// For other listeners of the same process, which only speak HTTP/1.1.
    #[must_use]
    pub fn http1_acceptor(&self) -> tokio_rustls::TlsAcceptor {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config).into()
    }

    pub(super) fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        Arc::clone(&self.config).into()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

fn pair(provider: &CryptoProvider, chain_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain_pem).take(CHAIN_MAX).collect();
    let chain = chain.map_err(|_| TlsError::Chain)?;
    if chain.is_empty() {
        return Err(TlsError::Chain);
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| TlsError::Key)?;
    CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Pair)
}
