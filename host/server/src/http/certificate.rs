//! Certificate and key of TLS, from their files; read again when they change.
use std::path::{Path, PathBuf};

use toolcell_mcp::http::Certificate;
use toolcell_policy::TlsFiles;

use super::watch::FilePolling;
use crate::file::read_bounded;

/// Longest file of a certificate with its chain, or of a key, in bytes.
const PEM_BYTES_MAX: u64 = 256 * 1024;

/// Reads both files, now and whenever one changes. `Err` is one sentence.
pub fn open(files: &TlsFiles<'_>, folder: &Path, polling: &mut FilePolling) -> Result<Certificate, String> {
    let (chain, key) = (folder.join(files.certificate()), folder.join(files.key()));
    let (chain_pem, key_pem) = read(&chain, &key)?;
    let certificate = Certificate::new(&chain_pem, &key_pem).map_err(|error| error.to_string())?;
    let shown = certificate.clone();
    polling.files(vec![chain.clone(), key.clone()], move || {
        let replaced =
            read(&chain, &key).and_then(|(chain, key)| shown.replace(&chain, &key).map_err(|error| error.to_string()));
        match replaced {
            Ok(()) => tracing::info!("TLS shows the certificate in {} as it is now", chain.display()),
            Err(problem) => tracing::warn!("TLS goes on with the certificate it had: {problem}"),
        }
    });
    Ok(certificate)
}

fn read(chain: &PathBuf, key: &PathBuf) -> Result<(Vec<u8>, Vec<u8>), String> {
    let read =
        |path: &PathBuf| read_bounded(path, PEM_BYTES_MAX).map_err(|problem| format!("{} {problem}", path.display()));
    Ok((read(chain)?, read(key)?))
}
