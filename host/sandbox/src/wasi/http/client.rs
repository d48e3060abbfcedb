//! The client for a tool's HTTP requests, prepared once at load.
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use toolcell_policy::Grants;

use super::inject::Injector;
use super::tls::Tls;
use crate::secrets::Secrets;
use crate::wasi::grant_problem::GrantProblem;
use crate::wasi::net::Resolver;

/// Bytes of one `ca` file: all public authorities together take a quarter.
const CA_BYTES_MAX: u64 = 1 << 20;

/// The client for a tool's HTTP requests: rules, resolver, TLS settings and secrets.
pub(crate) struct ToolHttpClient {
    grants: Arc<Grants>,
    resolver: Arc<Resolver>,
    tls: Arc<Tls>,
    injector: Injector,
}

impl ToolHttpClient {
    /// This client, adding these secrets in place of its own.
    pub(crate) fn adding(&self, secrets: Arc<Secrets>) -> Arc<Self> {
        Arc::new(Self {
            grants: Arc::clone(&self.grants),
            resolver: Arc::clone(&self.resolver),
            tls: Arc::clone(&self.tls),
            injector: Injector::new(secrets),
        })
    }

    /// Reads the certificates that the grants name, relative to `folder`.
    ///
    /// # Errors
    /// Each file without a usable certificate.
    pub(crate) fn prepare(
        grants: &Arc<Grants>,
        folder: &Path,
        resolver: Arc<Resolver>,
        secrets: Arc<Secrets>,
    ) -> Result<Arc<Self>, Vec<GrantProblem>> {
        let mut problems = Vec::new();
        let mut pems = Vec::new();
        for file in grants.network().ca() {
            let problem = |message: String| GrantProblem {
                span: file.span(),
                message,
                hint: "`ca` names files of certificates in PEM form".to_owned(),
                is_value: false,
            };
            match read(&folder.join(file.path())) {
                Ok(pem) => match Tls::new(std::slice::from_ref(&pem)) {
                    Ok(_) => pems.push(pem),
                    Err((_, error)) => problems.push(problem(format!("the file {:?} {error}", file.path()))),
                },
                Err(error) => problems.push(problem(format!("the file {:?} cannot be read: {error}", file.path()))),
            }
        }
        match Tls::new(&pems) {
            Ok(tls) if problems.is_empty() => {
                let tls = Arc::new(tls);
                Ok(Arc::new(Self { grants: Arc::clone(grants), resolver, tls, injector: Injector::new(secrets) }))
            }
            _ => Err(problems),
        }
    }

    /// For grants without certificates of their own, and without secrets.
    pub(crate) fn plain(grants: &Arc<Grants>) -> Arc<Self> {
        let injector = Injector::new(Arc::default());
        let tls = Arc::new(Tls::public());
        Arc::new(Self { grants: Arc::clone(grants), resolver: Resolver::new(&[]), tls, injector })
    }

    /// Looks names up for its requests.
    pub(crate) fn resolver(&self) -> &Arc<Resolver> {
        &self.resolver
    }

    pub(super) const fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    pub(super) fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(super) const fn injector(&self) -> &Injector {
        &self.injector
    }
}

/// Reads a file of certificates without blocking, even on a FIFO or an empty file of the kernel's.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut pem = Vec::new();
    file.take(CA_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if u64::try_from(pem.len()).is_ok_and(|bytes| bytes <= CA_BYTES_MAX) {
        return Ok(pem);
    }
    Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge))
}
