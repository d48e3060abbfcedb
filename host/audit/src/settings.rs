//! The settings of an audit.

/// The settings of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A file larger than this is closed and a new one begun; `None`: files grow without limit.
    pub rotation: Option<Rotation>,
    /// When records reach the disk.
    pub fsync: Fsync,
    /// The part of a call's arguments that is recorded.
    pub arguments: Arguments,
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

/// When records reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// When the operating system writes them, within seconds: a killed process loses nothing, a
    /// power failure the last seconds.
    #[default]
    Never,
    /// Each before the recorded action happens. Costs a wait for the disk per record.
    Always,
}

/// The part of a call's arguments that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arguments {
    /// Their SHA-256 and size: arguments may be private.
    #[default]
    Digest,
    /// Also their text, up to [`ARGUMENTS_BYTES_MAX`](crate::ARGUMENTS_BYTES_MAX).
    Values,
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
        Self {
            rotation: Some(Rotation::DEFAULT),
            fsync: Fsync::default(),
            arguments: Arguments::default(),
            uses: false,
            required: true,
        }
    }
}
