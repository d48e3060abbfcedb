//! Records of calls.

use serde::Serialize;

use super::{ArgumentsText, Clipped, Outcome, Usage};

/// A call is about to run.
#[derive(Debug, Clone, Serialize)]
pub struct CallStarted<'a> {
    /// Counts the calls of this process; every other record of the call has the same.
    pub id: u64,
    /// The catalog the call runs on.
    pub generation: u64,
    /// `legacy` or `modern`.
    pub era: &'a str,
    /// The protocol's revision, such as `2025-11-25`.
    pub revision: &'a str,
    /// Who calls; `local` where the transport has one caller.
    pub caller: Clipped<'a>,
    /// The request's id, as the client wrote it.
    pub request: Clipped<'a>,
    /// The W3C trace context's trace id, where the client sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Clipped<'a>>,
    /// The call that made this one, where a tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The client's call that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<u64>,
    /// The number of calls above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// `sha256:…` of the component's bytes.
    pub component_digest: &'a str,
    /// `sha256:…` of its policy's canonical form.
    pub policy_digest: &'a str,
    /// `sha256:…` of the arguments as the client wrote them.
    pub arguments_digest: &'a str,
    /// Their bytes.
    pub arguments_bytes: u64,
    /// The arguments themselves, where they are asked for: [`crate::Settings::arguments`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentsText<'a>>,
}

/// A call was refused before anything of it ran; it has no other record.
#[derive(Debug, Clone, Serialize)]
pub struct CallRefused<'a> {
    /// The call, as its start would have been recorded.
    #[serde(flatten)]
    pub call: CallStarted<'a>,
    /// [`Outcome::InvalidInput`] from the input schema, [`Outcome::LimitExceeded`] from the size of
    /// the arguments.
    pub outcome: Outcome,
    /// The reason for the refusal.
    pub detail: Clipped<'a>,
}

/// A guest asked for something that no grant allows; the call goes on.
#[derive(Debug, Clone, Serialize)]
pub struct CallDenied<'a> {
    /// As in `call.started`.
    pub id: u64,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// The kind of thing that was asked for: `http`, `tcp`, `filesystem`.
    pub capability: &'a str,
    /// The thing that was asked for: `GET https://x.example/`.
    pub asked: Clipped<'a>,
    /// The rule or the reason that decided.
    pub reason: Clipped<'a>,
    /// The section of the manifest that could allow it, where one could:
    /// `components.weather.network`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<Clipped<'a>>,
    /// The line that would allow it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Clipped<'a>>,
}

/// Somebody behind the caller was asked something, or to confirm the call. What was asked and
/// answered is not recorded.
#[derive(Debug, Clone, Serialize)]
pub struct CallAsked<'a> {
    /// As in `call.started`.
    pub id: u64,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// `approval` where the host asks whether the call may run; else what the guest asks: `form`,
    /// `page`, `sampling`, `roots`.
    pub asked: &'a str,
    /// The key of the question.
    pub key: Clipped<'a>,
    /// The outcome: `accepted`, `declined`, `dismissed`, `answered`; `pending` if the caller has to
    /// repeat the call with the answer; `remembered` if an earlier approval holds;
    /// `granted` if an answer about an earlier call of the same run holds; `unsupported`,
    /// `refused`, `timed_out`, `cancelled` or `failed` without an answer.
    pub answer: &'a str,
    /// The reason for a missing answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Clipped<'a>>,
}

/// A call goes on where an earlier one of its client stopped for a person's answer.
#[derive(Debug, Clone, Serialize)]
pub struct CallResumed<'a> {
    /// As in `call.started`.
    pub id: u64,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// Calls of other tools that ran for an earlier one, and do not run again.
    pub calls: u64,
}

/// A call ended.
#[derive(Debug, Clone, Serialize)]
pub struct CallFinished<'a> {
    /// As in `call.started`.
    pub id: u64,
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The outcome.
    pub outcome: Outcome,
    /// The resources it used.
    pub usage: Usage,
    /// The grants that it used through the host, each once: `GET https://x.example/`. Only where
    /// uses are recorded: [`Settings::uses`](crate::Settings::uses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<&'a [Clipped<'a>]>,
    /// How often it used something else, which is too much or too long for a record.
    #[serde(skip_serializing_if = "is_zero")]
    pub uses_left_out: u64,
    /// Details for an operator besides the outcome: a trap's backtrace, a fault of the host, what
    /// is wrong with the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Clipped<'a>>,
    /// The file of its recording, relative to the folder of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(super) const fn is_zero(number: &u64) -> bool {
    *number == 0
}
