//! Recorded calls: what a guest gets from the host is kept, and given to a guest again.
//!
//! Both stand where a component's imports are linked, so they know nothing of any interface. What
//! reaches a guest otherwise is its arguments alone.
//!
//! | file | holds |
//! |---|---|
//! | `relay.rs` | the component through which a recorded guest reaches the host |
//! | `linking.rs` | a component's imports, each with a function that records or replays |
//! | `direct.rs` | functions that are called without the relay |
//! | `recorder.rs` | a function of the host that is called and recorded |
//! | `player.rs` | a function that is answered from a tape |
//! | `comparison.rs` | what a component other than the recorded one asks for |
//! | `requests.rs` | headers and bodies of HTTP requests, as a guest builds them |
//! | `made_up.rs` | answers that no tape has |
//! | `values.rs` | values of the component model as JSON |
mod comparison;
mod direct;
mod linking;
mod made_up;
mod player;
mod recorder;
mod relay;
mod requests;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use linking::{NotRecordable, RecordingLink};
pub(crate) use player::{EndOfReplay, Player};
pub(crate) use recorder::Recorder;
pub use relay::{RelayError, component as relay};

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use toolcell_wall::tape::{self, TAPE_BYTES_MAX, TapeEntry, TapeUse};

/// The tape of a call, in its store.
pub(crate) enum CallTape {
    /// What the guest gets is kept.
    Recording(Recorder),
    /// The guest gets what was kept.
    Playing(Player),
}

/// A call that is recorded or replayed.
pub struct TapedCall {
    link: Arc<RecordingLink>,
    file: Arc<File>,
    does: TapeUse,
}

impl TapedCall {
    /// A call of a component with these links, which uses its tape so.
    pub(crate) fn new(link: Arc<RecordingLink>, file: Arc<File>, does: TapeUse) -> Self {
        Self { link, file, does }
    }

    pub(crate) fn link(&self) -> &Arc<RecordingLink> {
        &self.link
    }

    /// The tape for the call's store.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn tape(&self) -> Result<CallTape, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the call's recording: {error}");
        let is_strict = match self.does {
            TapeUse::Record => {
                let file = Arc::clone(&self.file);
                let relay = self.link.relay().ok_or_else(|| failed(&"its component has no relay"))?;
                return Ok(CallTape::Recording(Recorder::new(file, relay.clone())));
            }
            TapeUse::Replay => true,
            TapeUse::Compare => false,
        };
        let bytes = self.file.metadata().map_err(|error| failed(&error))?.len();
        if bytes > TAPE_BYTES_MAX {
            return Err(failed(&tape::TapeError::TooLarge));
        }
        let mut recorded = vec![0; usize::try_from(bytes).unwrap_or_default()];
        self.file.read_exact_at(&mut recorded, 0).map_err(|error| failed(&error))?;
        let entries = tape::read(&recorded).map_err(|error| failed(&error))?;
        Ok(CallTape::Playing(Player::new(entries, is_strict)))
    }
}

impl CallTape {
    /// Writes what waits to be written, if it records.
    pub(crate) fn flush(&self) {
        if let Self::Recording(recorder) = self {
            recorder.flush();
        }
    }

    /// Writes what waits to be written, if it records. Nothing follows it.
    pub(crate) fn end(&self) {
        if let Self::Recording(recorder) = self {
            recorder.end();
        }
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        match self {
            Self::Recording(recorder) => Some(recorder),
            Self::Playing(_) => None,
        }
    }

    fn player(&mut self) -> Option<&mut Player> {
        match self {
            Self::Playing(player) => Some(player),
            Self::Recording(_) => None,
        }
    }
}

/// The function of an import, in a recording: without the interface's version, which may change.
fn tape_name(interface: &str, function: &str) -> String {
    let interface = interface.split_once('@').map_or(interface, |(name, _)| name);
    format!("{interface}#{function}")
}

/// An entry without results.
fn entry(function: &str, arguments: Vec<serde_json::Value>) -> TapeEntry {
    TapeEntry { function: function.to_owned(), arguments, ..TapeEntry::default() }
}
