//! The other end of the baselines: this program as a child that gives back what it reads. It does no work of its own,
//! so what a round trip with it costs is what the machine takes for itself.

use anyhow::Context as _;
use rustix::io::{read, write};
use rustix::stdio::{stdin, stdout};

/// What a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// How the child behaves.
#[derive(Clone, Copy)]
pub enum Native {
    /// Gives back whatever comes, until its input ends.
    Echo,
    /// Gives back the first line and ends, as a process that is spawned for one call does.
    Once,
}

impl Native {
    /// The flag that makes this program one.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Echo => "--native-echo",
            Self::Once => "--native-once",
        }
    }

    /// What this flag means.
    pub fn from_flag(flag: &str) -> Option<Self> {
        [Self::Echo, Self::Once].into_iter().find(|native| native.flag() == flag)
    }

    /// Is the child.
    ///
    /// # Errors
    /// Its input or output fails.
    pub fn run(self) -> anyhow::Result<()> {
        let mut block = vec![0_u8; BLOCK_BYTES];
        loop {
            let bytes = read(stdin(), &mut block)?;
            let read = block.get(..bytes).context("more was read than there is room for")?;
            let ends = read.last().is_none_or(|last| *last == b'\n' && matches!(self, Self::Once));
            write_all(read)?;
            if ends {
                return Ok(());
            }
        }
    }
}

fn write_all(mut bytes: &[u8]) -> anyhow::Result<()> {
    while !bytes.is_empty() {
        let written = write(stdout(), bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
