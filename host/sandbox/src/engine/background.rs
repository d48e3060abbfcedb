//! Work that calls must not notice: compiling while tools are served. Must not hold: the work
//! itself.
//!
//! The compiler uses all cores. On Linux a thread can run at `SCHED_IDLE`, only where no other
//! thread wants the core; any other thread that wakes has the core at once. The lowest ordinary
//! priority (`nice 19`) does not give that: it keeps a core for some milliseconds. Elsewhere
//! nothing is changed.
use rayon::ThreadPoolBuilder;

/// Runs this on threads that give way to all others, one for each core, and waits for it. Work that
/// it does in parallel through rayon stays on these threads. Where they cannot be started it runs
/// on this thread.
///
/// On a machine that is never idle this may take as long as the machine is busy.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let name = |_| "toolcell-compile".to_owned();
    match ThreadPoolBuilder::new().thread_name(name).start_handler(|_| give_way()).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Lets every other thread go first from now on. Best effort: a thread that cannot be told works as
/// others do.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    use thread_priority::unix::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _ = set_thread_priority_and_policy(thread_native_id(), thread_priority::ThreadPriority::Min, idle);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

    use super::*;

    fn policy() -> ThreadSchedulePolicy {
        thread_schedule_policy().unwrap()
    }

    #[test]
    fn the_work_gives_way_and_the_thread_that_waits_for_it_does_not() {
        let before = policy();
        let (own, parallel) = in_background(|| (policy(), rayon::join(policy, policy)));
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!((own, parallel), (idle, (idle, idle)));
        assert_eq!(policy(), before);
        assert_ne!(before, idle);
    }
}
