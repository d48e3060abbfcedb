//! Admission of calls: the rates of the caller over all tools and of the tool, then the tool's
//! concurrency, queue and wait.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use toolcell_audit::Outcome;
use toolcell_mcp::Cancellation;
use toolcell_policy::quantity::{Rate, show_count, show_millis};
use toolcell_policy::{CallerRates, Limit, Limits};
use toolcell_shared::{AllowanceName, Away, Pace, Place, SharedState, Taken};

use super::Meters;

/// Callers of one tool that have their own allowance. Any others share one.
const CALLERS_MAX: usize = 1_000;

/// Callers that have their own allowance over all tools. Any others share one.
const OVER_ALL_CALLERS_MAX: usize = 10_000;

/// Call slots of one tool, and the name of its callers' allowances.
#[derive(Debug)]
pub struct Admission {
    scope: String,
    /// Name of the tool's places in the state that replicas share.
    places_name: String,
    places: Semaphore,
    waiting: AtomicUsize,
    limits: Limits,
    meters: Arc<Meters>,
}

/// Reason why a call got no slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefusal {
    /// The caller's allowance is used up.
    #[error("too many calls: more than {rate} of this tool (limit \"rate\"); try again in {wait}")]
    TooOften { rate: String, wait: String },
    /// The queue is full.
    #[error("busy: {running} calls of this tool run and {queue} wait; try again (limit \"queue\")")]
    QueueFull { running: String, queue: String },
    /// No slot came free in time.
    #[error("busy: no place came free for this call within {wait}; try again (limit \"queue_wait\")")]
    WaitedTooLong { wait: String },
    /// The caller's allowance over all tools is used up.
    #[error("too many calls: more than {rate} by this caller (\"{key}\" in [callers]); try again in {wait}")]
    CallerTooOften { key: &'static str, rate: String, wait: String },
    /// The caller's call slots and its queue are full.
    #[error(
        "busy: {running} calls of this caller run and {queue} wait; try again (\"concurrency\" or \"concurrency_shared\" in [callers])"
    )]
    CallerBusy { running: String, queue: String },
    /// None of the caller's calls ended in time.
    #[error(
        "busy: no call of this caller ended within {wait}; try again (\"concurrency\" or \"concurrency_shared\" in [callers])"
    )]
    CallerWaited { wait: String },
    /// No turn for large arguments came in time: the caller's are taken, or all.
    #[error("busy: too many calls with large arguments run, and none made room within {wait}; try again")]
    LargeWaited { wait: String },
    /// Too many calls that may make calls run.
    #[error("busy: too many calls that may call other tools run, and none ended within {wait}; try again")]
    CallingWaited { wait: String },
    /// The caller gave up while the call waited.
    #[error("the call was cancelled")]
    Cancelled,
    /// The state that replicas share could not be asked.
    #[error("{0}")]
    StateAway(#[from] Away),
    /// The tool was narrowed, or its component removed, while the call waited.
    #[error("{0}")]
    Narrowed(String),
}

impl QueueRefusal {
    /// Its outcome in the audit.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::TooOften { .. } | Self::CallerTooOften { .. } => Outcome::RateLimited,
            Self::QueueFull { .. }
            | Self::WaitedTooLong { .. }
            | Self::CallerBusy { .. }
            | Self::CallerWaited { .. }
            | Self::LargeWaited { .. }
            | Self::CallingWaited { .. } => Outcome::Busy,
            Self::StateAway(_) => Outcome::StateAway,
            Self::Cancelled | Self::Narrowed(_) => Outcome::Cancelled,
        }
    }
}

/// A call's slots: of this process, and over all replicas.
#[derive(Debug)]
pub struct CallPermit<'a> {
    _here: SemaphorePermit<'a>,
    _shared: Place,
}

/// A position in the queue, left when dropped.
pub struct QueuePosition<'a>(&'a AtomicUsize);

impl<'a> QueuePosition<'a> {
    /// Takes a position; returns the number of calls before it.
    pub fn enter(waiting: &'a AtomicUsize) -> (usize, Self) {
        (waiting.fetch_add(1, Ordering::AcqRel), Self(waiting))
    }
}

/// A wait; its time is counted when dropped.
struct QueueTime<'a>(&'a Meters, Instant);

impl Drop for QueueTime<'_> {
    fn drop(&mut self) {
        self.0.waited(self.1.elapsed());
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Admission {
    /// Of this tool of this component.
    pub fn new(limits: &Limits, component: &str, tool: &str) -> Self {
        Self {
            scope: format!("tool\n{component}\n{tool}\n{}", limits.rate()),
            places_name: format!("tool\n{component}\n{tool}"),
            places: Semaphore::new(limits.concurrency()),
            waiting: AtomicUsize::new(0),
            limits: *limits,
            meters: Arc::default(),
        }
    }

    /// Counts waits of calls in these meters.
    pub fn counting(self, meters: &Arc<Meters>) -> Self {
        Self { meters: Arc::clone(meters), ..self }
    }

    /// Name of a caller's allowance.
    pub fn allowance(&self) -> AllowanceName<'_> {
        AllowanceName { scope: &self.scope, pace: pace(self.limits.rate()), callers_max: CALLERS_MAX }
    }

    /// The refusal of a call whose caller must wait this long for its allowance.
    pub fn too_often(&self, wait: Duration) -> QueueRefusal {
        QueueRefusal::TooOften { rate: self.limits.show(Limit::Rate), wait: in_whole_seconds(wait) }
    }

    /// Tries to take one of the tool's slots over all replicas. Without such a bound, it always
    /// succeeds.
    pub async fn place(&self, state: &dyn SharedState) -> Result<Option<Place>, Away> {
        match self.shared_places() {
            None => Ok(Some(Place::default())),
            Some(most) => state.enter(&self.places_name, most).await,
        }
    }

    /// The tool's slots over all replicas; `None` if they have no bound.
    fn shared_places(&self) -> Option<usize> {
        let is_bounded = self.limits.get(Limit::ConcurrencyShared) < Limit::ConcurrencyShared.spec().default;
        is_bounded.then(|| self.limits.concurrency_shared())
    }

    /// Waits for a slot of this process, and for one over all replicas, unless that is already
    /// taken. The permit holds both.
    pub async fn enter(
        &self,
        state: &dyn SharedState,
        taken: Option<Place>,
        cancellation: &Cancellation,
    ) -> Result<CallPermit<'_>, QueueRefusal> {
        if let (Some(shared), Ok(here)) = (taken, self.places.try_acquire()) {
            return Ok(CallPermit { _here: here, _shared: shared });
        }
        // Holding only one of the two could deadlock, so it is released again.
        let (before, _waiting) = QueuePosition::enter(&self.waiting);
        if before >= self.limits.queue() {
            let most = self.shared_places().unwrap_or(usize::MAX).min(self.limits.concurrency());
            let running = show_count(u64::try_from(most).unwrap_or(u64::MAX));
            return Err(QueueRefusal::QueueFull { running, queue: self.limits.show(Limit::Queue) });
        }
        let wait: Duration = self.limits.queue_wait();
        let _wait = QueueTime(&self.meters, Instant::now());
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
            permit = tokio::time::timeout(wait, self.wait(state)) => match permit {
                Ok(permit) => permit,
                Err(_) => Err(self.waited_too_long()),
            },
        }
    }

    async fn wait(&self, state: &dyn SharedState) -> Result<CallPermit<'_>, QueueRefusal> {
        let here = self.places.acquire().await.map_err(|_| self.waited_too_long())?;
        let shared = match self.shared_places() {
            None => Place::default(),
            Some(most) => state.wait(&self.places_name, most).await?,
        };
        Ok(CallPermit { _here: here, _shared: shared })
    }

    fn waited_too_long(&self) -> QueueRefusal {
        QueueRefusal::WaitedTooLong { wait: self.limits.show(Limit::QueueWait) }
    }

    /// Number of running calls, and of waiting ones.
    pub fn load(&self) -> (usize, usize) {
        let running = self.limits.concurrency().saturating_sub(self.places.available_permits());
        (running, self.waiting.load(Ordering::Acquire))
    }

    /// True if these limits are the same as its own for slots, queue and rate.
    pub fn suits(&self, limits: &Limits) -> bool {
        let bounds = [Limit::Concurrency, Limit::ConcurrencyShared, Limit::Queue, Limit::QueueWait, Limit::Rate];
        bounds.into_iter().all(|limit| self.limits.get(limit) == limits.get(limit))
    }
}

/// A rate as durations.
pub fn pace(rate: Rate) -> Pace {
    Pace::new(rate.count, rate.per.duration())
}

/// The wait in whole seconds, rounded up.
pub fn in_whole_seconds(wait: Duration) -> String {
    let whole_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).div_ceil(1_000).max(1).saturating_mul(1_000);
    show_millis(whole_ms)
}

/// Takes one call of this caller from its rates over all tools, if it has any, and from the tool's;
/// or from none if one is used up. This is one request, since the state may be on another machine.
pub async fn take_rates(
    state: &dyn SharedState,
    caller: &str,
    rates: CallerRates,
    admission: &Admission,
) -> Result<(), QueueRefusal> {
    take_all(state, caller, &caller_allowances(rates), Some(admission)).await
}

/// Takes one from this caller's rates over all tools, for a request that is not a call.
pub async fn take_of_caller(state: &dyn SharedState, caller: &str, rates: CallerRates) -> Result<(), QueueRefusal> {
    take_all(state, caller, &caller_allowances(rates), None).await
}

/// One bound on a caller's calls over all tools.
struct CallerAllowance {
    /// Its key in the manifest.
    key: &'static str,
    rate: Rate,
    scope: String,
}

fn caller_allowances(rates: CallerRates) -> Vec<CallerAllowance> {
    let of = |key: &'static str, scope: &str, rate: Option<Rate>| {
        rate.map(|rate| CallerAllowance { key, rate, scope: format!("{scope}\n{rate}") })
    };
    of("rate", "caller", rates.rate).into_iter().chain(of("quota", "caller quota", rates.quota)).collect()
}

async fn take_all(
    state: &dyn SharedState,
    caller: &str,
    own: &[CallerAllowance],
    admission: Option<&Admission>,
) -> Result<(), QueueRefusal> {
    let of_caller = own.iter().map(|allowance| AllowanceName {
        scope: &allowance.scope,
        pace: pace(allowance.rate),
        callers_max: OVER_ALL_CALLERS_MAX,
    });
    let names: Vec<AllowanceName<'_>> = of_caller.chain(admission.map(Admission::allowance)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let Taken::Refused { place, wait } = state.take(caller, &names).await? else { return Ok(()) };
    let wait_text = in_whole_seconds(wait);
    Err(match (own.get(place), admission) {
        (Some(CallerAllowance { key, rate, .. }), _) => {
            QueueRefusal::CallerTooOften { key, rate: rate.to_string(), wait: wait_text }
        }
        (None, Some(admission)) => admission.too_often(wait),
        (None, None) => QueueRefusal::StateAway(Away::new("it named an allowance that nobody asked for")),
    })
}

#[cfg(test)]
mod tests {
    use toolcell_policy::quantity::{Per, Rate};
    use toolcell_shared::Embedded;

    use super::*;

    fn admission(concurrency: u64, queue: u64, wait_ms: u64) -> Admission {
        let limits = [(Limit::Concurrency, concurrency), (Limit::Queue, queue), (Limit::QueueWait, wait_ms)]
            .into_iter()
            .fold(Limits::default(), |limits, (limit, value)| limits.with(limit, value).unwrap());
        Admission::new(&limits, "a", "b")
    }

    async fn enter<'a>(admission: &'a Admission, cancellation: &Cancellation) -> Result<CallPermit<'a>, QueueRefusal> {
        let state = Embedded::default();
        admission.enter(&state, admission.place(&state).await?, cancellation).await
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_serves_the_next() {
        let admission = admission(1, 1, 60_000);
        let none = Cancellation::new();
        let first = enter(&admission, &none).await.unwrap();
        let (second, ()) = tokio::join!(enter(&admission, &none), async { drop(first) });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn past_the_queue_a_call_is_refused_at_once() {
        let admission = admission(1, 0, 60_000);
        let none = Cancellation::new();
        let _first = enter(&admission, &none).await.unwrap();
        let refusal = enter(&admission, &none).await.unwrap_err();
        assert_eq!(refusal.outcome(), Outcome::Busy);
        assert_eq!(refusal.to_string(), "busy: 1 calls of this tool run and 0 wait; try again (limit \"queue\")");
    }

    #[tokio::test]
    async fn a_call_waits_no_longer_than_it_may() {
        let admission = admission(1, 1, 5);
        let none = Cancellation::new();
        let _first = enter(&admission, &none).await.unwrap();
        let refusal = enter(&admission, &none).await.unwrap_err();
        assert_eq!(refusal, QueueRefusal::WaitedTooLong { wait: "5ms".to_owned() });
    }

    #[test]
    fn a_caller_who_calls_too_often_is_told_when_to_try_again() {
        for (rate, wait_s, expected) in [
            (
                Rate { count: 2, per: Per::Minute },
                30,
                "more than 2/min of this tool (limit \"rate\"); try again in 30s",
            ),
            (Rate { count: 5, per: Per::Hour }, 720, "more than 5/h of this tool (limit \"rate\"); try again in 12m"),
            (Rate { count: 1, per: Per::Second }, 1, "more than 1/s of this tool (limit \"rate\"); try again in 1s"),
        ] {
            let limits = Limits::default().with(Limit::Rate, rate.number()).unwrap();
            let refusal = Admission::new(&limits, "a", "b").too_often(Duration::from_secs(wait_s));
            assert_eq!(refusal.outcome(), Outcome::RateLimited);
            assert_eq!(refusal.to_string(), format!("too many calls: {expected}"));
        }
    }

    #[test]
    fn each_tool_and_each_rate_has_allowances_of_its_own() {
        let limits = |count| Limits::default().with(Limit::Rate, Rate { count, per: Per::Hour }.number()).unwrap();
        let admissions =
            [(1, "a", "b"), (2, "a", "b"), (1, "c", "b"), (1, "a", "c")].map(|(count, component, tool)| {
                Admission::new(&limits(count), component, tool).allowance().scope.to_owned()
            });
        let apart: std::collections::BTreeSet<_> = admissions.iter().collect();
        assert_eq!(apart.len(), admissions.len(), "{admissions:?}");
    }

    #[tokio::test]
    async fn a_cancelled_call_leaves_the_queue() {
        let admission = admission(1, 1, 60_000);
        let given_up = Cancellation::new();
        given_up.cancel();
        let _first = enter(&admission, &Cancellation::new()).await.unwrap();
        assert_eq!(enter(&admission, &given_up).await.unwrap_err(), QueueRefusal::Cancelled);
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }

    fn per_hour(count: u64) -> Rate {
        Rate { count, per: Per::Hour }
    }

    fn rates(count: u64) -> CallerRates {
        CallerRates { rate: Some(per_hour(count)), quota: None }
    }

    fn rated(rate: Rate) -> Admission {
        Admission::new(&Limits::default().with(Limit::Rate, rate.number()).unwrap(), "a", "b")
    }

    #[tokio::test]
    async fn a_caller_calls_as_often_as_it_may_and_others_are_not_held_up() {
        let state = Embedded::default();
        let admission = rated(per_hour(600));
        for caller in ["one", "two"] {
            for _ in 0..2 {
                assert_eq!(take_rates(&state, caller, rates(2), &admission).await, Ok(()));
            }
            let refusal = take_rates(&state, caller, rates(2), &admission).await.unwrap_err();
            assert_eq!(
                refusal.to_string(),
                "too many calls: more than 2/h by this caller (\"rate\" in [callers]); try again in 30m"
            );
        }
    }

    #[tokio::test]
    async fn a_quota_bounds_a_caller_beside_its_rate() {
        let state = Embedded::default();
        let admission = rated(per_hour(600));
        let quota = Some(Rate { count: 3, per: Per::Day });
        let both = CallerRates { rate: Some(per_hour(2)), quota };
        let alone = CallerRates { rate: None, quota };
        for (rates, refused) in [
            (both, None),
            (both, None),
            (both, Some("more than 2/h by this caller (\"rate\" in [callers]); try again in 30m")),
            (alone, None),
            (alone, Some("more than 3/d by this caller (\"quota\" in [callers]); try again in 8h")),
            (both, Some("more than 2/h by this caller (\"rate\" in [callers]); try again in 30m")),
        ] {
            let said = take_rates(&state, "one", rates, &admission).await.err().map(|refusal| refusal.to_string());
            assert_eq!(said, refused.map(|why| format!("too many calls: {why}")), "a refused call takes from none");
        }
        assert_eq!(take_of_caller(&state, "another", alone).await, Ok(()));
    }

    #[tokio::test]
    async fn showing_another_token_in_between_gives_nothing_back() {
        let state = Embedded::default();
        let admission = rated(per_hour(600));
        let less = rates(1);
        let more = rates(2);
        assert_eq!(take_rates(&state, "one", less, &admission).await, Ok(()));
        for allowed in [true, true, false] {
            assert_eq!(take_rates(&state, "one", more, &admission).await.is_ok(), allowed);
            assert!(take_rates(&state, "one", less, &admission).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_call_that_its_tool_refuses_costs_its_caller_nothing() {
        let state = Embedded::default();
        let rare = rated(per_hour(1));
        let other = rated(per_hour(600));
        let rate = rates(2);
        assert_eq!(take_rates(&state, "one", rate, &rare).await, Ok(()));
        for _ in 0..3 {
            let refusal = take_rates(&state, "one", rate, &rare).await.unwrap_err();
            let expected = "too many calls: more than 1/h of this tool (limit \"rate\"); try again in 1h";
            assert_eq!(refusal.to_string(), expected);
        }
        assert_eq!(take_rates(&state, "one", rate, &other).await, Ok(()));
        assert!(take_rates(&state, "one", rate, &other).await.is_err());
    }
}
