//! Paths of the control sockets of a manifest's processes.
//!
//! Several processes may serve one manifest, one for each client, so each has a socket of its own.
//! Its name has a digest of the manifest's path as written, a digest of its real path when the
//! process started, and the process id. Commands find it by either digest, so another spelling of
//! the path works, and so does a path with a swapped link (as Kubernetes does it). A command that
//! finds a socket of an ended process removes it.
//!
//! | folder | who may ask |
//! |---|---|
//! | of a user | this user, and root |
//! | that the service manager gave the process | also members of its group, where its mode lets them in |
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use toolcell_sandbox::ComponentDigest;

use crate::machine::user_folder;

/// Characters of each digest in a socket's name. A socket's path may have 107 bytes in all.
const NAME_CHARS: usize = 16;

/// Most bytes of a socket's path, by `unix(7)`, without its terminator.
pub const PATH_BYTES_MAX: usize = 107;

/// The folder of the packaged service, which every user may search.
const SERVICE_FOLDER: &str = "/run/toolcell";

/// The variable in which systemd names the folders of `RuntimeDirectory=`.
const GIVEN_FOLDERS: &str = "RUNTIME_DIRECTORY";

/// Modes of a socket: only its user may connect, or its group as well.
const OWN_MODE: u32 = 0o600;
const GROUP_MODE: u32 = 0o660;

/// Path of the control socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ControlSocket {
    /// A name in the usual folder of this user: see `folders`.
    #[default]
    Usual,
    /// This path.
    At(PathBuf),
    /// No socket.
    Off,
}

impl FromStr for ControlSocket {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "" => Self::Usual,
            "off" => Self::Off,
            path => Self::At(path.into()),
        })
    }
}

/// Names of the sockets of one manifest's processes.
#[derive(Clone, Debug)]
pub struct SocketPaths {
    /// Folders in which processes of this user put sockets; this process uses the first.
    folders: Vec<PathBuf>,
    /// Digest of the path as written, made absolute.
    written: String,
    /// Digest of the real path.
    real: String,
}

impl SocketPaths {
    /// Sockets of this manifest; `None` if the user has neither a runtime folder nor a state
    /// folder.
    pub fn of(manifest: &Path) -> Option<Self> {
        let folders = folders();
        if folders.is_empty() {
            return None;
        }
        let written = std::path::absolute(manifest).ok()?;
        let real = manifest.canonicalize().unwrap_or_else(|_| written.clone());
        Some(Self { folders, written: name_of(&written)?, real: name_of(&real)? })
    }

    /// Path of this process's socket; creates a missing folder. `Err` is one sentence.
    pub fn own(&self) -> Result<PathBuf, String> {
        let folder = self.folders.first().ok_or("this user has no folder for it")?;
        if given_folder().as_ref() != Some(folder) {
            make_folder(folder)?;
        }
        Ok(folder.join(format!("{}-{}-{}.sock", self.written, self.real, std::process::id())))
    }

    /// Sockets of this manifest's running processes, sorted. Those of ended processes are removed.
    pub fn running(&self) -> Vec<PathBuf> {
        let others = Some(PathBuf::from(SERVICE_FOLDER)).filter(|folder| !self.folders.contains(folder));
        let folders = self.folders.iter().chain(&others);
        let listings = folders.filter(|folder| is_trusted(folder)).map(fs::read_dir);
        let entries = listings.flatten().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| self.has(name)));
        let sockets = named.map(|entry| entry.path()).filter(|path| is_socket(path));
        let mut paths: Vec<PathBuf> = sockets.filter(|path| !remove_if_dead(path)).collect();
        paths.sort();
        paths
    }

    /// The folder of the packaged service, if this user may not enter it.
    pub fn closed() -> Option<PathBuf> {
        let listed = fs::read_dir(SERVICE_FOLDER);
        let is_closed = listed.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        is_closed.then(|| SERVICE_FOLDER.into())
    }

    /// True if a socket of this name belongs to this manifest.
    fn has(&self, name: &str) -> bool {
        let Some(name) = name.strip_suffix(".sock") else { return false };
        let mut parts = name.split('-');
        parts.next() == Some(&self.written) || parts.next() == Some(&self.real)
    }
}

/// Folders of this user's sockets: the one that the environment names, and the usual ones. Clients
/// often start a server without `XDG_RUNTIME_DIR`, so commands may see a different environment.
pub fn folders() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = user_folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("run"));
    let usual_runtime = format!("/run/user/{}", rustix::process::geteuid().as_raw());
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let candidates = [
        given_folder(),
        runtime.map(|folder| folder.join("toolcell")),
        state,
        Some(Path::new(&usual_runtime).join("toolcell")),
        home.map(|home| home.join(".local/state/toolcell/run")),
    ];
    let mut folders = Vec::new();
    for folder in candidates.into_iter().flatten() {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The folder that the service manager gave this process. The manager decides who may enter it.
fn given_folder() -> Option<PathBuf> {
    let given = std::env::var_os(GIVEN_FOLDERS)?;
    let folder = std::env::split_paths(&given).next()?;
    Some(folder).filter(|folder| folder.is_absolute())
}

/// The start of a path's digest.
fn name_of(path: &Path) -> Option<String> {
    let digest = ComponentDigest::of(path.as_os_str().as_encoded_bytes()).to_string();
    digest.strip_prefix("sha256:").and_then(|digits| digits.get(..NAME_CHARS)).map(str::to_owned)
}

/// Connects to a socket. Fails instead of waiting where a stopped process has let its queue of
/// connections fill up.
///
/// # Errors
/// As the system says; [`io::ErrorKind::WouldBlock`] if the queue is full.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The file of a socket that this process listens on. When dropped, it is removed, unless another
/// file has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// The file that this process has just made at this path.
    ///
    /// # Errors
    /// As the system says.
    pub fn made_at(path: PathBuf) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(&path)?;
        Ok(Self { path, device: metadata.dev(), inode: metadata.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// True if a socket is at this path itself, and not behind a link.
pub fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Removes a socket without a listener, if this user may. True if a new one may take the path.
/// Files of other kinds and links stay: connecting to them is refused as well.
pub fn remove_if_dead(path: &Path) -> bool {
    if !is_socket(path) {
        return fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    }
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            true
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        _ => false,
    }
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    check_folder(folder).map(drop)
}

/// Checks that only this user may enter, since anyone who connects can approve components. A folder
/// of the service manager may be open to a group. Returns the mode of a socket in it.
pub fn check_folder(folder: &Path) -> Result<u32, String> {
    let shown = folder.display();
    let metadata = fs::symlink_metadata(folder).map_err(|error| format!("{shown}: {error}"))?;
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if is_own && metadata.mode() & 0o077 == 0 {
        return Ok(OWN_MODE);
    }
    let is_given = given_folder().is_some_and(|given| given == folder);
    let is_of_group = metadata.gid() == rustix::process::getegid().as_raw();
    match metadata.mode() & 0o077 {
        _ if !is_own || !is_given => Err(format!("{shown} is not a folder that only this user can enter")),
        0o050 if is_of_group => Ok(GROUP_MODE),
        mode if mode & 0o022 == 0 => Ok(OWN_MODE),
        _ => Err(format!("{shown} is a folder that others can write to")),
    }
}

/// True if only the owner of a folder can put sockets there.
fn is_trusted(folder: &Path) -> bool {
    owner_of(folder).is_some()
}

/// The user whose process listens at the sockets of a folder; `None` if others could as well.
pub fn owner_of(folder: &Path) -> Option<u32> {
    let metadata = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    let own = rustix::process::geteuid().as_raw();
    // A third user's folder could hold a socket of that user's process.
    let is_asked = own == metadata.uid() || own == 0 || folder == Path::new(SERVICE_FOLDER);
    (is_asked && metadata.mode() & 0o022 == 0).then(|| metadata.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn place(folder: &Path) -> SocketPaths {
        SocketPaths { folders: vec![folder.to_owned()], written: "0123".to_owned(), real: "abcd".to_owned() }
    }

    #[test]
    fn sockets_of_processes_that_are_gone_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        let place = place(&folder);
        let own = place.own().unwrap();
        drop(UnixListener::bind(&own).unwrap());
        let other = folder.join("9999-9999-7.sock");
        drop(UnixListener::bind(&other).unwrap());
        let running = ["0123-9999-8.sock", "9999-abcd-7.sock"].map(|name| folder.join(name));
        let _listeners = running.clone().map(|path| UnixListener::bind(path).unwrap());
        assert_eq!(place.running(), running, "by either digest");
        assert!(!own.exists());
        assert!(other.exists(), "another manifest's is not touched");
    }

    #[test]
    fn only_sockets_without_a_listener_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "precious").unwrap();
        drop(UnixListener::bind(at("dead")).unwrap());
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("dead"), at("link-to-socket")).unwrap();
        std::os::unix::fs::symlink(at("nothing"), at("dangling")).unwrap();
        let _listener = UnixListener::bind(at("alive")).unwrap();
        for kept in ["file", "link", "link-to-socket", "dangling", "alive"] {
            assert!(!remove_if_dead(&at(kept)), "{kept}");
            assert!(fs::symlink_metadata(at(kept)).is_ok(), "{kept}");
        }
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
        assert!(remove_if_dead(&at("dead")) && !at("dead").exists());
        assert!(remove_if_dead(&at("dead")), "nothing is there");
        let place = place(root.path());
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(at("0123-abcd-7.sock"), "not a process").unwrap();
        assert_eq!(place.running(), [""; 0].map(PathBuf::from));
        assert!(at("0123-abcd-7.sock").exists());
    }

    #[test]
    fn a_socket_file_is_removed_by_its_own_process_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("socket");
        let _first = UnixListener::bind(&path).unwrap();
        let own = SocketFile::made_at(path.clone()).unwrap();
        // Kept under another name, so that its inode is not used again.
        fs::rename(&path, root.path().join("moved")).unwrap();
        let _second = UnixListener::bind(&path).unwrap();
        drop(own);
        assert!(path.exists(), "another process listens there");
        drop(SocketFile::made_at(path.clone()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_others_can_enter_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        let place = place(&folder);
        place.own().unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(place.own().unwrap_err().contains("only this user"));
        assert_eq!(place.running(), [""; 0].map(PathBuf::from));
        fs::remove_dir(&folder).unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        assert!(place.own().is_err(), "a link leads where somebody else wants");
    }

    #[test]
    fn the_command_line_names_a_path_or_turns_it_off() {
        assert_eq!("off".parse(), Ok(ControlSocket::Off));
        assert_eq!("/run/x.sock".parse(), Ok(ControlSocket::At("/run/x.sock".into())));
    }
}
