//! Events and their records. Must not hold: where records go.
//!
//! Events borrow what they name: making one allocates nothing.

mod alert;
mod call;
mod catalog;
mod console;
mod host;
mod login;
mod outcome;
mod request;
mod resource;
mod text;

use serde::Serialize;

pub use alert::AlertRaised;
pub use call::{CallAsked, CallDenied, CallFinished, CallRefused, CallResumed, CallStarted};
pub use catalog::{CatalogRefused, CatalogReplaced, ComponentApproved, ComponentQuarantined};
pub use console::{ConsoleDecided, ConsoleDeciding};
pub use host::{AuditMissed, AuditRepaired, AuditRotated, ComponentLoaded, ComponentRefused, HostStarted, HostStopped};
pub use login::LoginChanged;
pub use outcome::{Outcome, Usage};
pub use request::RequestRefused;
pub use resource::ResourceRead;
pub use text::{ARGUMENTS_BYTES_MAX, ArgumentsText, Clipped, TEXT_BYTES_MAX};

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event")]
pub enum Event<'a> {
    /// The process began to serve.
    #[serde(rename = "host.started")]
    HostStarted(HostStarted<'a>),
    /// A component was loaded and will be served.
    #[serde(rename = "component.loaded")]
    ComponentLoaded(ComponentLoaded<'a>),
    /// A component was not loaded.
    #[serde(rename = "component.refused")]
    ComponentRefused(ComponentRefused<'a>),
    /// A new catalog starts to serve.
    #[serde(rename = "catalog.replaced")]
    CatalogReplaced(CatalogReplaced<'a>),
    /// A new catalog was refused.
    #[serde(rename = "catalog.refused")]
    CatalogRefused(CatalogRefused<'a>),
    /// A component differs from the lock.
    #[serde(rename = "component.quarantined")]
    ComponentQuarantined(ComponentQuarantined<'a>),
    /// An operator approved a quarantined component.
    #[serde(rename = "component.approved")]
    ComponentApproved(ComponentApproved<'a>),
    /// A client had a file read as a resource.
    #[serde(rename = "resource.read")]
    ResourceRead(ResourceRead<'a>),
    /// Something failed or was denied so often that an operator should look into it.
    #[serde(rename = "alert.raised")]
    AlertRaised(AlertRaised<'a>),
    /// Requests were refused before they were calls.
    #[serde(rename = "request.refused")]
    RequestRefused(RequestRefused<'a>),
    /// A call is about to run.
    #[serde(rename = "call.started")]
    CallStarted(CallStarted<'a>),
    /// A call was refused before anything of it ran.
    #[serde(rename = "call.refused")]
    CallRefused(CallRefused<'a>),
    /// A guest asked for something that no grant allows.
    #[serde(rename = "call.denied")]
    CallDenied(CallDenied<'a>),
    /// Somebody behind a call's caller was asked something, or to confirm the call.
    #[serde(rename = "call.asked")]
    CallAsked(CallAsked<'a>),
    /// A call goes on where an earlier one stopped for a person's answer.
    #[serde(rename = "call.resumed")]
    CallResumed(CallResumed<'a>),
    /// A call ended.
    #[serde(rename = "call.finished")]
    CallFinished(CallFinished<'a>),
    /// A caller logged in, failed to, or lost the login.
    #[serde(rename = "login.changed")]
    LoginChanged(LoginChanged<'a>),
    /// An operator sent a decision, which is about to be carried out.
    #[serde(rename = "console.deciding")]
    ConsoleDeciding(ConsoleDeciding<'a>),
    /// An operator decided something in the console, or entered it.
    #[serde(rename = "console.decided")]
    ConsoleDecided(ConsoleDecided<'a>),
    /// The process ends.
    #[serde(rename = "host.stopped")]
    HostStopped(HostStopped<'a>),
    /// The audit continues in a new file.
    #[serde(rename = "audit.rotated")]
    AuditRotated(AuditRotated),
    /// The sink found a torn record at the end of the file, and cut it off.
    #[serde(rename = "audit.repaired")]
    AuditRepaired(AuditRepaired),
    /// Records before this one could not be written.
    #[serde(rename = "audit.missed")]
    AuditMissed(AuditMissed),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    #[test]
    fn fields_have_a_fixed_order_and_durations_are_microseconds() {
        let finished = Event::CallFinished(CallFinished {
            id: 7,
            tool: "echo",
            outcome: Outcome::OutOfFuel,
            usage: Usage {
                fuel: 1,
                memory_peak_bytes: 2,
                duration: Duration::from_millis(3),
                log_bytes: 4,
                output_bytes: 5,
                egress_bytes: 6,
                ingress_bytes: 7,
                denials: 8,
            },
            uses: None,
            uses_left_out: 0,
            detail: None,
            recording: Some("a/b.jsonl"),
        });
        assert_eq!(
            serde_json::to_string(&finished).unwrap(),
            "{\"event\":\"call.finished\",\"id\":7,\"tool\":\"echo\",\"outcome\":\"out_of_fuel\",\"usage\":{\"fuel\":1,\
             \"memory_peak_bytes\":2,\"duration_us\":3000,\"log_bytes\":4,\"output_bytes\":5,\
             \"egress_bytes\":6,\"ingress_bytes\":7,\"denials\":8},\"recording\":\"a/b.jsonl\"}"
        );
    }

    #[test]
    fn a_text_from_outside_is_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let shown: String = serde_json::from_str(&serde_json::to_string(&Clipped(&long)).unwrap()).unwrap();
        assert_eq!(shown, format!("{}…", "é".repeat(TEXT_BYTES_MAX / 2)));
        assert_eq!(serde_json::to_string(&Clipped("a\u{1b}")).unwrap(), "\"a\\u001b\"");
    }

    #[test]
    fn outcomes_are_recorded_under_their_names() {
        for outcome in Outcome::ALL {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), format!("\"{}\"", outcome.name()));
        }
    }
}
