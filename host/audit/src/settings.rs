//! The settings of an audit.

/// The settings of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A file larger than this is closed and a new one begun; `None`: files grow without limit.
    pub rotation: Option<Rotation>,
    /// True: each record is on the disk before the recorded action happens, which costs a wait for
    /// the disk. False: the operating system writes them within seconds: a killed process loses
    /// nothing, a power failure the last seconds.
    pub synced: bool,
    /// True: a call's arguments are recorded as text, up to
    /// [`ARGUMENTS_BYTES_MAX`](crate::ARGUMENTS_BYTES_MAX). False: only their SHA-256 and size,
    /// because arguments may be private.
    pub arguments: bool,
    /// True: the end of a call names the grants that it used through the host. Their paths may be
    /// private.
    pub uses: bool,
    /// True: what cannot be recorded is refused. False: missing records are counted, and the count
    /// is recorded once that is possible.
    pub required: bool,
}

/// When a file is closed, and how many closed ones are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The largest size of a file, in bytes; a file with a single record may be larger.
    pub file_bytes_max: u64,
    /// The number of closed files that are kept: `FILE.1` is the newest. At most
    /// [`FILES_MAX`](crate::FILES_MAX); with 0 a full file is removed once the next one has begun.
    /// If several processes write, all chains together keep this many bytes, and each at least one
    /// closed file.
    pub keep: u32,
}

impl Rotation {
    /// Bytes of all closed files, of all chains together.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.file_bytes_max.saturating_mul(self.keep.into())
    }

    /// Files of 64 MiB, about 100,000 calls each, and eight of them closed.
    pub const DEFAULT: Self = Self { file_bytes_max: 64 << 20, keep: 8 };
}

impl Default for Settings {
    /// Rotation at [`Rotation::DEFAULT`], no fsync, digests of arguments, no uses; records are
    /// required.
    fn default() -> Self {
        Self { rotation: Some(Rotation::DEFAULT), synced: false, arguments: false, uses: false, required: true }
    }
}
