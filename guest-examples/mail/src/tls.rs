//! TLS over a connection, by rustls: version 1.3, and certificates that lead to a root that is trusted. Holds no SMTP.

mod cipher;
mod exchange;
mod hash;
mod provider;
mod signature;

use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use toolkit::Failure;

use crate::settings::Settings;

/// A connection in TLS.
pub type Secured = StreamOwned<ClientConnection, TcpStream>;

/// Shakes hands with the server. Its certificate has to be for the settings' host.
pub fn over(stream: TcpStream, settings: &Settings) -> Result<Secured, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("TLS with {}: {error}", settings.host));
    let config = ClientConfig::builder_with_provider(Arc::new(provider::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots(settings.ca_file.as_deref())?)
        .with_no_client_auth();
    let name = ServerName::try_from(settings.host.clone()).map_err(|error| failed(&error))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))?;
    let mut secured = StreamOwned::new(connection, stream);
    while secured.conn.is_handshaking() {
        secured.conn.complete_io(&mut secured.sock).map_err(|error| failed(&error))?;
    }
    Ok(secured)
}

/// Mozilla's roots, or in their place the certificates of a file.
fn roots(file: Option<&str>) -> Result<RootCertStore, Failure> {
    let Some(file) = file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("the manifest's CA_FILE, {file}: {error}"));
    let pem = std::fs::read(file).map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() { Err(failed(&"there is no certificate in it")) } else { Ok(roots) }
}
