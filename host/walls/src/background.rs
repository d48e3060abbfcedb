//! Work that calls must not notice: compiling while tools are served.
//!
//! The compiler uses all cores. On Linux a thread can run at `SCHED_IDLE`: only while no other
//! thread wants the core, and any other thread that wakes gets it at once. The lowest ordinary
//! priority (`nice 19`) does not do that: it keeps a core for some milliseconds. Elsewhere nothing
//! is changed.

/// Gives every other thread priority from now on. Best effort: if that fails, the thread runs as
/// usual.
#[cfg(target_os = "linux")]
pub fn give_way() {
    use thread_priority::unix::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let _ = set_thread_priority_and_policy(thread_native_id(), thread_priority::ThreadPriority::Min, idle);
}

/// Other systems have no such priority.
#[cfg(not(target_os = "linux"))]
pub fn give_way() {}

/// Lowers the priority of this thread from now on, for long work that somebody waits for. Best
/// effort, and never undone.
///
/// With 5, it gets about a quarter of a core next to a thread that always computes, with 10 a
/// tenth, so its work continues on a machine that is never idle. A thread that wakes rarely never
/// waits for it.
#[cfg(target_os = "linux")]
pub fn step_back(nicer: i32) {
    // On Linux, a nice value applies to a thread.
    let _ = rustix::process::nice(nicer);
}

/// Other systems have one priority for the whole process.
#[cfg(not(target_os = "linux"))]
pub fn step_back(_: i32) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use thread_priority::unix::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

    use super::*;

    #[test]
    fn a_thread_that_gives_way_runs_where_no_other_wants_the_core() {
        let policy = || thread_schedule_policy().unwrap();
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let own = std::thread::spawn(move || {
            give_way();
            // Threads that it starts inherit this.
            [policy(), std::thread::spawn(policy).join().unwrap()]
        });
        assert_eq!(own.join().unwrap(), [idle, idle]);
        assert_ne!(policy(), idle);
    }
}
