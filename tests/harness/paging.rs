//! Memory pressure for one process: the kernel pages it out repeatedly, into swap space of the
//! test's own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Bytes of swap space, more than a host with a dozen calls of four MiB has.
const SWAP_BYTES: usize = 256 << 20;

/// Pages a process out until it is dropped.
#[derive(Debug)]
pub struct Paging {
    pager: Child,
    _swap: Swap,
}

/// A swap file. Dropping this removes it.
#[derive(Debug)]
struct Swap(PathBuf);

impl Paging {
    /// Begins to page out, with a swap file in `folder`. Returns once each page was paged out.
    /// `Err` gives the reason why this machine does not allow it.
    pub fn of(process_id: u32, folder: &Path) -> Result<Self, String> {
        let swap = Swap::on(folder)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/pageout.py");
        let mut pager = Command::new("python3")
            .arg(script)
            .arg(process_id.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("python3: {error}"))?;
        let mut line = String::new();
        let told = pager.stdout.take().map(BufReader::new).map(|mut out| out.read_line(&mut line));
        if matches!(told, Some(Ok(read)) if read > 0) {
            return Ok(Self { pager, _swap: swap });
        }
        let mut said = String::new();
        let _ = pager.stderr.take().map(|mut err| err.read_to_string(&mut said));
        let _ = pager.wait();
        Err(said)
    }

    /// True if it still pages out.
    pub fn goes_on(&mut self) -> bool {
        matches!(self.pager.try_wait(), Ok(None))
    }
}

impl Drop for Paging {
    fn drop(&mut self) {
        // The pager ends with its input.
        drop(self.pager.stdin.take());
        let _ = self.pager.wait();
    }
}

impl Swap {
    fn on(folder: &Path) -> Result<Self, String> {
        let path = folder.join("swap");
        // The bytes are really written, since swap space must have no holes.
        std::fs::write(&path, vec![0; SWAP_BYTES]).map_err(|error| error.to_string())?;
        run(Command::new("chmod").arg("600").arg(&path))?;
        run(Command::new("mkswap").arg(&path))?;
        run(Command::new("swapon").arg(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(&self.0).status();
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}
