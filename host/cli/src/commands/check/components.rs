//! Components with their shapes and tools, as a table and as JSON.
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_policy::Style;
use toolcell_server::catalog::{Catalog, LoadedComponent};

use crate::terminal::{bold, listed};

/// Most tools of one component named in the table; the rest is counted. `--json` has them all.
const TOOLS_SHOWN_MAX: usize = 20;

/// A line for each component: its name, its shape and its tools.
pub fn table(catalog: &Catalog, style: Style) -> String {
    let components = catalog.components();
    let width = components.iter().map(|component| component.name().len()).max().unwrap_or(0);
    let shape_width = components.iter().map(|component| component.shape().as_str().len()).max().unwrap_or(0);
    let line = |component: &Arc<LoadedComponent>| {
        let tools = catalog.tools_of(component);
        let mut shown: Vec<String> = tools.iter().take(TOOLS_SHOWN_MAX).map(|&tool| tool.to_owned()).collect();
        if tools.len() > TOOLS_SHOWN_MAX {
            shown.push(format!("and {} more", tools.len() - TOOLS_SHOWN_MAX));
        }
        let name = component.name();
        let shape = component.shape().as_str();
        let row = listed(&format!("{name:<width$}  {shape:<shape_width$}  "), &shown);
        row.replacen(name, &bold(name, style), 1)
    };
    let lines: String = components.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// What `wasi = "0.3"` means, for each component that has it; empty without any.
pub fn later_wasi(catalog: &Catalog) -> String {
    let later = catalog.components().iter().filter(|component| component.inspection().is_later_wasi());
    let lines: String = later
        .map(|component| {
            format!(
                "{}: runs with WASI 0.3: the same grants and limits hold, but the engine's code for it is newer and \
                 less tried than that for 0.2\n",
                component.name()
            )
        })
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Components with `name`, `digest`, `shape`, `adapted` (true for an adapted preview-1 module),
/// `wasi_0_3` and `tools`.
pub fn to_json(catalog: &Catalog) -> Value {
    let component = |component: &Arc<LoadedComponent>| {
        let inspection = component.inspection();
        json!({
            "name": component.name(),
            "digest": inspection.digest().to_string(),
            "shape": component.shape().as_str(),
            "adapted": inspection.is_adapted(),
            "wasi_0_3": inspection.is_later_wasi(),
            "tools": catalog.tools_of(component),
        })
    };
    catalog.components().iter().map(component).collect()
}
