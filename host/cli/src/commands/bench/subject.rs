//! The tool that is measured, and the ways to call it many times. Must not hold: what is made of the figures.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use toolcell_audit::Usage;
use toolcell_mcp::{Cancellation, Catalog as _, Executor as _, Patience};
use toolcell_server::catalog::Catalog;
use toolcell_server::workers::Workers;

use super::series::Series;
use crate::commands::{calibrate, sample};
use crate::terminal::Progress;

/// Calls before it counts, as long as time allows: the first ones touch pages and caches for all.
const WARM_UP_CALLS: u32 = 50;

/// How long they may take. A call that takes longer is made once.
const WARM_UP_TIME: Duration = Duration::from_millis(200);

/// How often it is looked how many were made.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// A call that is made again and again.
pub struct Subject {
    catalog: Catalog,
    tool: usize,
    arguments: Box<RawValue>,
}

/// How many calls.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub calls: u32,
    /// After this, no call begins.
    pub time: Option<Duration>,
}

/// What several chains of calls share: how many are still to be made.
struct Left {
    calls: AtomicU32,
    end: Option<Instant>,
}

impl Subject {
    pub fn new(catalog: Catalog, tool: usize, arguments: Box<RawValue>) -> Self {
        Self { catalog, tool, arguments }
    }

    /// A few calls that do not count.
    pub async fn warm_up(&self) -> Result<(), String> {
        let left = Left::of(Plan { calls: WARM_UP_CALLS, time: Some(WARM_UP_TIME) });
        self.chain(&left, |_| ()).await.map(drop)
    }

    /// One call after the other, on this thread.
    pub async fn one_by_one(&self, plan: Plan, progress: &Progress) -> Result<Series, String> {
        let began = Instant::now();
        let made = self.chain(&Left::of(plan), |calls| progress.at(calls)).await?;
        Ok(made.finish(began.elapsed()))
    }

    /// So many at once, on the worker threads.
    pub fn at_once(
        self: &Arc<Self>,
        chains: usize,
        plan: Plan,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Series, String> {
        let began = Instant::now();
        let left = Arc::new(Left::of(plan));
        let (done, ended) = channel();
        for _ in 0..chains.max(1) {
            let (subject, left, done) = (Arc::clone(self), Arc::clone(&left), done.clone());
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

    async fn chain_of_many(&self, left: &Left, done: &Sender<Result<Series, String>>) {
        let made = self.chain(left, |_| ()).await;
        if made.is_err() {
            // The others need not go on.
            left.calls.store(0, Ordering::Relaxed);
        }
        // Nobody waits any more where another chain has failed.
        let _ = done.send(made);
    }

    /// Calls one after the other until none is left; says after each how many it was.
    async fn chain(&self, left: &Left, mut then: impl FnMut(usize)) -> Result<Series, String> {
        let mut series = Series::default();
        while left.take() {
            let began = Instant::now();
            let usage = self.call().await?;
            series.add(began.elapsed(), &usage);
            then(series.calls());
        }
        Ok(series)
    }

    /// One call, with all checks that a client's has. `Err` is what the tool answered instead.
    async fn call(&self) -> Result<Usage, String> {
        let Some(tool) = self.catalog.tools().tools().get(self.tool) else {
            return Err("the host has no such tool".to_owned());
        };
        if let Err(problems) = tool.check_arguments(&self.arguments, &Patience::default()) {
            return Err(calibrate::text_of(&tool.refuse_arguments(&problems)));
        }
        let call = sample::call(self.tool, self.arguments.clone(), Cancellation::new());
        let measured = self.catalog.measure(call).await;
        let result = tool.finish(measured.result, &Patience::default());
        if result.is_error { Err(calibrate::text_of(&result)) } else { Ok(measured.usage) }
    }
}

impl Left {
    fn of(plan: Plan) -> Self {
        Self { calls: AtomicU32::new(plan.calls), end: plan.time.map(|time| Instant::now() + time) }
    }

    /// Takes one, if one is left and there is time for it.
    fn take(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() < end)
            && self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1)).is_ok()
    }
}
