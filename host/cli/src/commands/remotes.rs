//! Bridges to other MCP servers: their lists read now, for the commands that add, compare and
//! update them.
use std::collections::HashSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcell_bridge::lines::{Elicitation, PASSED, PASSES_ELICITATION, RemoteServer};
use toolcell_bridge::{Bridge, BridgeError, RemoteList, RemoteOptions, ToolDefinition, extracted, remote_server};
use toolcell_mcp::{McpTool, ToolDefinition as ServedDefinition};
use toolcell_policy::{AdvisedFault, ComponentPolicy, EnvSource, Manifest, SourceRef};
use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::file::read_bounded;
use toolcell_server::remotes::{self, SecretFields};

/// Time to check the schemas of one list or document. The author of a schema decides how much work
/// it is.
const CHECKED_WITHIN: Duration = Duration::from_secs(20);

/// Problems of a definition that are shown: the first one says what to look at.
const PROBLEM_CHARS_MAX: usize = 200;

/// A component of the manifest that is a bridge to another MCP server.
pub struct KnownBridge<'m> {
    pub component: &'m ComponentPolicy,
    /// Its file.
    pub path: PathBuf,
    pub server: RemoteServer,
    /// Its definitions, as they are embedded.
    definitions: Vec<u8>,
}

/// The bridges among a manifest's components. Files that cannot be read are passed over: loading
/// them reports that.
pub fn of_manifest<'m>(manifest: &'m Manifest, folder: &Path) -> Vec<KnownBridge<'m>> {
    manifest.components().iter().filter_map(|component| KnownBridge::of(component, folder)).collect()
}

/// Runs this to its end, on a runtime of its own.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, AdvisedFault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AdvisedFault::unadvised(format!("no thread can be made ready: {error}")))?;
    Ok(runtime.block_on(work))
}

/// The tools of a list that this host can serve.
pub fn bridge(list: RemoteList, options: RemoteOptions) -> Result<Bridge, BridgeError> {
    Bridge::of_remote(list, options, check())
}

/// Says why the host cannot serve a tool, as the end of a sentence. All tools together are checked
/// within [`CHECKED_WITHIN`].
pub fn check() -> impl Fn(&ToolDefinition) -> Result<(), String> {
    let end = Instant::now() + CHECKED_WITHIN;
    move |tool| check_one(tool, end)
}

/// What a bridge passes on, by its variables in the manifest.
fn elicitation(component: &ComponentPolicy) -> Elicitation {
    let is_passed = component.grants().env().iter().any(|variable| {
        variable.name() == PASSES_ELICITATION && *variable.source() == EnvSource::Text(PASSED.to_owned())
    });
    Elicitation { form: is_passed, page: is_passed }
}

fn check_one(tool: &ToolDefinition, end: Instant) -> Result<(), String> {
    if Instant::now() > end {
        return Err(format!("is not checked: the schemas of all tools take longer than {CHECKED_WITHIN:?}"));
    }
    let definition = ServedDefinition {
        title: tool.title.clone(),
        output_schema: tool.output.clone(),
        ..ServedDefinition::new(tool.name.as_str(), tool.description.as_str(), tool.input.clone())
    };
    let Err(problems) = McpTool::compile(definition) else { return Ok(()) };
    let first = problems.first().map(|problem| format!("{}: {}", problem.field, problem.message));
    let first: String = first.unwrap_or_default().chars().take(PROBLEM_CHARS_MAX).collect();
    Err(format!("cannot be served: {first}"))
}

impl<'m> KnownBridge<'m> {
    fn of(component: &'m ComponentPolicy, folder: &Path) -> Option<Self> {
        let SourceRef::File(source) = component.source() else { return None };
        let path = folder.join(source);
        let bytes = read_bounded(&path, COMPONENT_BYTES_MAX).ok()?;
        let server = remote_server(&bytes)?;
        Some(Self { component, path, server, definitions: extracted(&bytes)? })
    }

    /// The bridge as its server's list makes it now, if that is another one.
    pub fn changed(&self, manifest: &Manifest, folder: &Path) -> Result<Option<Bridge>, AdvisedFault> {
        let state = folder.join(manifest.server().state());
        let read = block_on(async {
            let secrets = SecretFields::of(self.component, &self.server.url, folder, &state).await?;
            remotes::read(&self.server.url, &secrets, elicitation(self.component)).await
        })??;
        let options = RemoteOptions {
            address: self.server.url.clone(),
            selection: self.server.selection.clone(),
            secrets: Vec::new(),
            passes_elicitation: false,
        };
        let now = bridge(read.list, options).map_err(|error| AdvisedFault::new(error.problem, error.hint))?;
        Ok(Some(now).filter(|now| now.definitions.bytes() != self.definitions))
    }

    /// The tools of this newer list that the component does not have in the same form.
    pub fn new_or_changed(&self, now: &Bridge) -> Vec<ToolDefinition> {
        let known: HashSet<&[u8]> = self.definitions.split(|byte| *byte == b'\n').collect();
        // What cannot be written is shown.
        let is_known = |tool: &&ToolDefinition| serde_json::to_vec(tool).is_ok_and(|line| known.contains(&*line));
        now.definitions.tools.iter().filter(|tool| !is_known(tool)).cloned().collect()
    }
}
