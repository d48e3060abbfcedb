//! The machine's certificate authorities, and TLS clients that trust them.
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::OutboundError;

/// The machine's certificate authorities, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, without
/// those that do not parse. On some platforms reading them takes a tenth of a second.
#[must_use]
pub fn machine_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The settings of a TLS client that trusts these authorities and shows no certificate of its own.
///
/// # Errors
/// The system's cryptography offers no version of TLS.
pub fn client_config(roots: impl Into<Arc<RootCertStore>>) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// TLS with the machine's certificate authorities.
///
/// # Errors
/// [`OutboundError::NoRoots`] if it has none.
pub fn machine_connector() -> Result<TlsConnector, OutboundError> {
    let roots = machine_roots();
    if roots.is_empty() {
        return Err(OutboundError::NoRoots);
    }
    let config = client_config(roots).map_err(|error| OutboundError::Connect(std::io::Error::other(error)))?;
    Ok(TlsConnector::from(Arc::new(config)))
}
