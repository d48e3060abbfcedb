//! Revision 2024-11-05: the first. Text, images and embedded resources; tools are name, description and input schema.

use super::features::{Features, Structured};

pub(super) const FEATURES: Features = Features {
    batches: false,
    hints: false,
    titles: false,
    icons: false,
    metas: false,
    audio: false,
    links: false,
    last_modified: false,
    progress_message: false,
    structured: Structured::No,
    elicitation: false,
    rich_asks: false,
    typed_results: false,
};
