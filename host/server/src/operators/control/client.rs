//! Client side of the control socket.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::message::{ANSWER_BYTES_MAX, Envelope, Request, VERSION};
use crate::machine::peer::peer;
use crate::machine::socket_paths::{ControlSocket, SocketPaths, owner_of};

/// The manifest of the packaged service.
const SERVICE_MANIFEST: &str = "/etc/toolcell/toolcell.toml";

/// The default manifest.
const USUAL_MANIFEST: &str = "toolcell.toml";

/// Longest wait for an answer: a reload compiles first, about a second per megabyte.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(600);

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// No process serves the manifest.
    #[error("no process of this user serves {}", .0.display())]
    Nobody(PathBuf),
    /// The service's sockets are in a folder that this user may not enter.
    #[error("no process of this user serves {}, and {} is closed to this user", manifest.display(), folder.display())]
    Closed {
        /// The manifest.
        manifest: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A socket exists, but the exchange failed.
    #[error("{}: {error}", path.display())]
    Failed {
        /// The socket.
        path: PathBuf,
        /// Reason.
        error: std::io::Error,
    },
}

impl Unreachable {
    /// Advice to the operator.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nobody(_) => Some("start one with `toolcell serve`, or name its socket with --control"),
            Self::Closed { .. } => Some("to ask the service, run this with sudo or as a member of the folder's group"),
            Self::Failed { .. } => None,
        }
    }
}

/// Asks every process that serves this manifest, one after the other.
pub fn ask_all(arg: &ControlSocket, manifest: &Path, request: &Request) -> Result<Vec<Value>, Unreachable> {
    sockets(arg, manifest)?.iter().map(|path| ask(path, request, ANSWERS_WITHIN)).collect()
}

/// The sockets of the processes that serve this manifest; at least one.
///
/// # Errors
/// No process serves it.
pub fn sockets(arg: &ControlSocket, manifest: &Path) -> Result<Vec<PathBuf>, Unreachable> {
    let paths = match arg {
        ControlSocket::At(path) => vec![path.clone()],
        ControlSocket::Usual | ControlSocket::Off => {
            let manifest = served(manifest);
            SocketPaths::of(manifest).map(|place| place.running()).unwrap_or_default()
        }
    };
    if !paths.is_empty() {
        return Ok(paths);
    }
    let is_service = *arg == ControlSocket::Usual && served(manifest) == Path::new(SERVICE_MANIFEST);
    let manifest = manifest.to_owned();
    Err(match SocketPaths::closed().filter(|_| is_service) {
        Some(folder) => Unreachable::Closed { manifest, folder },
        None => Unreachable::Nobody(manifest),
    })
}

/// The manifest in question: if none is named and there is none here, that of the packaged service.
pub fn served(manifest: &Path) -> &Path {
    let is_meant = manifest == Path::new(USUAL_MANIFEST) && !manifest.exists();
    if is_meant { Path::new(SERVICE_MANIFEST) } else { manifest }
}

/// Asks the process at this socket. Waits this long for each part of its answer.
///
/// # Errors
///
/// The exchange failed.
pub fn ask(path: &Path, request: &Request, within: Duration) -> Result<Value, Unreachable> {
    converse(path, request, within).map_err(|error| Unreachable::Failed { path: path.to_owned(), error })
}

fn converse(path: &Path, request: &Request, within: Duration) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    let listens = peer(&stream)?.uid;
    let is_owner = || path.parent().and_then(owner_of) == Some(listens.as_raw());
    if listens != rustix::process::geteuid() && !is_owner() {
        return Err(std::io::Error::other("another user's process listens there"));
    }
    stream.set_read_timeout(Some(within))?;
    let mut line = serde_json::to_vec(&Envelope { toolcell: VERSION, request: request.clone() })?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut answer)?;
    if answer.is_empty() {
        return Err(std::io::Error::other("it ended without an answer"));
    }
    Ok(serde_json::from_slice(&answer)?)
}
