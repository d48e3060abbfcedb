//! A component in a sandbox process, with the policy of its tools.
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolcell_policy::{ComponentPolicy, Limits, Program, Source, parse};
use toolcell_schema::SchemaTexts;
use toolcell_wall::load::facts::{CodeFacts, ShapeName};

use super::check_thread::CheckThread;
use super::checks::{CompileBudget, ToolChecks};
use crate::load::component::ToolComponent;
use crate::load::sandbox::Sandbox;
use crate::recording::{NotRecordable, Recorder, RecordingLink, TapedCall};
use crate::run::call::InstanceSource;
use crate::run::warm::{PrewarmSetup, PrewarmedInstances, PrewarmedTool};
use crate::wasi::files::HandedFiles;
use crate::wasi::guest_grants::{GuestGrants, HandedValues};
use toolcell_wall::contract::GuestResult;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{HandedSecret, LoadComponent, ToolSchemas};
use toolcell_wall::report::CallReport;
use toolcell_wall::tape::TapeUse;

/// The code that comes with a component.
pub(super) struct HandedCode {
    pub(super) own: File,
    /// That of the relay, if its calls may be recorded.
    pub(super) relay: Option<(CodeFacts, File)>,
}

/// What else comes with a component.
pub(super) struct HandedParts {
    pub(super) files: HandedFiles,
    pub(super) schemas: Vec<ToolSchemas>,
    pub(super) checks: CheckThread,
}

/// A component that is ready for calls.
pub(super) struct ReadyComponent {
    component: Arc<ToolComponent>,
    /// The relay, if its calls may be recorded.
    relay: Option<ToolComponent>,
    /// Its links for calls that are recorded, and for those that are replayed. Each is made at the
    /// first such call.
    recording: OnceLock<Result<Arc<RecordingLink>, String>>,
    replaying: OnceLock<Result<Arc<RecordingLink>, String>>,
    policy: ComponentPolicy,
    values: HandedValues,
    /// The schemas of its tools, by tool name.
    schemas: HashMap<String, SchemaTexts>,
    budget: CompileBudget,
    /// Made at their first call.
    tools: Mutex<HashMap<String, Result<Arc<LoadedTool>, String>>>,
}

/// One of its tools.
pub(super) struct LoadedTool {
    /// Its name inside the component.
    pub(super) export: String,
    pub(super) limits: Limits,
    pub(super) capabilities: Arc<GuestGrants>,
    program: Option<Arc<Program>>,
    warm: Option<Arc<PrewarmedInstances>>,
    pub(super) checks: ToolChecks,
}

/// The report of a call that did not run.
pub(super) fn not_run(problem: &str) -> CallReport<GuestResult> {
    CallReport::not_run(CallFailure::Host { detail: problem.to_owned() })
}

impl ReadyComponent {
    pub(super) fn new(
        sandbox: &Sandbox,
        load: &LoadComponent,
        code: &HandedCode,
        parts: HandedParts,
    ) -> Result<Self, String> {
        let HandedParts { files, schemas, checks } = parts;
        let parsed = parse(&Source { name: "excerpt", text: &load.manifest });
        let manifest = parsed.map_err(|problems| {
            let first = problems.first().map(|problem| problem.message().to_owned());
            first.unwrap_or_else(|| "its manifest is not valid".to_owned())
        })?;
        let policy = manifest.manifest.components().first().cloned().ok_or("its manifest names no component")?;
        let secret = |secret: &HandedSecret| (secret.source.clone(), secret.value());
        let values = HandedValues {
            variables: load.variables.iter().cloned().collect(),
            secrets: load.secrets.iter().map(secret).collect(),
            files,
            dev_source: load.dev_source.clone(),
            observing: load.observing,
        };
        let handed = |code: &File, facts: &CodeFacts| {
            ToolComponent::handed(sandbox, code, facts).map_err(|error| error.to_string())
        };
        let component = handed(&code.own, &load.facts)?;
        let relay = code.relay.as_ref().map(|(facts, code)| handed(code, facts)).transpose()?;
        Ok(Self {
            component: Arc::new(component),
            relay,
            recording: OnceLock::new(),
            replaying: OnceLock::new(),
            budget: CompileBudget::new(policy.load().compile_time(), checks),
            schemas: schemas.into_iter().map(|schemas| (schemas.tool, schemas.texts)).collect(),
            policy,
            values,
            tools: Mutex::default(),
        })
    }

    /// Its name in the manifest.
    pub(super) fn name(&self) -> &str {
        self.policy.name()
    }

    pub(super) fn component(&self) -> &ToolComponent {
        &self.component
    }

    /// A call that uses this tape so. `None` if it runs without it: calls of this component cannot
    /// be recorded, and the tape says so.
    ///
    /// # Errors
    /// Calls of this component cannot be replayed.
    pub(super) fn taped(&self, does: TapeUse, file: Arc<File>) -> Result<Option<TapedCall>, String> {
        let code = self.component.pre().component();
        let link = |link: Result<RecordingLink, NotRecordable>| link.map(Arc::new).map_err(|error| error.to_string());
        let link = match (does, &self.relay) {
            (TapeUse::Record, None) => return Err("its calls are not recorded here".to_owned()),
            (TapeUse::Record, Some(relay)) => {
                self.recording.get_or_init(|| link(RecordingLink::recording(relay.pre(), code)))
            }
            (TapeUse::Replay | TapeUse::Compare, _) => {
                self.replaying.get_or_init(|| link(RecordingLink::replaying(code)))
            }
        };
        match link {
            Ok(link) => Ok(Some(TapedCall::new(Arc::clone(link), file, does))),
            Err(why) if does == TapeUse::Record => {
                Recorder::cut(&file, why);
                Ok(None)
            }
            Err(problem) => Err(problem.clone()),
        }
    }

    /// The tool of this name.
    pub(super) fn tool(&self, name: &str, warm: &PrewarmSetup) -> Result<Arc<LoadedTool>, String> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = tools.get(name) {
            return tool.clone();
        }
        let tool = self.prepare(name, warm).map(Arc::new);
        tools.insert(name.to_owned(), tool.clone());
        tool
    }

    fn prepare(&self, name: &str, warm: &PrewarmSetup) -> Result<LoadedTool, String> {
        let capabilities = GuestGrants::of(&self.policy.tool_grants(name), &self.values)?;
        let limits = self.policy.returning(self.policy.tool_limits(name));
        let program = self.program(name);
        let count = self.policy.prewarm();
        let warm = (count > 0).then(|| {
            let component = Arc::clone(&self.component);
            let capabilities = Arc::clone(&capabilities);
            PrewarmedInstances::new(PrewarmedTool { component, limits, capabilities, count }, warm.clone())
        });
        let texts = self.schemas.get(name).cloned().ok_or("its schemas did not come with its component")?;
        // A function refuses arguments that do not convert, with their path. Its schema refuses
        // exactly the same.
        let is_function = self.component.shape() == ShapeName::Typed && program.is_none();
        let checks = ToolChecks::new(texts, !is_function, self.budget.clone());
        let export = self.policy.export_of(name).to_owned();
        Ok(LoadedTool { export, limits, capabilities, program, warm, checks })
    }

    fn program(&self, name: &str) -> Option<Arc<Program>> {
        let tool = self.policy.tool(name).filter(|_| self.component.is_program())?;
        let plain = || Arc::new(Program::plain(tool.name_span()));
        tool.program().cloned().or_else(|| (self.component.shape() == ShapeName::Program).then(plain))
    }
}

impl LoadedTool {
    pub(super) fn program(&self) -> Option<&Program> {
        self.program.as_deref()
    }

    pub(super) fn source(&self) -> InstanceSource<'_> {
        self.warm.as_ref().map_or(InstanceSource::Fresh, InstanceSource::Warm)
    }
}
