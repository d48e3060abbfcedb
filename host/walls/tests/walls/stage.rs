//! The other side of the attempts: folders, listeners, a secret.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::PathBuf;

use tempfile::TempDir;
use toolcell_walls::process::Command;

/// The first argument of a process that this binary starts of itself.
pub(crate) const CHILD: &str = "child-of-the-walls-test";
/// In the ungranted folder, and in the parent's environment.
pub(crate) const SECRET: &str = "a secret";

/// Where an attempt finds things.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) listener: SocketAddr,
    pub(crate) datagrams: SocketAddr,
    /// The process that set the stage.
    pub(crate) host: usize,
}

/// The things that attempts are made at.
pub(crate) struct Stage {
    root: TempDir,
    listener: TcpListener,
    datagrams: UdpSocket,
    _abstract_listener: UnixListener,
}

/// The abstract socket that a parent of this id listens at.
pub(crate) fn abstract_name(parent: usize) -> String {
    format!("toolcell-walls-test-{parent}")
}

impl Stage {
    pub(crate) fn set() -> io::Result<Self> {
        let root = TempDir::new()?;
        for name in ["readable", "writable", "ungranted"] {
            fs::create_dir(root.path().join(name))?;
        }
        fs::write(root.path().join("readable/file"), "for all")?;
        fs::write(root.path().join("ungranted/secret"), SECRET)?;
        // Attempts are made as another user too, and the file system must not be what stops them.
        for name in ["", "readable", "writable", "ungranted"] {
            let everyone = fs::Permissions::from_mode(0o777);
            fs::set_permissions(root.path().join(name), everyone)?;
        }
        for name in ["readable/file", "ungranted/secret"] {
            fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(0o666))?;
        }
        let own = usize::try_from(std::process::id()).map_err(io::Error::other)?;
        let name = UnixAddr::from_abstract_name(abstract_name(own))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            root,
            listener,
            datagrams: UdpSocket::bind("127.0.0.1:0")?,
            _abstract_listener: UnixListener::bind_addr(&name)?,
        })
    }

    /// This binary again.
    pub(crate) fn child(&self, arguments: &[&str]) -> io::Result<Command> {
        // Connections of earlier children would fill the queue.
        while self.listener.accept().is_ok() {}
        let place = [
            self.root.path().display().to_string(),
            self.listener.local_addr()?.to_string(),
            self.datagrams.local_addr()?.to_string(),
            std::process::id().to_string(),
        ];
        Ok(this_binary(arguments.iter().map(|word| (*word).to_owned()).chain(place)))
    }
}

/// This binary again, with these arguments.
pub(crate) fn this_binary(arguments: impl Iterator<Item = String>) -> Command {
    let command = Command::this_program("toolcell-walls-test").expect("this program").argument(CHILD);
    arguments.fold(command, Command::argument)
}

impl Place {
    /// The last four arguments of a child.
    pub(crate) fn of(arguments: &[String]) -> Option<Self> {
        let [.., root, listener, datagrams, host] = arguments else { return None };
        Some(Self {
            root: root.into(),
            listener: listener.parse().ok()?,
            datagrams: datagrams.parse().ok()?,
            host: host.parse().ok()?,
        })
    }
}
