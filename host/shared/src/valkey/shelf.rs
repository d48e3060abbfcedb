//! Resources that tools embedded in results, on a Valkey server: any replica can list and read
//! them.
//!
//! They share one slot of a cluster, because their bytes are counted together. They use a separate
//! connection, so that large ones delay no other operations.
use std::time::Duration;

use redis::Script;

use super::keys::Keys;
use super::operation::Operation;
use super::servers::Servers;
use super::{BadAddress, ValkeyOptions, millis};
use crate::Away;
use crate::digest::digest;

/// Most resources that one holder has of one origin, as in memory.
const ORIGIN_MAX: usize = 256;

/// Most bytes of these: eight results of the default size, as in memory.
const ORIGIN_BYTES_MAX: usize = 8 << 20;

/// Most resources of one caller, over all sessions and origins.
const CALLER_MAX: usize = 1_024;

/// Most bytes of these. 16 MiB: two origins that have their most, and a sixteenth of all.
const CALLER_BYTES_MAX: usize = 16 << 20;

/// Most resources of all callers: the server takes microseconds to scan each.
const ALL_MAX: usize = 16_384;

/// Most bytes of all. 256 MiB: a small server has a few gigabytes, which state and answers need.
const ALL_BYTES_MAX: usize = 256 << 20;

/// Most bytes of labels in one answer: those of a page.
pub const LABELS_BYTES_MAX: usize = 256 * 1024;

/// Bytes per second of additional time for an operation: a network of 64 Mbit/s.
const BYTES_PER_SECOND: usize = 8 << 20;

/// Resources on a Valkey server. Connects with the first operation, and reconnects after a loss.
#[derive(Debug)]
pub struct Shelf {
    servers: Servers,
    keys: Keys,
    keep: Script,
    find: Script,
    list: Script,
    forget: Script,
}

/// A resource that is kept.
#[derive(Clone, Debug)]
pub struct Shelved<'a> {
    /// Who made it. An origin never replaces resources of another.
    pub origin: &'a str,
    /// Its URI.
    pub uri: &'a str,
    /// The part that lists show.
    pub label: Vec<u8>,
    /// The part that is read.
    pub body: Vec<u8>,
}

impl Shelf {
    /// Resources on this server, which need not be reachable yet.
    ///
    /// # Errors
    ///
    /// [`BadAddress`].
    pub fn new(options: ValkeyOptions) -> Result<Self, BadAddress> {
        Ok(Self {
            keys: Keys::new(&options.prefix),
            // Keeping them is not confirmed to anybody.
            servers: Servers::new(ValkeyOptions { copies: 0, ..options })?,
            keep: Script::new(include_str!("shelf_keep.lua")),
            find: Script::new(include_str!("shelf_find.lua")),
            list: Script::new(include_str!("shelf_list.lua")),
            forget: Script::new(include_str!("shelf_forget.lua")),
        })
    }

    /// Keeps these resources of a holder for a time. If a bound is reached, the oldest are dropped:
    /// of the holder and origin, of the caller, or of all.
    ///
    /// # Errors
    /// [`Away`]. They may be kept.
    pub async fn keep(
        &self,
        caller: &str,
        holder: &str,
        resources: &[Shelved<'_>],
        time: Duration,
    ) -> Result<(), Away> {
        let mut script = self.keep.prepare_invoke();
        script.key(self.keys.shelf("number")).arg(self.keys.shelf(""));
        script.arg(digest(holder)).arg(digest(caller)).arg(millis(time));
        for bound in [ORIGIN_MAX, ORIGIN_BYTES_MAX, CALLER_MAX, CALLER_BYTES_MAX, ALL_MAX, ALL_BYTES_MAX] {
            script.arg(bound);
        }
        let mut bytes = 0;
        let fitting = resources.iter().filter(|kept| kept.label.len() + kept.body.len() < ORIGIN_BYTES_MAX);
        for Shelved { origin, uri, label, body } in fitting {
            script.arg(digest(origin)).arg(digest(uri)).arg(label).arg(body);
            bytes += label.len() + body.len();
        }
        let kept = self.servers.run_longer(Operation::Script(&script), longer(bytes)).await;
        kept.inspect_err(|away: &Away| {
            tracing::warn!("what a tool embedded in its result cannot be read again: {}", away.internal());
        })
    }

    /// The body of the holder's resource at this address. `None` if there is none, or if two
    /// origins have one.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn find(&self, holder: &str, uri: &str) -> Result<Option<Vec<u8>>, Away> {
        let mut script = self.find.prepare_invoke();
        script.key(self.keys.shelf("number")).arg(self.keys.shelf("")).arg(digest(holder)).arg(digest(uri));
        self.servers.run_longer(Operation::Script(&script), longer(ORIGIN_BYTES_MAX)).await
    }

    /// Numbers and labels of the holder's resources after this number, the oldest first: at most
    /// this many, and about [`LABELS_BYTES_MAX`]. URIs that two origins have are left out.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn list(&self, holder: &str, after: u64, most: usize) -> Result<Vec<(u64, Vec<u8>)>, Away> {
        let mut script = self.list.prepare_invoke();
        script.key(self.keys.shelf("number")).arg(self.keys.shelf("")).arg(digest(holder));
        script.arg(after).arg(most).arg(LABELS_BYTES_MAX);
        self.servers.run(Operation::Script(&script)).await
    }

    /// Removes all resources of this holder.
    ///
    /// # Errors
    ///
    /// [`Away`]. They may have been removed.
    pub async fn forget(&self, holder: &str) -> Result<(), Away> {
        let mut script = self.forget.prepare_invoke();
        script.key(self.keys.shelf("number")).arg(self.keys.shelf("")).arg(digest(holder));
        self.servers.run(Operation::Script(&script)).await
    }
}

/// Additional time for an operation of this size.
fn longer(bytes: usize) -> Duration {
    Duration::from_millis(u64::try_from(bytes.saturating_mul(1_000) / BYTES_PER_SECOND).unwrap_or(u64::MAX))
}
