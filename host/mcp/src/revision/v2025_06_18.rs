//! Revision 2025-06-18: adds titles, output schemas and structured objects, resource links, `_meta` everywhere.

use super::features::{Features, Structured};

pub(super) const FEATURES: Features = Features {
    batches: false,
    hints: true,
    titles: true,
    icons: false,
    metas: true,
    audio: true,
    links: true,
    last_modified: true,
    progress_message: true,
    structured: Structured::Objects,
    elicitation: true,
    rich_asks: false,
    typed_results: false,
};
