//! Problems of this moment, which make calls fail or take away what they should have.
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

/// Looks at the parts that calls need.
pub struct Health {
    sink: Arc<Sink>,
    walls: Option<SandboxSetup>,
    /// The state that replicas share; `None` where none is needed for a call.
    state: Option<StateReach>,
    current: OnceLock<Arc<Current>>,
}

/// A part that calls need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthPart {
    /// The audit, which takes no records.
    Audit,
    /// The state that replicas share, which does not answer.
    SharedState,
    /// Walls that should stand.
    Walls,
    /// Components that are broken, and not served.
    Components,
    /// Certificates that have ended, or end soon.
    Certificates,
}

/// A part that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthProblem {
    /// The part.
    pub part: HealthPart,
    /// True if calls fail while it lasts.
    pub fails_calls: bool,
    /// One sentence for operators.
    pub text: String,
}

impl HealthPart {
    /// All of them.
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

    /// The problem, for strangers.
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

    /// From now on looks at the generation that serves as well.
    pub(crate) fn watch(&self, current: &Arc<Current>) {
        // There is one for the life of the process.
        let _ = self.current.set(Arc::clone(current));
    }

    /// Walls that may be missing, and are: each by its name with the reason.
    pub(crate) fn walls_done_without(&self) -> Vec<(String, String)> {
        self.walls.as_ref().map(SandboxSetup::done_without).unwrap_or_default()
    }

    /// Walls that are missing and should not be: each by its name with the reason.
    pub(crate) fn walls_missing(&self) -> Vec<(String, String)> {
        self.walls.as_ref().map(SandboxSetup::missing).unwrap_or_default()
    }

    /// The problems. Of the shared state it is the answer that `/readyz` got last:
    /// see [`Self::check_again`].
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
            let fails_calls = self.walls.as_ref().is_some_and(SandboxSetup::is_required);
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

    /// Asks the shared state again, if its last answer is old. Takes as long as that does.
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
