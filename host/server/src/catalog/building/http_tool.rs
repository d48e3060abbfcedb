//! The component of a request that the manifest writes out: the bridge, with this request in it.

use toolcell_bridge::{Bridge, HttpToolRequest, embedded};
use toolcell_policy::{ComponentPolicy, Diagnostic, HttpRule, HttpTool};

use super::code::{Code, not_read};
use super::problems::unreadable;
use crate::fetching::trust::Signed;
use crate::files::file;
use crate::files::shipped;

/// The bytes. The same lines and the same program always give the same ones.
pub(super) fn code(policy: &ComponentPolicy, tool: &HttpTool) -> Result<Code, Diagnostic> {
    let request = HttpToolRequest {
        name: policy.name(),
        method: tool.method(),
        url: tool.url(),
        description: tool.description(),
        input: tool.input(),
    };
    let bridge = Bridge::of_http_tool(&request).map_err(|error| not_read(policy, error.problem, error.hint))?;
    check_granted(policy, &bridge)?;
    let path = shipped::bridge().ok_or_else(|| {
        not_read(policy, "the bridge's component is not beside this program".to_owned(), shipped::BRIDGE_HOW.to_owned())
    })?;
    let shown = path.display().to_string();
    let guest =
        file::read(&path, policy.load().component_bytes()).map_err(|error| unreadable(policy, &shown, &error))?;
    let bytes = embedded(&guest, &bridge.definitions.bytes())
        .map_err(|error| not_read(policy, format!("{shown}: {error}"), shipped::BRIDGE_HOW.to_owned()))?;
    Ok(Code { bytes: bytes.into(), signed: Signed::default(), dev_source: None })
}

/// Checks that `network` allows the request: the rule is written beside it, and never made of it.
fn check_granted(policy: &ComponentPolicy, bridge: &Bridge) -> Result<(), Diagnostic> {
    for rule in &bridge.grants.http {
        let parsed = HttpRule::parse(rule, policy.source_span())
            .map_err(|error| not_read(policy, format!("no rule can allow {rule}: {error}"), String::new()))?;
        if !policy.grants().network().allows_all_of(&parsed) {
            let hint = format!("add http = [\"{rule}\"] to [components.{}.network]", policy.name());
            return Err(not_read(policy, "its request is not granted".to_owned(), hint));
        }
    }
    Ok(())
}
