//! Answers of a person about a call that a tool makes: it alone, some calls of this tool in this
//! run, calls of it for a time, or none.
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcell_mcp::Call;
use toolcell_policy::Approval;
use toolcell_policy::quantity::show_millis;
use toolcell_sandbox::ComponentDigest;

use super::StartedCall;
use super::nested::Lineage;
use super::run::GRANTED_MAX;

/// Calls that a form offers until the person writes another number.
const GRANTED_OFFERED: u32 = 10;

/// What a person allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NestedAnswer {
    /// This call.
    Once,
    /// So many calls of this tool in this run, this one included.
    Run(u32),
    /// This call, and further ones for the time of `remember`.
    Remember,
    /// Nothing.
    No,
}

impl NestedAnswer {
    /// The answer in a form that was sent. One without a choice allows the call that was shown.
    pub(super) fn of_form(content: &str) -> Self {
        let content: Map<String, Value> = serde_json::from_str(content).unwrap_or_default();
        match content.get("allow").and_then(Value::as_str) {
            None | Some("once") => Self::Once,
            Some("run") => {
                let calls = content.get("calls").map_or(Some(u64::from(GRANTED_OFFERED)), Value::as_u64);
                let calls = calls.and_then(|calls| u32::try_from(calls).ok());
                calls.filter(|calls| (1..=GRANTED_MAX).contains(calls)).map_or(Self::No, Self::Run)
            }
            Some("remember") => Self::Remember,
            Some(_) => Self::No,
        }
    }

    /// What it allows, for the audit.
    pub(super) fn detail(self) -> Option<String> {
        match self {
            Self::Run(calls) => Some(format!("{calls} calls of this tool in this run")),
            Self::Once | Self::Remember | Self::No => None,
        }
    }
}

/// The form of the question, whose schema every client shows.
pub(super) fn form(approval: Approval) -> String {
    let mut choices = vec![
        ("once", "this call".to_owned()),
        ("run", "this tool in this run, for at most as many calls as given below".to_owned()),
    ];
    if let Some(time) = approval.remember() {
        choices.push(("remember", format!("this call, and further ones for {}", shown(time))));
    }
    choices.push(("no", "nothing".to_owned()));
    let (names, meanings): (Vec<&str>, Vec<String>) = choices.into_iter().unzip();
    let allow = json!({"type": "string", "title": "Allow", "enum": names, "enumNames": meanings, "default": "once"});
    let calls = json!({
        "type": "integer", "title": "Calls in this run, this one included",
        "minimum": 1, "maximum": GRANTED_MAX, "default": GRANTED_OFFERED,
    });
    json!({"type": "object", "properties": {"allow": allow, "calls": calls}}).to_string()
}

/// A time for people.
pub(super) fn shown(time: Duration) -> String {
    show_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Exactly what an approval is for. A call that differs in any of it needs another one.
pub(super) struct Permit {
    /// Calls of the tool by this caller, with the code and the policy that its component has now.
    pub(super) calls: String,
    /// This call: with its whole arguments, of which the person may see a part.
    pub(super) call: String,
}

impl Lineage {
    /// What a person allows several of: calls by the tool above.
    fn subject(&self, permit: &Permit) -> String {
        [self.asker.as_str(), &permit.calls].join("\n")
    }

    /// Sentences about the run, for the person. The place is what the program says: nothing checks
    /// it, and it is only numbers.
    pub(super) fn about_run(&self) -> String {
        let made = self.run.made_before(&self.path);
        let place = self.place.map(|place| format!("The call stands at {place} of its script. ")).unwrap_or_default();
        format!("{place}Calls that this run has made so far: {made}.")
    }
}

impl StartedCall<'_> {
    /// What an approval of this call is for.
    pub(super) fn permit(&self, call: &Call) -> Permit {
        let component = &self.target.component;
        let caller = call.context.caller.name();
        let calls = [caller, self.name(), &component.digest, &component.policy_digest].join("\n");
        let arguments = ComponentDigest::of(call.arguments.get().as_bytes()).to_string();
        // The state of a client's rounds is bound to the tool and its rights by itself.
        let call = if self.lineage.is_some() { [calls.as_str(), &arguments].join("\n") } else { arguments };
        Permit { calls, call }
    }

    /// True if a person has allowed this call in an earlier round, or with an earlier call.
    pub(super) fn is_granted(&self, permit: &Permit) -> bool {
        let Some(lineage) = self.lineage.as_deref() else { return false };
        if lineage.run.is_allowed(&lineage.path, &permit.call) {
            self.note_approval("granted", Some("in an earlier round"));
            return true;
        }
        let Some(left) = lineage.run.take_granted(&lineage.subject(permit)) else { return false };
        lineage.run.allow(&lineage.path, &permit.call);
        self.note_approval("granted", Some(&format!("for this run; {left} left")));
        true
    }

    /// Notes that a person allows this call, and perhaps further ones.
    pub(super) fn grant(&self, permit: &Permit, answer: NestedAnswer) {
        let Some(lineage) = self.lineage.as_deref() else { return };
        lineage.run.allow(&lineage.path, &permit.call);
        if let NestedAnswer::Run(calls) = answer {
            lineage.run.grant(lineage.subject(permit), calls.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_allows_what_it_says_and_no_more() {
        for (content, expected) in [
            ("{}", NestedAnswer::Once),
            (r#"{"allow":"once","calls":5}"#, NestedAnswer::Once),
            (r#"{"allow":"run"}"#, NestedAnswer::Run(10)),
            (r#"{"allow":"run","calls":1}"#, NestedAnswer::Run(1)),
            (r#"{"allow":"run","calls":100}"#, NestedAnswer::Run(100)),
            (r#"{"allow":"run","calls":101}"#, NestedAnswer::No),
            (r#"{"allow":"run","calls":0}"#, NestedAnswer::No),
            (r#"{"allow":"run","calls":-1}"#, NestedAnswer::No),
            (r#"{"allow":"run","calls":"many"}"#, NestedAnswer::No),
            (r#"{"allow":"remember"}"#, NestedAnswer::Remember),
            (r#"{"allow":"no"}"#, NestedAnswer::No),
            (r#"{"allow":"all"}"#, NestedAnswer::No),
        ] {
            assert_eq!(NestedAnswer::of_form(content), expected, "{content}");
        }
    }
}
