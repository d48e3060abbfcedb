//! The other end of the baselines: this program as a child that returns its input. It does no work
//! of its own, so a round trip with it costs only the machine's own time. It can also be the server
//! that guests send requests to.

use anyhow::Context as _;
use rustix::io::{read, write};
use rustix::stdio::{stdin, stdout};
use toolcell_tests::loopback::HttpServer;

use crate::sdk;

/// The capacity of a pipe.
const BLOCK_BYTES: usize = 64 * 1024;

/// The behaviour of the child.
#[derive(Clone, Copy)]
pub enum Native {
    /// Returns all input until it ends.
    Echo,
    /// Returns the first line and ends, as a process spawned for one call does.
    Once,
    /// Prints its port in a line and serves HTTP there until its input ends.
    Server,
    /// Reads definitions of tools from a line and prints its port in another. Then it serves them
    /// as the official SDK does.
    Sdk,
}

impl Native {
    /// The flag that starts this program as that child.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Echo => "--native-echo",
            Self::Once => "--native-once",
            Self::Server => "--native-server",
            Self::Sdk => "--native-sdk",
        }
    }

    /// The child that this flag starts.
    pub fn from_flag(flag: &str) -> Option<Self> {
        [Self::Echo, Self::Once, Self::Server, Self::Sdk].into_iter().find(|native| native.flag() == flag)
    }

    /// Runs as the child.
    ///
    /// # Errors
    /// Its input or output fails.
    pub fn run(self) -> anyhow::Result<()> {
        if matches!(self, Self::Sdk) {
            let mut definitions = String::new();
            std::io::stdin().read_line(&mut definitions)?;
            return sdk::serve(&definitions, |port| write_all(format!("{port}\n").as_bytes()));
        }
        let server = matches!(self, Self::Server).then(HttpServer::start);
        if let Some(server) = &server {
            write_all(format!("{}\n", server.port()).as_bytes())?;
        }
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
