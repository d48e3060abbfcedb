//! Revision 2026-07-28: drops the handshake; any structured value, `resultType` and caching hints.

use super::features::{Features, Structured};

pub(super) const FEATURES: Features = Features {
    batches: false,
    hints: true,
    titles: true,
    icons: true,
    metas: true,
    audio: true,
    links: true,
    last_modified: true,
    progress_message: true,
    structured: Structured::Any,
    elicitation: true,
    rich_asks: true,
    typed_results: true,
};
