//! Client side of the control socket.
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{ANSWER_BYTES_MAX, Envelope, Request, VERSION};
use crate::machine::peer::peer;
use crate::machine::socket_paths::{ControlSocket, SocketPaths, connect, owner_of};

/// The manifest of the packaged service.
const SERVICE_MANIFEST: &str = "/etc/toolcell/toolcell.toml";

/// The default manifest.
const USUAL_MANIFEST: &str = "toolcell.toml";

/// Longest wait for the end of a reload, which compiles first: about a second per megabyte.
const RELOADED_WITHIN: Duration = Duration::from_secs(600);

/// Longest wait for any other answer. It is made in milliseconds; a busy machine needs seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

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
    /// A process listens, but does not answer in time.
    #[error("process {pid} does not answer")]
    Silent {
        /// The process.
        pid: u32,
    },
    /// A socket exists, but the exchange failed.
    #[error("{}: {error}", path.display())]
    Failed {
        /// The socket.
        path: PathBuf,
        /// Reason.
        error: io::Error,
    },
}

impl Unreachable {
    /// Advice to the operator.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nobody(_) => Some("start one with `toolcell serve`, or name its socket with --control"),
            Self::Closed { .. } => Some("to ask the service, run this with sudo or as a member of the folder's group"),
            Self::Silent { .. } => Some("it may be stopped or stuck: end it and start it again"),
            Self::Failed { .. } => None,
        }
    }

    /// In place of the answer that did not come, in the form of a process's own errors.
    #[must_use]
    pub fn answer(&self) -> Value {
        let mut answer = json!({"error": self.to_string()});
        if let Some(answer) = answer.as_object_mut() {
            if let Self::Silent { pid } = self {
                answer.insert("pid".to_owned(), json!(pid));
            }
            answer.extend(self.hint().map(|hint| ("hint".to_owned(), json!(hint))));
        }
        answer
    }
}

/// Asks every process that serves this manifest, one after the other. An
/// [error](Unreachable::answer) stands in the place of an answer that does not come.
///
/// # Errors
/// No process serves it.
pub fn ask_all(arg: &ControlSocket, manifest: &Path, request: &Request) -> Result<Vec<Value>, Unreachable> {
    let paths = sockets(arg, manifest)?;
    Ok(paths.iter().map(|path| ask(path, request).unwrap_or_else(|error| error.answer())).collect())
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

/// The manifest in question: if none is named, there is none here and none from here is served,
/// that of the packaged service.
pub fn served(manifest: &Path) -> &Path {
    let is_here = || manifest.exists() || SocketPaths::of(manifest).is_some_and(|place| !place.running().is_empty());
    let is_meant = manifest == Path::new(USUAL_MANIFEST) && !is_here();
    if is_meant { Path::new(SERVICE_MANIFEST) } else { manifest }
}

/// Asks the process at this socket. Whether it answers at all is known within
/// seconds, though a reload takes longer.
///
/// # Errors
///
/// The exchange failed.
pub fn ask(path: &Path, request: &Request) -> Result<Value, Unreachable> {
    let answered = if reloads(request) {
        converse(path, &Request::LogLevel(None), ANSWERED_WITHIN).and_then(|_| converse(path, request, RELOADED_WITHIN))
    } else {
        converse(path, request, ANSWERED_WITHIN)
    };
    answered.map_err(|failure| match failure {
        ExchangeError::Silent(pid) => Unreachable::Silent { pid },
        ExchangeError::Io(error) => Unreachable::Failed { path: path.to_owned(), error },
    })
}

/// Whether the process answers only once it has reloaded its manifest.
fn reloads(request: &Request) -> bool {
    match request {
        Request::Reload | Request::Approve(_) | Request::Decide(_) => true,
        Request::Status | Request::Console | Request::Activity | Request::LogLevel(_) => false,
    }
}

/// Why an exchange over a socket failed.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    /// This process did not answer in time.
    #[error("process {0} does not answer")]
    Silent(u32),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Sends a request. Waits this long for each part of the answer.
fn converse(path: &Path, request: &Request, within: Duration) -> Result<Value, ExchangeError> {
    let mut stream = connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::other("its process does not answer"),
        _ => error,
    })?;
    let listens = peer(&stream)?;
    let is_owner = || path.parent().and_then(owner_of) == Some(listens.uid.as_raw());
    if listens.uid != rustix::process::geteuid() && !is_owner() {
        return Err(io::Error::other("another user's process listens there").into());
    }
    stream.set_read_timeout(Some(within))?;
    let mut line =
        serde_json::to_vec(&Envelope { toolcell: VERSION, request: request.clone() }).map_err(io::Error::from)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    let read = BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut answer);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ExchangeError::Silent(listens.pid),
        _ => error.into(),
    })?;
    if answer.is_empty() {
        return Err(io::Error::other("it ended without an answer").into());
    }
    Ok(serde_json::from_slice(&answer).map_err(io::Error::from)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_process_that_does_not_answer_is_named_and_waited_for_no_longer_than_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let error = converse(&path, &Request::Status, Duration::from_millis(10)).unwrap_err();
        assert!(matches!(error, ExchangeError::Silent(pid) if pid == std::process::id()), "{error}");
        let silent = Unreachable::Silent { pid: 7 };
        assert_eq!(silent.answer()["error"], "process 7 does not answer");
        assert_eq!(silent.answer()["pid"], 7);
    }
}
