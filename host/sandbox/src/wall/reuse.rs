//! The instance of a component that keeps state between the calls of one caller, on purpose.
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};

use toolcell_wall::caller::CallerLink;
use toolcell_wall::failure::CallFailure;

/// At most one instance, for one caller. Its calls run one after the other. The host knows it by a
/// number; the process has the instance itself.
///
/// It is dropped when it was idle for long, when it is old, and when a call ends without an answer,
/// since a guest that was stopped halfway is in an unknown state.
pub struct ReusedInstance<I> {
    place: Arc<Mutex<ReusePlace<I>>>,
    times: Times,
}

/// The times after which an instance is dropped.
#[derive(Clone, Copy)]
struct Times {
    idle: Duration,
    lifetime: Duration,
}

struct ReusePlace<I> {
    live: Option<ReusableInstance<I>>,
    /// True while a task waits for the instance to become idle.
    watched: bool,
}

struct ReusableInstance<I> {
    instance: I,
    made: Instant,
    used: Instant,
}

impl<I> Default for ReusePlace<I> {
    fn default() -> Self {
        Self { live: None, watched: false }
    }
}

/// The right to use the instance, and the only one.
pub(crate) struct InstanceLease<I> {
    place: OwnedMutexGuard<ReusePlace<I>>,
    times: Times,
    made: Instant,
}

impl<I: Send + 'static> ReusedInstance<I> {
    /// Without an instance yet. An instance is dropped `idle` after its last call, and `lifetime`
    /// after it was made.
    #[must_use]
    pub fn new(idle: Duration, lifetime: Duration) -> Self {
        Self { place: Arc::default(), times: Times { idle, lifetime } }
    }

    /// Waits until no other call uses the instance. Returns it if there is one that may still be
    /// used.
    ///
    /// # Errors
    /// Another call used it for all of `wait`, or the caller has given up.
    pub(crate) async fn turn(
        &self,
        wait: Duration,
        caller: &dyn CallerLink,
    ) -> Result<(InstanceLease<I>, Option<I>), CallFailure> {
        let waited = tokio::time::timeout(wait, Arc::clone(&self.place).lock_owned());
        let mut place = tokio::select! {
            place = waited => place.map_err(|_| CallFailure::Busy)?,
            () = caller.cancelled() => return Err(CallFailure::Cancelled),
        };
        let now = Instant::now();
        let Times { idle, lifetime } = self.times;
        let usable = place
            .live
            .take()
            .filter(|live| now.duration_since(live.used) < idle && now.duration_since(live.made) < lifetime);
        let made = usable.as_ref().map_or(now, |live| live.made);
        Ok((InstanceLease { place, times: self.times, made }, usable.map(|live| live.instance)))
    }
}

impl<I: Send + 'static> InstanceLease<I> {
    /// The instance was made for this call.
    pub(crate) fn anew(&mut self) {
        self.made = Instant::now();
    }

    /// Keeps the instance for the next call, and drops it once it was idle for too long.
    pub(crate) fn keep(mut self, instance: I) {
        self.place.live = Some(ReusableInstance { instance, made: self.made, used: Instant::now() });
        let idle = self.times.idle;
        if !std::mem::replace(&mut self.place.watched, true) {
            let place = Arc::downgrade(OwnedMutexGuard::mutex(&self.place));
            drop(tokio::spawn(give_up_when_idle(place, idle)));
        }
    }
}

/// Waits until the instance was idle for this long, drops it, and ends. One task does this, however
/// many calls there are.
async fn give_up_when_idle<I>(place: Weak<Mutex<ReusePlace<I>>>, idle: Duration) {
    let mut wait = idle;
    loop {
        tokio::time::sleep(wait).await;
        let Some(place) = place.upgrade() else { return };
        // An instance in use is not idle.
        let Ok(mut place) = place.try_lock() else {
            wait = idle;
            continue;
        };
        let rested = place.live.as_ref().map_or(idle, |live| live.used.elapsed());
        if rested >= idle {
            (place.live, place.watched) = (None, false);
            return;
        }
        wait = idle.saturating_sub(rested);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use toolcell_wall::caller::NoCaller;

    const WAIT: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(3_600);

    async fn has_one(reused: &ReusedInstance<()>) -> bool {
        let (lease, kept) = reused.turn(WAIT, &NoCaller).await.unwrap();
        kept.map(|kept| lease.keep(kept)).is_some()
    }

    #[tokio::test]
    async fn one_call_at_a_time_has_the_instance() {
        let reused = ReusedInstance::<()>::new(LONG, LONG);
        let (lease, kept) = reused.turn(WAIT, &NoCaller).await.unwrap();
        assert!(kept.is_none(), "none was made yet");
        let short = Duration::from_millis(20);
        assert!(matches!(reused.turn(short, &NoCaller).await, Err(CallFailure::Busy)));
        lease.keep(());
        assert!(has_one(&reused).await);
        drop(reused.turn(WAIT, &NoCaller).await.unwrap());
        assert!(!has_one(&reused).await, "a call that gives nothing back leaves none");
    }

    #[tokio::test]
    async fn an_idle_instance_is_given_up_by_itself_and_one_task_looks() {
        let idle = Duration::from_millis(50);
        let reused = ReusedInstance::<()>::new(idle, LONG);
        let place = Arc::downgrade(&reused.place);
        for _ in 0..100 {
            let (lease, _) = reused.turn(WAIT, &NoCaller).await.unwrap();
            lease.keep(());
        }
        assert!(place.weak_count() <= 2, "{} tasks look", place.weak_count() - 1);
        let began = Instant::now();
        while reused.place.lock().await.watched {
            assert!(began.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
        assert!(began.elapsed() + Duration::from_millis(5) >= idle);
        assert!(reused.place.lock().await.live.is_none());
    }
}
