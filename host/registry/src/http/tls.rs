//! TLS with the machine's certificate authorities, or with those of a registry.
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_rustls::TlsConnector;
use toolcell_outbound::{client_config, machine_connector};

use crate::error::PullError;
use crate::length;

/// Longest file of authorities, in bytes: the file of all public ones has a fifth of it.
const AUTHORITIES_BYTES_MAX: u64 = 1 << 20;

/// TLS connectors, each made once.
#[derive(Default)]
pub(crate) struct Connectors {
    made: Mutex<BTreeMap<Option<PathBuf>, TlsConnector>>,
}

impl Connectors {
    /// The connector for the authorities in this file, or for the machine's.
    pub(crate) fn get(&self, host: &str, authorities: Option<&Path>) -> Result<TlsConnector, PullError> {
        let key = authorities.map(Path::to_owned);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connector) = made.get(&key) {
            return Ok(connector.clone());
        }
        let problem = |problem| PullError::Settings { host: host.to_owned(), problem };
        let connector = match authorities {
            Some(path) => {
                let roots = of_file(path).map_err(|error| problem(format!("{}: {error}", path.display())))?;
                let config = client_config(roots).map_err(|error| problem(error.to_string()))?;
                TlsConnector::from(Arc::new(config))
            }
            None => machine_connector().map_err(|error| problem(error.to_string()))?,
        };
        made.insert(key, connector.clone());
        Ok(connector)
    }
}

fn of_file(path: &Path) -> std::io::Result<RootCertStore> {
    let mut text = Vec::new();
    crate::store::open_file(path)?.take(AUTHORITIES_BYTES_MAX + 1).read_to_end(&mut text)?;
    if length(&text) > AUTHORITIES_BYTES_MAX {
        return Err(std::io::Error::other(format!("it has more than {AUTHORITIES_BYTES_MAX} bytes")));
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| std::io::Error::other(error.to_string()))?;
        roots.add(certificate).map_err(std::io::Error::other)?;
    }
    if roots.is_empty() {
        return Err(std::io::Error::other("it holds no certificate"));
    }
    Ok(roots)
}
