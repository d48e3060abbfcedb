//! Refusals of operations on files: WASI's error codes, and the mapping from the operating system's
//! errors. No texts: a guest reads only the code, so it cannot contain a path of the host.
use rustix::io::Errno;
use toolcell_policy::Denial;
use wasmtime::component::ResourceTableError;

use super::bindings::types::ErrorCode;

/// Why an operation is refused.
#[derive(Debug)]
pub enum Refused {
    /// The guest gets an error code.
    Code(ErrorCode),
    /// The guest gets an error code, and the caller a denial by the manifest.
    Denied(ErrorCode, Box<Denial>),
    /// The guest broke the rules of the interface, and ends.
    Trap(wasmtime::Error),
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self::Code(code(&error))
    }
}

impl From<ResourceTableError> for Refused {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

/// WASI's name for an error of the operating system.
pub(crate) fn code(error: &std::io::Error) -> ErrorCode {
    let Some(raw) = error.raw_os_error() else {
        return match error.kind() {
            std::io::ErrorKind::NotFound => ErrorCode::NoEntry,
            // cap-std returns this for a path that leads out.
            std::io::ErrorKind::PermissionDenied => ErrorCode::NotPermitted,
            std::io::ErrorKind::AlreadyExists => ErrorCode::Exist,
            std::io::ErrorKind::InvalidInput => ErrorCode::Invalid,
            _ => ErrorCode::Io,
        };
    };
    match Errno::from_raw_os_error(raw) {
        Errno::ACCESS => ErrorCode::Access,
        Errno::AGAIN => ErrorCode::WouldBlock,
        Errno::ALREADY => ErrorCode::Already,
        Errno::BADF => ErrorCode::BadDescriptor,
        Errno::BUSY => ErrorCode::Busy,
        Errno::DEADLK => ErrorCode::Deadlock,
        Errno::DQUOT => ErrorCode::Quota,
        Errno::EXIST => ErrorCode::Exist,
        Errno::FBIG => ErrorCode::FileTooLarge,
        Errno::ILSEQ => ErrorCode::IllegalByteSequence,
        Errno::INPROGRESS => ErrorCode::InProgress,
        Errno::INTR => ErrorCode::Interrupted,
        Errno::INVAL => ErrorCode::Invalid,
        Errno::ISDIR => ErrorCode::IsDirectory,
        Errno::LOOP => ErrorCode::Loop,
        Errno::MLINK => ErrorCode::TooManyLinks,
        Errno::MSGSIZE => ErrorCode::MessageSize,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        Errno::NODEV => ErrorCode::NoDevice,
        Errno::NOENT => ErrorCode::NoEntry,
        Errno::NOLCK => ErrorCode::NoLock,
        // WASI has no code for a lack of descriptors. Both are a lack of the host's room for the
        // call.
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ErrorCode::InsufficientMemory,
        Errno::NOSPC => ErrorCode::InsufficientSpace,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::NOTEMPTY => ErrorCode::NotEmpty,
        Errno::NOTRECOVERABLE => ErrorCode::NotRecoverable,
        Errno::NOTSUP | Errno::NOSYS => ErrorCode::Unsupported,
        Errno::NOTTY => ErrorCode::NoTty,
        Errno::NXIO => ErrorCode::NoSuchDevice,
        Errno::OVERFLOW => ErrorCode::Overflow,
        Errno::PERM => ErrorCode::NotPermitted,
        Errno::PIPE => ErrorCode::Pipe,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::SPIPE => ErrorCode::InvalidSeek,
        Errno::TXTBSY => ErrorCode::TextFileBusy,
        Errno::XDEV => ErrorCode::CrossDevice,
        _ => ErrorCode::Io,
    }
}
