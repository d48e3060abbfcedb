//! Killing sandbox processes of the host, one each second.

use std::fs::{self, File};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use toolcell_tests::Folder;

use crate::random::Random;
use crate::serving;

/// Time between two kills.
const EVERY: Duration = Duration::from_secs(1);

/// Kills after which the manifest is saved anew. A component that ended five sandboxes in ten
/// minutes is held back, and these were not ended by any.
const ANEW_AFTER: u64 = 3;

/// Time between two polls at whether the run has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Kills a sandbox process of the host each second, until the run has ended. Returns how many.
pub fn kill_each_second(host: u32, folder: &Folder, seed: u64, ended: &AtomicBool) -> u64 {
    let mut random = Random::new(seed);
    let mut kills = 0;
    let mut next = Instant::now() + EVERY;
    let mut reloads = Reloads::of(host);
    let mut saved = 0;
    while !ended.load(Ordering::Acquire) {
        // What was saved is served before the next kill, however busy the machine is.
        if Instant::now() < next || reloads.count() < saved {
            std::thread::sleep(LOOK_EVERY);
            continue;
        }
        next = Instant::now() + EVERY;
        if kill_one(host, &mut random) {
            kills += 1;
            if kills % ANEW_AFTER == 0 {
                saved += 1;
                serving::begin_anew(folder, saved);
            }
        }
    }
    kills
}

/// The reloads that the host has told of on its standard error.
struct Reloads {
    /// The file that its standard error is.
    said: Option<File>,
    /// The end of what was read, which may be the beginning of the words.
    rest: Vec<u8>,
    count: u64,
}

impl Reloads {
    /// The words of one.
    const WORDS: &[u8] = b"reloaded in ";

    fn of(host: u32) -> Self {
        Self { said: File::open(format!("/proc/{host}/fd/2")).ok(), rest: Vec::new(), count: 0 }
    }

    /// So many up to now.
    fn count(&mut self) -> u64 {
        if let Some(said) = &mut self.said {
            // What cannot be read now is read the next time.
            let _ = said.read_to_end(&mut self.rest);
        }
        let found = self.rest.windows(Self::WORDS.len()).filter(|words| *words == Self::WORDS).count();
        self.count += u64::try_from(found).unwrap_or_default();
        // Less than the words is kept, so that none are counted twice.
        let read = self.rest.len().saturating_sub(Self::WORDS.len() - 1);
        self.rest.drain(..read);
        self.count
    }
}

/// Kills one of the host's sandbox processes that serve. False without one.
fn kill_one(host: u32, random: &mut Random) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let serving: Vec<i32> = ids.filter(|id| serves(*id, host)).collect();
    let Some(id) = random.of(&serving).copied() else { return false };
    let process = Pid::from_raw(id).and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
    // Looked at once more: what is held now has this number for as long as it is held.
    process.filter(|_| serves(id, host)).is_some_and(|process| pidfd_send_signal(process, Signal::KILL).is_ok())
}

/// True of a child of the host whose walls stand: one that starts is not a sandbox yet.
fn serves(id: i32, host: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.contains(&format!("PPid:\t{host}\n")) && status.contains("Seccomp:\t2\n")
}
