//! Work that calls must not notice: compiling while tools are served.
//!
//! The compiler uses all cores. On Linux a thread can run at `SCHED_IDLE`, only where no other
//! thread wants the core; any other thread that wakes has the core at once. The lowest ordinary
//! priority (`nice 19`) does not give that: it keeps a core for some milliseconds. Elsewhere
//! nothing is changed.

/// Lets every other thread go first from now on. Best effort: a thread that cannot be told works as
/// others do.
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

/// Lets this thread step back from now on, for work that takes long and that somebody waits for.
/// Best effort, and never taken back.
///
/// With 5, it gets about a quarter of a core beside a thread that always computes, with 10 a tenth:
/// its work goes on on a machine that is never idle. No thread that wakes rarely waits for it.
#[cfg(target_os = "linux")]
pub fn step_back(nicer: i32) {
    // On Linux, the nice value is the thread's.
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
            // Threads that it starts do so as well.
            [policy(), std::thread::spawn(policy).join().unwrap()]
        });
        assert_eq!(own.join().unwrap(), [idle, idle]);
        assert_ne!(policy(), idle);
    }
}
