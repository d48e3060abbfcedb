//! The other end of the baselines: this program as a child that gives back what it reads. It does
//! no work of its own, so what a round trip with it costs is what the machine takes for itself. Or
//! as the server that guests' requests go to.

use anyhow::Context as _;
use rustix::io::{read, write};
use rustix::stdio::{stdin, stdout};
use toolcell_tests::loopback::HttpServer;

use crate::sdk;

/// What a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// How the child behaves.
#[derive(Clone, Copy)]
pub enum Native {
    /// Gives back whatever comes, until its input ends.
    Echo,
    /// Gives back the first line and ends, as a process that is spawned for one call does.
    Once,
    /// Says its port in a line, and answers HTTP there until its input ends.
    Server,
    /// Reads definitions of tools from a line, says its port in another, and serves them as the
    /// official SDK does.
    Sdk,
}

impl Native {
    /// The flag that makes this program one.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Echo => "--native-echo",
            Self::Once => "--native-once",
            Self::Server => "--native-server",
            Self::Sdk => "--native-sdk",
        }
    }

    /// What this flag means.
    pub fn from_flag(flag: &str) -> Option<Self> {
        [Self::Echo, Self::Once, Self::Server, Self::Sdk].into_iter().find(|native| native.flag() == flag)
    }

    /// Is the child.
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
