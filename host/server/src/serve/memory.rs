//! Returns freed memory to the system, so that a peak does not last.
//!
//! Promise: unread answers take bounded memory.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, interval};
use toolcell_walls::kernel::{free_large_blocks, heap_bytes, trim_heap};

use crate::owned_task::OwnedTask;

/// Pause between two polls of the heap. A poll takes microseconds.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Fall of heap use after which its pages are returned. 32 MiB: less is soon used again.
const FALL_BYTES: u32 = 32 * 1024 * 1024;

/// Returns free memory until what it returns is dropped.
pub(super) fn return_memory(runtime: &Handle) -> OwnedTask {
    free_large_blocks();
    OwnedTask(runtime.spawn(async {
        let mut ticks = interval(POLL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heap = HeapPeak::default();
        loop {
            ticks.tick().await;
            let Some(used) = heap_bytes() else { return };
            if heap.fell(used) {
                // A failed join means that the runtime ends.
                let _ = tokio::task::spawn_blocking(trim_heap).await;
            }
        }
    }))
}

/// The peak of heap use since memory was last returned.
#[derive(Default)]
struct HeapPeak(u32);

impl HeapPeak {
    /// True if much less is in use than at the peak. A new peak begins then.
    fn fell(&mut self, used: u32) -> bool {
        let fell = self.0.saturating_sub(used) >= FALL_BYTES;
        self.0 = if fell { used } else { self.0.max(used) };
        fell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_time_that_much_was_freed() {
        let mut heap = HeapPeak::default();
        let looks =
            [(10, false), (50, false), (30, false), (18, true), (18, false), (0, false), (40, false), (8, true)];
        for (mebibytes, gives) in looks {
            assert_eq!(heap.fell(mebibytes * 1024 * 1024), gives, "{mebibytes} MiB");
        }
    }
}
