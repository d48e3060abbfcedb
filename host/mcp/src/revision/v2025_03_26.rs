//! Revision 2025-03-26: adds tool annotations, audio, progress messages, and batches (which the next one takes back).

use super::features::{Features, Structured};

pub(super) const FEATURES: Features = Features {
    batches: true,
    hints: true,
    titles: false,
    icons: false,
    metas: false,
    audio: true,
    links: false,
    last_modified: false,
    progress_message: true,
    structured: Structured::No,
    elicitation: false,
    rich_asks: false,
    typed_results: false,
};
