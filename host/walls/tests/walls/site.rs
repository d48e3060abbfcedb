//! The things that an attempt finds in its process.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};
use toolcell_walls::kernel::{Access, Entered, Folder, Rights, Wall, enter};

use crate::stage::Place;

/// Bytes that become writable after the seal, at most.
pub(crate) const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Descriptors.
pub(crate) const FILES_MAX: u64 = 40;
/// Threads, where their number is bounded.
pub(crate) const THREADS_MAX: u64 = 8;
/// Bytes of a file.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;

/// A process behind walls, with what its host would have handed it.
pub(crate) struct Site {
    /// A folder that may be read.
    pub(crate) readable: OwnedFd,
    /// A folder that may be written to.
    pub(crate) writable: OwnedFd,
    /// A folder that is granted neither way, though a descriptor of it got here.
    pub(crate) ungranted: OwnedFd,
    /// A file of the readable folder, open for reading.
    pub(crate) file: File,
    /// A file in memory, as code is that no cache keeps. It may be read.
    pub(crate) in_memory: OwnedFd,
    /// A file without a name on a disk, as code is that another process replaced. It may be read.
    pub(crate) replaced: File,
    /// A connection that the host made.
    pub(crate) connected: TcpStream,
    /// Datagrams to one address, by the host's choice.
    pub(crate) datagrams: UdpSocket,
    /// Sockets that are not connected, though descriptors of them got here.
    pub(crate) loose: OwnedFd,
    pub(crate) loose_unix: OwnedFd,
    /// A listener of the parent's.
    pub(crate) listener: SocketAddr,
    /// The parent.
    pub(crate) parent: usize,
    pub(crate) older_thread: Option<OlderThread>,
}

/// A file that had a name, and lies in no granted folder.
fn unnamed() -> io::Result<File> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&[0; 4096])?;
    File::open(file.path())
}

/// One thing that is tried.
pub(crate) type Attempt = fn(&Site) -> io::Result<()>;

impl Site {
    /// The things that a host hands over, before the walls are built.
    pub(crate) fn open(place: &Place) -> io::Result<Self> {
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        datagrams.connect(place.datagrams)?;
        let socket = |family| rustix::net::socket(family, SocketType::STREAM, None);
        Ok(Self {
            readable: folder(&place.root.join("readable"))?,
            writable: folder(&place.root.join("writable"))?,
            ungranted: folder(&place.root.join("ungranted"))?,
            file: File::open(place.root.join("readable/file"))?,
            in_memory: rustix::fs::memfd_create("code", rustix::fs::MemfdFlags::CLOEXEC)?,
            replaced: unnamed()?,
            connected: TcpStream::connect(place.listener)?,
            datagrams,
            loose: socket(AddressFamily::INET)?,
            loose_unix: socket(AddressFamily::UNIX)?,
            listener: place.listener,
            parent: place.host,
            older_thread: None,
        })
    }

    /// Builds the walls before the seal.
    pub(crate) fn enter(&self, without: &[Wall], threads_max: Option<u64>) -> Entered {
        let stdin = io::stdin();
        let folders = [
            Folder { descriptor: self.readable.as_fd(), access: Access::Read },
            Folder { descriptor: self.writable.as_fd(), access: Access::Write },
            Folder { descriptor: self.in_memory.as_fd(), access: Access::Read },
            Folder { descriptor: self.replaced.as_fd(), access: Access::Read },
        ];
        enter(&Rights {
            link: Some(stdin.as_fd()),
            folders: &folders,
            memory_bytes_max: MEMORY_BYTES_MAX as u64,
            threads_max,
            files_max: FILES_MAX,
            file_bytes_max: Some(FILE_BYTES_MAX as u64),
            without,
        })
    }
}

fn folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// A descriptor as an argument of a call.
pub(crate) fn number(descriptor: &impl AsRawFd) -> usize {
    usize::try_from(descriptor.as_raw_fd()).unwrap_or(usize::MAX)
}

/// A thread that is started before the seal, and tries things after it.
pub(crate) struct OlderThread {
    attempts: Sender<fn() -> io::Result<()>>,
    answers: Receiver<io::Result<()>>,
}

impl OlderThread {
    pub(crate) fn start() -> Self {
        let (attempts, attempts_there) = channel::<fn() -> io::Result<()>>();
        let (answers_there, answers) = channel();
        // It ends with the process, or when the other side is dropped.
        std::thread::spawn(move || {
            let _ = answers_there.send(Ok(()));
            while let Ok(attempt) = attempts_there.recv() {
                let _ = answers_there.send(attempt());
            }
        });
        // An attempt may take the memory that a thread needs to start.
        let _ = answers.recv();
        Self { attempts, answers }
    }

    pub(crate) fn try_there(&self, attempt: fn() -> io::Result<()>) -> io::Result<()> {
        self.attempts.send(attempt).map_err(io::Error::other)?;
        self.answers.recv().map_err(io::Error::other)?
    }
}
