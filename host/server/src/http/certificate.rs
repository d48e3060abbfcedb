//! Certificate and key of TLS, from their files; read again when they change.
use std::path::Path;

use toolcell_mcp::http::Certificate;
use toolcell_policy::TlsFiles;

use super::certificate_facts::note_shown;
use crate::files::FilePolling;
use crate::files::file::read_bounded;

/// Longest file of a certificate with its chain, or of a key, in bytes.
pub(super) const PEM_BYTES_MAX: u64 = 256 * 1024;

/// Reads both files, now and whenever one changes. `Err` is one sentence.
pub fn open(files: &TlsFiles<'_>, folder: &Path, polling: &mut FilePolling) -> Result<Certificate, String> {
    let chain = folder.join(files.certificate());
    let key = folder.join(files.key());
    let (chain_pem, key_pem) = read(&chain, &key)?;
    let certificate = Certificate::new(&chain_pem, &key_pem).map_err(|error| error.to_string())?;
    note_shown(&chain, &chain_pem);
    let shown = certificate.clone();
    polling.files(vec![chain.clone(), key.clone()], move || {
        let replaced = read(&chain, &key).and_then(|(chain_pem, key_pem)| {
            shown.replace(&chain_pem, &key_pem).map_err(|error| error.to_string())?;
            note_shown(&chain, &chain_pem);
            Ok(())
        });
        match replaced {
            Ok(()) => tracing::info!("TLS shows the certificate in {} as it is now", chain.display()),
            Err(problem) => tracing::warn!("TLS keeps the certificate it had: {problem}"),
        }
    });
    Ok(certificate)
}

pub(super) fn read(chain: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), String> {
    let read =
        |path: &Path| read_bounded(path, PEM_BYTES_MAX).map_err(|problem| format!("{} {problem}", path.display()));
    Ok((read(chain)?, read(key)?))
}
