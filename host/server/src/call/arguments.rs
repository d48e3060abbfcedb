//! Rules on arguments: before anything of a call is recorded as started, approved or run, its
//! arguments fit every condition for its caller and its tool. They are checked as the guest gets
//! them, and the guest gets them as they were checked.
use serde_json::value::RawValue;
use toolcell_mcp::{Call, CallerTurn, parse_arguments};

use super::nested::Lineage;
use crate::catalog::arguments::refusal;
use crate::catalog::{ArgumentChecks, Catalog, LARGE_BYTES, QueueRefusal};

/// Bytes of arguments that are read in about 50 µs. Longer ones wait for a turn.
const LONG_BYTES: usize = 16 * 1024;

/// Bytes of arguments that are brought into their form on any thread. A schema of a component may
/// be made so that each byte of them costs microseconds.
const SHORT_BYTES: usize = 1024;

impl Catalog {
    /// The conditions that a call's arguments have to fit.
    fn argument_checks(&self, call: &Call) -> Vec<&ArgumentChecks> {
        let Some(entry) = self.entries.get(call.tool) else { return Vec::new() };
        let own = entry.target().and_then(|target| target.arguments.as_deref());
        own.into_iter().chain(self.visibility.checks(&call.context.caller, entry)).collect()
    }

    /// Leaves the thread if the check of these arguments may take long. If it surely does, waits
    /// for a turn among the caller's calls with large arguments: rates are only counted later.
    pub(super) async fn turn_for_rules(
        &self,
        call: &Call,
        lineage: Option<&Lineage>,
    ) -> Result<Option<CallerTurn<Box<str>>>, QueueRefusal> {
        let text = call.arguments.get();
        let checks = self.argument_checks(call);
        let Some(target) = self.target(call.tool).filter(|_| !checks.is_empty()) else { return Ok(None) };
        let takes_long = text.len() > LONG_BYTES || checks.iter().any(|checks| checks.take_long(text));
        if takes_long || text.len() > SHORT_BYTES {
            toolcell_mcp::leave_thread().await;
        }
        if !takes_long {
            return Ok(None);
        }
        if lineage.is_some_and(|lineage| lineage.holds_turn) {
            return Ok(None);
        }
        let bytes = text.len().max(LARGE_BYTES);
        let context = &call.context;
        self.services.caller_queues.turn(context.caller.name(), bytes, &target.limits, &context.cancellation).await
    }

    /// Checks a call's arguments, after bringing them into the form in which the guest gets them.
    /// True if they are in that form now: the sandbox process must not change them again.
    ///
    /// # Errors
    /// The text for the client, which names each rule.
    pub(super) fn hold_to_rules(&self, call: &mut Call) -> Result<bool, String> {
        let checks = self.argument_checks(call);
        let Some(tool) = self.target(call.tool).map(|target| &target.tool).filter(|_| !checks.is_empty()) else {
            return Ok(false);
        };
        // Readers differ in which of two values they take.
        parse_arguments(call.arguments.get().to_owned()).map_err(|refusal| refusal.to_string())?;
        if let Some(conformed) = tool.conformed(&call.arguments) {
            call.arguments = RawValue::from_string(conformed).map_err(|_| "the arguments cannot be read".to_owned())?;
        }
        match refusal(checks, call.arguments.get()) {
            Some(refused) => Err(refused),
            None => Ok(true),
        }
    }
}
