//! Revision 2025-11-25: adds icons, and more about the server itself.

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
    structured: Structured::Objects,
    elicitation: true,
    rich_asks: true,
    typed_results: false,
};
