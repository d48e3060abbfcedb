//! Work that calls must not notice: compiling while tools are served. Must not hold: what the work is.
//!
//! The compiler uses all cores. On Linux a thread can be one that runs where nobody else wants to (`SCHED_IDLE`): whoever else
//! wakes has its core at once, which the lowest of the ordinary priorities (`nice 19`) does not give: it keeps a core for some
//! milliseconds. Elsewhere nothing is changed.
use rayon::ThreadPoolBuilder;

/// Runs this on threads that give way to all others, as many as there are cores, and waits for it. What it does in parallel by
/// rayon stays on these threads. Where they cannot be started it runs on this one, as it is.
///
/// On a machine that is never idle this may take as long as that lasts.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let name = |_| "toolcell-compile".to_owned();
    match ThreadPoolBuilder::new().thread_name(name).start_handler(|_| give_way()).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Lets every other thread go first from now on. Best effort: a thread that cannot be told works as others do.
#[cfg(target_os = "linux")]
fn give_way() {
    use thread_priority::unix::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _ = set_thread_priority_and_policy(thread_native_id(), thread_priority::ThreadPriority::Min, idle);
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

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
