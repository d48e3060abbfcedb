//! Descriptions of a component from outside, as found: still unparsed.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Descriptions and names that do not come from the component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenDescriptions {
    /// The functions that are tools, as in WIT with interface, and the tools' names. If empty, each
    /// function is a tool under its own name.
    pub exports: Vec<(String, String)>,
    /// By names as in WIT: `get-forecast`, `get-forecast.city`, `place`, `place.lat`. They win.
    pub given: BTreeMap<String, String>,
    /// The `.wit` files of each package; `None` if no files are named.
    pub wit: Option<Vec<Vec<WitFile>>>,
    /// The project's files, for a component that `toolcell dev` serves.
    pub dev_source: Option<String>,
}

/// One `.wit` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitFile {
    /// Its name in problems.
    pub name: String,
    /// Its text.
    pub text: String,
}
