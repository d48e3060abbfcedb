//! Status of a serving process as one JSON value. It contains nothing secret from the user, and
//! never reaches a client.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use serde_json::{Value, json};
use toolcell_audit::timestamp;
use toolcell_mcp::{Host as _, ServedCatalog as _};
use toolcell_sandbox::{SLOT_RESETS, Standing};

use crate::catalog::{Catalog, Services};
use crate::files::file::absolute;
use crate::identity::{login, secret_program};
use crate::observing::LastBuild;
use crate::operators::console::{SessionGate, Sources};
use crate::operators::health::Health;
use crate::reload::{Current, ReloadAttempt};

/// What the status is made from.
#[derive(Clone)]
pub struct StatusSources {
    /// The manifest.
    pub manifest: PathBuf,
    /// The current catalog.
    pub current: Arc<Current>,
    /// Time at which the process began to serve.
    pub started: (Instant, SystemTime),
    /// True if only components in the lock are served.
    pub locked: bool,
    /// The project that is built next to it, if any.
    pub build: Option<LastBuild>,
    /// Issues links into the console, if there is one.
    pub(crate) session_gate: Option<Arc<SessionGate>>,
    pub(crate) health: Arc<Health>,
    pub(crate) views: Option<Arc<Sources>>,
}

impl StatusSources {
    /// Its status now.
    pub async fn status(&self) -> Value {
        self.health.check_again().await;
        let catalog = self.current.snapshot();
        let earlier = self.current.held();
        let (running, waiting) = load(earlier.iter().chain([&catalog]));
        let journal = &self.current.journal;
        let Services { tally, calls, log, .. } = &*self.current.services;
        let (replaced, refused) = journal.counts();
        let limits = tally.read().filter(|(_, count)| *count > 0);
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "manifest": absolute(&self.manifest),
            "started": timestamp(self.started.1),
            "uptime_s": self.started.0.elapsed().as_secs(),
            "generation": catalog.tools().generation(),
            "generations_held": earlier.iter().map(|catalog| catalog.tools().generation()).collect::<Vec<_>>(),
            "locked": self.locked,
            "log": log.level(),
            "slot_resets": SLOT_RESETS,
            "components": components(&catalog),
            "tools": tools(&catalog),
            "calls": {"started": calls.load(Ordering::Relaxed), "running": running, "waiting": waiting},
            "limits_hit": limits.map(|(outcome, count)| (outcome.name().to_owned(), count.into())).collect::<serde_json::Map<_, _>>(),
            "reloads": {
                "replaced": replaced,
                "refused": refused,
                "last": journal.attempts().iter().map(attempt).collect::<Vec<_>>(),
            },
            "failed": journal.failed().map(|failed| json!({
                "summary": failed.summary, "drawn": failed.drawn, "problems": failed.problems,
            })),
            "left_out": catalog.left_out().iter().map(|component| json!({
                "component": component.name, "problem": component.problem,
            })).collect::<Vec<_>>(),
            "waits_for_start": journal.waiting(),
            "quarantined": journal.quarantined().iter().map(|held| json!({
                "component": held.component, "differences": held.differences, "digest": held.digest,
                "other_signers": held.other_signers, "since": timestamp(held.since),
            })).collect::<Vec<_>>(),
            "lock_differs": journal.differing(),
            "problems": self.health.problems().iter().map(|problem| json!({
                "part": problem.part.name(), "fails_calls": problem.fails_calls, "text": problem.text,
            })).collect::<Vec<_>>(),
            "walls_missing": named(self.health.walls_missing()),
            "walls_done_without": named(self.health.walls_done_without()),
            "logins": login::in_use(),
            "secret_programs": secret_program::in_use(),
            "dev": self.build.as_ref().map(LastBuild::to_json),
        })
    }
}

/// Missing walls, each with the reason.
fn named(walls: Vec<(String, String)>) -> Value {
    walls.into_iter().map(|(wall, reason)| json!({"wall": wall, "reason": reason})).collect()
}

/// Running and waiting calls of these generations. Tools that share slots share counts.
pub(crate) fn load<'c>(catalogs: impl Iterator<Item = &'c Arc<Catalog>>) -> (usize, usize) {
    let mut seen = std::collections::HashSet::new();
    let offers = catalogs.flat_map(|catalog| catalog.offers());
    let counted = offers.filter(|offer| seen.insert(offer.places())).map(|offer| offer.load());
    counted.fold((0, 0), |(running, waiting), (more, behind)| (running + more, waiting + behind))
}

fn components(catalog: &Catalog) -> Vec<Value> {
    let shown = catalog.components().iter().map(|component| {
        json!({
            "name": component.name(),
            "source": component.policy().source().to_string(),
            "digest": component.digest(),
            "signed_by": component.signed().by,
            "policy_digest": &component.policy_digest,
            "tools": catalog.tools_of(component).len(),
            "standing": catalog.walled.standing(component).map(Standing::name),
        })
    });
    shown.collect()
}

fn tools(catalog: &Catalog) -> Vec<Value> {
    let shown = catalog.offers().map(|offer| {
        let (running, waiting) = offer.load();
        json!({
            "name": offer.tool().definition().name, "component": offer.component().name(),
            "running": running, "waiting": waiting,
        })
    });
    shown.collect()
}

fn attempt(attempt: &ReloadAttempt) -> Value {
    json!({
        "time": timestamp(attempt.time),
        "trigger": attempt.trigger,
        "generation": attempt.generation,
        "replaced": attempt.replaced,
        "announced": attempt.announced,
        "took_ms": u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
        "summary": attempt.summary,
    })
}
