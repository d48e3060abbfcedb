//! The devices that programs expect in `/dev`: null, zero, random and urandom. The host makes their
//! bytes itself and opens no device of the machine.
use bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::bindings::types::ErrorCode;
use super::handle::PIECE_BYTES_MAX;
use super::mount::{Inner, InnerKind};

/// The folder of the devices in a program's tree.
pub(super) const FOLDER: &str = "/dev";

/// Random bytes of one read: about 6 µs of the host's time. A read may return less than was asked
/// for.
const RANDOM_BYTES_MAX: usize = 4 << 10;

/// A device that a program may open. None needs a grant: WASI gives random bytes to every guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// Always at its end; accepts everything.
    Null,
    /// Endless zeros.
    Zero,
    /// Endless random bytes from the operating system. On Linux, both names mean the same.
    Random,
}

/// A device that a guest has opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenDevice {
    pub(super) device: Device,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// The entries of [`FOLDER`].
pub(super) fn entries() -> Vec<Inner> {
    let entries =
        [("null", Device::Null), ("random", Device::Random), ("urandom", Device::Random), ("zero", Device::Zero)];
    entries.map(|(name, device)| Inner { at: vec![name.to_owned()], what: InnerKind::Device(device) }).into()
}

impl Device {
    /// At most `length` bytes; empty at the end.
    pub(super) fn read(self, length: u64) -> Result<Vec<u8>, ErrorCode> {
        let asked = usize::try_from(length).unwrap_or(usize::MAX);
        match self {
            Self::Null => Ok(Vec::new()),
            Self::Zero => Ok(vec![0; asked.min(PIECE_BYTES_MAX)]),
            Self::Random => {
                let mut bytes = vec![0; asked.min(RANDOM_BYTES_MAX)];
                getrandom::fill(&mut bytes).map_err(|_| ErrorCode::Io)?;
                Ok(bytes)
            }
        }
    }
}

impl OpenDevice {
    pub(super) fn to_read(self) -> Result<Device, ErrorCode> {
        if self.reads { Ok(self.device) } else { Err(ErrorCode::BadDescriptor) }
    }

    pub(super) fn to_write(self) -> Result<Device, ErrorCode> {
        if self.writes { Ok(self.device) } else { Err(ErrorCode::BadDescriptor) }
    }
}

/// A device as a stream.
pub(super) struct DeviceStream(pub(super) Device);

impl InputStream for DeviceStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let failed = |code: ErrorCode| StreamError::LastOperationFailed(code.into());
        match self.0.read(size as u64).map_err(failed)? {
            bytes if bytes.is_empty() && size > 0 => Err(StreamError::Closed),
            bytes => Ok(bytes.into()),
        }
    }
}

impl OutputStream for DeviceStream {
    fn write(&mut self, _: Bytes) -> StreamResult<()> {
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PIECE_BYTES_MAX)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for DeviceStream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_is_bounded_whatever_is_asked_for() {
        assert!(Device::Null.read(u64::MAX).unwrap().is_empty());
        assert_eq!(Device::Zero.read(u64::MAX).unwrap(), vec![0; PIECE_BYTES_MAX]);
        assert_eq!(Device::Zero.read(3).unwrap(), [0, 0, 0]);
        assert_eq!(Device::Random.read(u64::MAX).unwrap().len(), RANDOM_BYTES_MAX);
        assert_ne!(Device::Random.read(32).unwrap(), Device::Random.read(32).unwrap());
    }

    #[test]
    fn the_stream_of_null_is_at_its_end_and_takes_all() {
        let mut null = DeviceStream(Device::Null);
        assert!(matches!(null.read(1), Err(StreamError::Closed)));
        assert!(null.read(0).unwrap().is_empty());
        assert!(null.write(Bytes::from_static(b"gone")).is_ok());
    }
}
