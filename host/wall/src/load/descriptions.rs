//! Texts about a component from outside, as they were found: nobody has read them yet.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Texts and names that are not the component's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenDescriptions {
    /// The functions that are tools, as in WIT with interface, and the tools' names. Where there
    /// are none, each function is a tool by the name that it has by itself.
    pub exports: Vec<(String, String)>,
    /// By names as in WIT: `get-forecast`, `get-forecast.city`, `place`, `place.lat`. They win.
    pub given: BTreeMap<String, String>,
    /// The `.wit` files of each package; none where no files are named.
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
