//! Current problems, which make calls fail or limit them.
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use toolcell_audit::Sink;
use toolcell_mcp::Host as _;
use toolcell_mcp::http::{Readiness, ReadinessCheck};

use crate::catalog::LeftOutComponent;
use crate::http::ending_certificates;
use crate::machine::{SandboxSetup, walls_in_words};
use crate::reload::Current;
use crate::replicas::readiness::StateReach;

/// Checks the parts that calls depend on.
pub struct Health {
    sink: Arc<Sink>,
    walls: Option<SandboxSetup>,
    /// The shared state; `None` if calls do not need it.
    state: Option<StateReach>,
    current: OnceLock<Arc<Current>>,
}

/// A part that calls depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthPart {
    /// The audit, if it cannot be written.
    Audit,
    /// The shared state, if it does not respond.
    SharedState,
    /// Missing walls.
    Walls,
    /// Components that are broken, and not served.
    Components,
    /// Certificates that have expired, or will soon.
    Certificates,
}

/// A part with a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthProblem {
    pub part: HealthPart,
    /// True if calls fail while it lasts.
    pub fails_calls: bool,
    /// One sentence for operators.
    pub text: String,
}

impl HealthPart {
    pub const ALL: [Self; 5] = [Self::Audit, Self::SharedState, Self::Walls, Self::Components, Self::Certificates];

    /// The name in metrics and the status: `audit`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::SharedState => "shared_state",
            Self::Walls => "walls",
            Self::Components => "components",
            Self::Certificates => "certificates",
        }
    }

    /// The problem, as strangers may see it.
    const fn external(self) -> &'static str {
        match self {
            Self::Audit => "the audit cannot be written",
            Self::SharedState => "no shared state",
            Self::Walls => "a required wall is missing",
            Self::Components => "a component is missing",
            Self::Certificates => "a certificate ends",
        }
    }
}

impl Health {
    pub(crate) fn new(sink: &Arc<Sink>, walls: Option<&SandboxSetup>, state: Option<StateReach>) -> Self {
        Self { sink: Arc::clone(sink), walls: walls.cloned(), state, current: OnceLock::new() }
    }

    /// From now on, also checks the current generation.
    pub(crate) fn watch(&self, current: &Arc<Current>) {
        let _ = self.current.set(Arc::clone(current));
    }

    /// Missing walls that may be missing: names and reasons.
    pub(crate) fn walls_done_without(&self) -> Vec<(String, String)> {
        self.walls.as_ref().map(SandboxSetup::done_without).unwrap_or_default()
    }

    /// Missing walls that must not be missing: names and reasons.
    pub(crate) fn walls_missing(&self) -> Vec<(String, String)> {
        self.walls.as_ref().map(SandboxSetup::missing).unwrap_or_default()
    }

    /// The problems. For the shared state, this is the last answer: see [`Self::check_again`].
    pub fn problems(&self) -> Vec<HealthProblem> {
        let mut problems = Vec::new();
        if self.sink.is_failing() {
            let fails_calls = self.sink.is_required();
            let then = if fails_calls { "calls are refused" } else { "calls go on without a record" };
            let text = format!("{}, so {then}: is the disk full?", HealthPart::Audit.external());
            problems.push(HealthProblem { part: HealthPart::Audit, fails_calls, text });
        }
        if self.state.as_ref().is_some_and(|state| !state.was_reached()) {
            let text = "the server of the shared state does not answer, so calls are refused".to_owned();
            problems.push(HealthProblem { part: HealthPart::SharedState, fails_calls: true, text });
        }
        let missing = self.walls_missing();
        if !missing.is_empty() {
            let fails_calls = self.walls.as_ref().is_some_and(|walls| walls.required);
            let text = format!("sandbox processes are {}", walls_in_words(&missing));
            problems.push(HealthProblem { part: HealthPart::Walls, fails_calls, text });
        }
        let ending = ending_certificates(SystemTime::now()).into_iter();
        problems.extend(ending.map(|text| HealthProblem { part: HealthPart::Certificates, fails_calls: false, text }));
        if let Some(current) = self.current.get() {
            let text = |component: &LeftOutComponent| format!("left out: {}", component.problem);
            let left_out = current.snapshot().left_out().iter().map(text).collect::<Vec<_>>();
            problems.extend(left_out.into_iter().map(|text| HealthProblem {
                part: HealthPart::Components,
                fails_calls: false,
                text,
            }));
        }
        problems
    }

    /// Checks the shared state again, if its last answer is old. Takes as long as that does.
    pub async fn check_again(&self) {
        if let Some(state) = &self.state {
            state.is_reached().await;
        }
    }
}

impl Readiness for Health {
    fn check(&self) -> ReadinessCheck<'_> {
        Box::pin(async {
            self.check_again().await;
            self.problems().into_iter().find(|problem| problem.fails_calls).map(|problem| problem.part.external())
        })
    }
}
