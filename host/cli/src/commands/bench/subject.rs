//! The measured tool, and the ways to call it many times.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use toolcell_audit::Usage;
use toolcell_mcp::{Cancellation, Executor as _, Patience, ServedCatalog as _};
use toolcell_server::catalog::Catalog;
use toolcell_server::workers::Workers;

use super::series::Series;
use crate::commands::{calibrate, sample};
use crate::terminal::Progress;

/// Calls before the measurement, if time allows: the first ones load pages and caches.
const WARM_UP_CALLS: u32 = 50;

/// Time for them. A slower tool is called once.
const WARM_UP_TIME: Duration = Duration::from_millis(200);

/// Interval of updates of the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

pub struct BenchSubject {
    catalog: Arc<Catalog>,
    tool: usize,
    arguments: Box<RawValue>,
}

/// Number and time of calls.
#[derive(Clone, Copy, Debug)]
pub struct BenchPlan {
    pub calls: u32,
    /// No call begins after this time.
    pub time: Option<Duration>,
}

/// Remaining calls, shared by several chains.
struct RemainingCalls {
    calls: AtomicU32,
    end: Option<Instant>,
}

impl BenchSubject {
    pub fn new(catalog: Catalog, tool: usize, arguments: Box<RawValue>) -> Self {
        Self { catalog: Arc::new(catalog), tool, arguments }
    }

    /// Makes some calls that do not count.
    pub async fn warm_up(&self) -> Result<(), String> {
        let left = RemainingCalls::of(BenchPlan { calls: WARM_UP_CALLS, time: Some(WARM_UP_TIME) });
        self.chain(&left, |_| ()).await.map(drop)
    }

    /// Makes one call after the other, on this thread.
    pub async fn one_by_one(&self, plan: BenchPlan, progress: &Progress) -> Result<Series, String> {
        let began = Instant::now();
        let made = self.chain(&RemainingCalls::of(plan), |calls| progress.at(calls)).await?;
        Ok(made.finish(began.elapsed()))
    }

    /// Makes calls in this many chains at once, on the worker threads.
    pub fn at_once(
        self: &Arc<Self>,
        chains: usize,
        plan: BenchPlan,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Series, String> {
        let began = Instant::now();
        let left = Arc::new(RemainingCalls::of(plan));
        let (done, ended) = channel();
        for _ in 0..chains.max(1) {
            let subject = Arc::clone(self);
            let left = Arc::clone(&left);
            let done = done.clone();
            workers.executor().run(Box::pin(async move { subject.chain_of_many(&left, &done).await }));
        }
        drop(done);
        let mut all = Series::default();
        loop {
            match ended.recv_timeout(PROGRESS_EVERY) {
                Ok(series) => all.extend(series?),
                Err(RecvTimeoutError::Timeout) => {
                    let made = plan.calls - left.calls.load(Ordering::Relaxed);
                    progress.at(plan.calls as usize + made as usize);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(all.finish(began.elapsed())),
            }
        }
    }

    async fn chain_of_many(&self, left: &RemainingCalls, done: &Sender<Result<Series, String>>) {
        let made = self.chain(left, |_| ()).await;
        if made.is_err() {
            // Stops the other chains.
            left.calls.store(0, Ordering::Relaxed);
        }
        // The receiver is gone if another chain has failed.
        let _ = done.send(made);
    }

    /// Makes calls one after the other until none is left; reports the number after each.
    async fn chain(&self, left: &RemainingCalls, mut then: impl FnMut(usize)) -> Result<Series, String> {
        let mut series = Series::default();
        while left.take() {
            let began = Instant::now();
            let usage = self.call().await?;
            series.add(began.elapsed(), &usage);
            then(series.calls());
        }
        Ok(series)
    }

    /// Makes one call, with all checks of a client's call. `Err` is the tool's error.
    async fn call(&self) -> Result<Usage, String> {
        let Some(tool) = self.catalog.tools().tools().get(self.tool) else {
            return Err("the host has no such tool".to_owned());
        };
        if let Err(problems) = tool.check_arguments(&self.arguments, &Patience::default()) {
            return Err(calibrate::text_of(&tool.refuse_arguments(&problems)));
        }
        let call = sample::call(self.tool, self.arguments.clone(), Cancellation::new());
        let measured = self.catalog.measure(call).await;
        let usage = measured.usage;
        let result = measured.finish(tool);
        if result.is_error { Err(calibrate::text_of(&result)) } else { Ok(usage) }
    }
}

impl RemainingCalls {
    fn of(plan: BenchPlan) -> Self {
        Self { calls: AtomicU32::new(plan.calls), end: plan.time.map(|time| Instant::now() + time) }
    }

    /// Takes one call, if one is left and there is time for it.
    fn take(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() < end)
            && self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1)).is_ok()
    }
}
