//! The table of what a call may ask the person, the model or the client behind its caller. Must not hold: whether it may ask.

use super::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub(super) const ASKS: Spec = Spec {
    key: "asks",
    unit: Unit::Count,
    default: 8,
    min: 0,
    max: 64,
    reason: "Questions of a call. A person answers a few; more is a form of its own. 0: the tool cannot ask.",
};

pub(super) const ASK_BYTES: Spec = Spec {
    key: "ask_bytes",
    unit: Unit::Bytes,
    default: 16 * KIB,
    // A message and the smallest form.
    min: 256,
    max: MIB,
    reason: "One question: its texts, its form's schema or its messages for a model. Nobody reads more than the default.",
};

pub(super) const ANSWER_BYTES: Spec = Spec {
    key: "answer_bytes",
    unit: Unit::Bytes,
    default: 64 * KIB,
    min: 256,
    max: MIB,
    reason: "One answer as JSON. The default is a long text of a model or a person; pictures need more.",
};

pub(super) const ASK_WAIT: Spec = Spec {
    key: "ask_wait",
    unit: Unit::Millis,
    default: 300_000,
    min: 1_000,
    max: 86_400_000,
    reason: "How long a call waits for answers, all its questions together; with clients of 2026-07-28, how long each round \
             may take to come back. People need minutes. The deadline stands still meanwhile, and the call keeps its place \
             among the tool's `concurrency`.",
};
