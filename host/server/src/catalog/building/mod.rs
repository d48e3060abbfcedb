//! Building a catalog: reads each component file once, compiles it and lists its tools. Collects
//! every problem of every component with its place in the manifest.
mod basis;
mod code;
mod compiler;
mod draft;
mod http_tool;
mod precheck;
mod problems;
mod relay;
mod typed;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolcell_mcp::sanitize;
use toolcell_policy::{ComponentPolicy, Diagnostic, LoadLimit, Manifest, Severity};
use toolcell_sandbox::{
    COMPONENT_BYTES_MAX, CallReport, ComponentDigest, HeldComponent, ListJob, ListedBeside, ListingResult,
    SchemaLimits, ShapeName, WrittenDescriptions, check_definitions, contract,
};
use toolcell_schema::SchemaFindings;

use super::apps::Apps;
use super::host_files::HostFiles;
use super::permissions::GrantContext;
use super::recordable::RecordedComponents;
use super::skills::Skills;
use super::{
    Catalog, CatalogParts, CatalogSettings, LeftOutComponent, LoadedComponent, Services, WallSetup, WalledComponents,
    program, service_paths, side_files, texts,
};
use crate::catalog::DevFolder;
use crate::fetching::trust::Signed;
use crate::files::file_stamp::Stamps;
use crate::machine::{Machine, MakeRelay, SandboxSetup};
use crate::state::shared::SharedKept;
pub use basis::{Basis, Pin, Withheld};
use code::{Code, CodePlaces};
pub use compiler::Compiling;
use compiler::{Compilation, Compiler, OpenLister};
use draft::CatalogDraft;
use precheck::Precheck;
pub(crate) use problems::NOT_LOADED;
use problems::{not_compiled, once, refused};
pub(super) use relay::{RelayKey, Relays};

// The manifest and the sandbox must agree on the largest file.
const _: () = assert!(LoadLimit::ComponentSize.spec().max <= COMPONENT_BYTES_MAX);

/// Builds catalogs; one for the life of the process.
pub struct CatalogBuilder {
    compiler: Compiler,
    runtime: Handle,
    sandboxes: Option<SandboxSetup>,
    options: BuilderOptions,
    /// The relay of recordings, once it was needed.
    relays: Mutex<Relays>,
}

/// Options of all builds.
#[derive(Default)]
pub struct BuilderOptions {
    /// The state of tools.
    pub(crate) kept: SharedKept,
    /// Files of the process, which no mount may show.
    pub(crate) host_files: HostFiles,
    /// True if attempts of guests are observed.
    pub(crate) observing: bool,
    /// True if any call may be recorded.
    pub(crate) recording: bool,
    /// True if calls will be served: then operators may decide.
    pub(crate) serves: bool,
    /// Makes the relay of recordings.
    pub(crate) relay: Option<MakeRelay>,
    /// The folder of components that are served in place of those that the manifest names.
    pub(crate) dev: Option<DevFolder>,
}

/// The result of a build.
pub struct Built {
    /// The catalog, if there was no error.
    pub catalog: Option<Catalog>,
    /// All errors and warnings.
    pub problems: Vec<Diagnostic>,
    /// Components that were not parsed because they differ from the lock. The catalog has them as
    /// they are served now, or as they are pinned.
    pub withheld: Vec<Withheld>,
}

/// One component of a build.
enum BuiltComponent<'a> {
    /// Reused from this earlier catalog, with bytes and policy.
    Unchanged(&'a Catalog, &'a Arc<LoadedComponent>),
    /// To be rebuilt.
    Changed(ListedComponent),
    /// Not parsed.
    Withheld(Withheld),
    /// Not parsed either: the pinned bytes are served instead.
    Pinned(ListedComponent, Withheld),
    /// Not compiled, since the build fails anyway.
    LeftOut,
}

/// Progress of a build.
#[derive(Clone, Copy, Debug)]
pub enum LoadStep<'a> {
    /// This many components are loaded.
    Loaded(usize),
    /// One of them takes long to compile.
    Compiling(Compiling<'a>),
}

/// Called at each step of a build.
pub type Steps<'a> = dyn Fn(LoadStep<'_>) + Sync + 'a;

/// Components that a build leaves out.
#[derive(Default)]
struct BrokenComponents {
    left_out: Vec<LeftOutComponent>,
    /// Their problems.
    problems: Vec<Diagnostic>,
}

impl BrokenComponents {
    /// Adds the problems of a component to those of the build. If the build may leave the component
    /// out, an error removes it from the draft instead.
    fn sort(
        &mut self,
        draft: &mut CatalogDraft<'_>,
        component: &str,
        found: Vec<Diagnostic>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let left_out = LeftOutComponent::of(component, &found).filter(|_| draft.basis.tolerance.takes(component));
        let Some(left_out) = left_out else { return problems.extend(found) };
        draft.take_away(component);
        self.problems.extend(found);
        if self.left_out.iter().all(|known| known.name != component) {
            self.left_out.push(left_out);
        }
    }
}

/// A loaded component with its tools as it lists them.
struct ListedComponent {
    component: Arc<HeldComponent>,
    policy_digest: String,
    /// Who signed it, if the manifest requires signatures.
    signed: Signed,
    side_files: Stamps,
    /// The project's files that it reads, where `toolcell dev` built it.
    dev_source: Option<Arc<str>>,
    tools: Vec<contract::GuestTool>,
    beside: ListedBeside,
    /// The findings about the schemas of its tools.
    schemas: SchemaFindings,
}

/// What a component of a manifest lists, or why it cannot be loaded.
#[derive(Debug)]
pub struct ComponentNames {
    /// Its name in the manifest.
    pub component: String,
    /// What it lists.
    pub listed: Result<ListedNames, Diagnostic>,
}

/// The names in a component.
#[derive(Debug)]
pub struct ListedNames {
    /// Interfaces that it imports.
    pub imports: Vec<String>,
    /// Its tools.
    pub tools: Vec<ToolNames>,
}

/// The names of a tool.
#[derive(Debug)]
pub struct ToolNames {
    /// Its own, in its component.
    pub own: String,
    /// That for clients.
    pub exposed: String,
}

impl ListedNames {
    fn of(policy: &ComponentPolicy, listed: ListedComponent) -> Self {
        let names = |tool: contract::GuestTool| {
            let exposed = policy.exposed_name(&tool.name).ok()?;
            Some(ToolNames { own: tool.name, exposed })
        };
        let imports = listed.component.inspection().imports().to_vec();
        Self { imports, tools: listed.tools.into_iter().filter_map(names).collect() }
    }
}

/// Input of loading components.
struct Loading<'a, 'b> {
    folder: &'a Path,
    code: &'a CodePlaces<'a>,
    basis: &'a Basis<'b>,
    /// `None`: components are compiled even if something else is wrong.
    precheck: Option<&'a Precheck<'a>>,
    steps: &'a Steps<'a>,
}

impl CatalogBuilder {
    /// A builder on this machine.
    pub fn new(machine: &Machine, options: BuilderOptions) -> Self {
        let compiler = Compiler::new(Arc::clone(&machine.loader));
        let runtime = machine.runtime.handle().clone();
        Self { compiler, runtime, sandboxes: machine.sandboxes.clone(), options, relays: Mutex::default() }
    }

    /// Builds a generation from a checked manifest, reusing parts of the basis. Relative paths
    /// start from `folder`.
    pub(crate) fn build(
        &self,
        services: &Arc<Services>,
        manifest: &Manifest,
        folder: &Path,
        basis: &Basis<'_>,
        steps: &Steps<'_>,
    ) -> Built {
        // State files opened for verification close on the runtime, since another host may wait for
        // them.
        let _io = self.runtime.enter();
        let code = CodePlaces::new(manifest, folder, self.options.dev.as_ref());
        let precheck = Precheck::new(manifest, folder, &code, &self.options.kept, basis);
        // The precheck fails the whole build: it would keep other components from being compiled.
        let prechecks = basis.tolerance.is_none();
        let loading = Loading { folder, code: &code, basis, precheck: prechecks.then_some(&precheck), steps };
        let built = self.load_all(manifest.components(), &loading);
        let left_out = built.iter().any(|built| matches!(built, Ok(BuiltComponent::LeftOut)));
        let mut problems = precheck.into_errors();
        let mut withheld = Vec::new();
        let settings = Arc::new(CatalogSettings::of(manifest, folder, &mut problems));
        let serving = basis.earlier.first().map(AsRef::as_ref);
        let texts = texts::build(manifest, folder, serving, &mut problems);
        let skills = Arc::new(Skills::build(manifest, folder, &mut problems));
        let apps = Arc::new(Apps::build(manifest, folder, &mut problems));
        let parts = CatalogParts { skills, apps, ..CatalogParts::default() };
        let mut draft = CatalogDraft { parts, origins: Vec::new(), basis, callers: &settings.callers };
        let BuilderOptions { kept, host_files, observing, recording, serves, .. } = &self.options;
        let context = GrantContext { folder, server: manifest.server(), kept, observing: *observing };
        let mut broken = BrokenComponents::default();
        for (policy, component) in manifest.components().iter().zip(built) {
            let mut own = Vec::new();
            match component {
                Ok(BuiltComponent::Unchanged(catalog, loaded)) => draft.take_over(policy, catalog, loaded, &mut own),
                Ok(BuiltComponent::Changed(listed)) => draft.add(policy, &context, listed, &mut own),
                Ok(BuiltComponent::Withheld(held)) => {
                    draft.hold(policy);
                    withheld.push(held);
                }
                Ok(BuiltComponent::Pinned(listed, held)) => {
                    draft.add(policy, &context, listed, &mut own);
                    withheld.push(held);
                }
                Ok(BuiltComponent::LeftOut) => own.push(not_compiled(policy)),
                Err(problem) => own.push(problem),
            }
            broken.sort(&mut draft, policy.name(), own, &mut problems);
        }
        draft.add_texts(texts, manifest);
        draft.add_skills();
        let found = [
            draft.check_collisions(),
            draft.check_own_names(manifest),
            host_files.check(manifest, folder, &draft.parts.entries),
            service_paths::check(manifest, folder),
        ];
        for (component, problem) in found.into_iter().flatten() {
            broken.sort(&mut draft, &component, vec![problem], &mut problems);
        }
        // A start without any component fails.
        if draft.parts.components.is_empty() && withheld.is_empty() {
            problems.append(&mut broken.problems);
        }
        let all_work = withheld.is_empty() && broken.left_out.is_empty();
        let complete = all_work && problems.iter().all(|problem| problem.severity() != Severity::Error);
        problems.extend(draft.check_callers(complete));
        problems.extend(draft.check_calls(complete));
        if complete {
            let policies: Vec<&ComponentPolicy> = manifest.components().iter().collect();
            let guests = draft.parts.components.iter().flat_map(|component| &component.resources);
            let guests: Vec<_> = guests.map(|guest| &guest.address).collect();
            problems.extend(draft.parts.apps.check(&draft.parts.entries, &policies, &guests));
        }
        let fails = left_out || problems.iter().any(|problem| problem.severity() == Severity::Error);
        let BrokenComponents { left_out, problems: mut set_aside } = broken;
        problems.append(&mut set_aside);
        if fails {
            return Built { catalog: None, problems: once(problems), withheld };
        }
        let parts = draft.parts;
        let earlier = serving.map(|catalog| &catalog.walled);
        let recorded = RecordedComponents::of(*recording, *serves, &settings);
        let relays = self.relays(recorded, &parts, &mut problems);
        let sandboxes = self.sandboxes.as_ref();
        let setup = WallSetup { sandboxes, relays, recorded, observing: *observing };
        problems.extend(relay::not_recorded(&parts.components));
        let walled = WalledComponents::new(&setup, manifest, &parts, earlier);
        let catalog = Catalog::new(basis.generation, services, settings, parts, walled, left_out.into());
        let catalog = catalog.map_err(|collisions| {
            problems.push(Diagnostic::error("tools::collision", collisions.to_string()));
        });
        Built { catalog: catalog.ok(), problems, withheld }
    }

    /// Starts sandbox processes of a catalog that follows another, so that its first calls find
    /// them. A reused group already has its processes; one that cannot start any changes nothing.
    ///
    /// # Errors
    /// One sentence: a process of a new group does not start.
    pub fn raise_walls(&self, catalog: &Catalog, earlier: &Catalog) -> Result<(), String> {
        let ahead = self.runtime.block_on(catalog.walled.start(|group| earlier.walled.has(group)))?;
        ahead.problems.iter().for_each(|problem| tracing::error!("{problem}; each call tries again"));
        Ok(())
    }

    /// Clears the crash history of all components.
    pub fn forget_ends(&self) {
        self.sandboxes.iter().for_each(|sandboxes| sandboxes.pool.forget_ends());
    }

    /// What these components of a manifest list. One that cannot be loaded gives a problem instead.
    #[must_use]
    pub fn names(&self, manifest: &Manifest, policies: &[ComponentPolicy], folder: &Path) -> Vec<ComponentNames> {
        let basis = Basis::none();
        let code = CodePlaces::new(manifest, folder, None);
        let loading = Loading { folder, code: &code, basis: &basis, precheck: None, steps: &|_| {} };
        let loaded = self.load_all(policies, &loading).into_iter().map(|loaded| match loaded {
            Ok(BuiltComponent::Changed(listed)) => Ok(Some(listed)),
            // With an empty basis, nothing is reused or pinned.
            Ok(
                BuiltComponent::Unchanged(..)
                | BuiltComponent::Withheld(_)
                | BuiltComponent::Pinned(..)
                | BuiltComponent::LeftOut,
            ) => Ok(None),
            Err(problem) => Err(problem),
        });
        let named = policies.iter().zip(loaded).filter_map(|(policy, listed)| {
            let listed = listed.transpose()?.map(|listed| ListedNames::of(policy, listed));
            Some(ComponentNames { component: policy.name().to_owned(), listed })
        });
        named.collect()
    }

    /// Loads the components on as many threads as there are cores; results are in the manifest's
    /// order.
    fn load_all<'b>(
        &self,
        policies: &[ComponentPolicy],
        loading: &Loading<'_, 'b>,
    ) -> Vec<Result<BuiltComponent<'b>, Diagnostic>> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let load_next = || {
            let mut loaded = Vec::new();
            while let Some((index, policy)) = take(&next, policies) {
                loaded.push((index, self.load(policy, loading)));
                (loading.steps)(LoadStep::Loaded(done.fetch_add(1, Ordering::AcqRel) + 1));
            }
            loaded
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(policies.len());
        let mut loaded: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(load_next)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        loaded.sort_by_key(|(index, _)| *index);
        loaded.into_iter().map(|(_, loaded)| loaded).collect()
    }

    /// True if the build fails regardless of its components.
    fn fails_anyway(&self, loading: &Loading<'_, '_>) -> bool {
        // As in `build`: state files that are opened here may close on the runtime.
        let _io = self.runtime.enter();
        loading.precheck.is_some_and(Precheck::fails)
    }

    fn load<'b>(&self, policy: &ComponentPolicy, loading: &Loading<'_, 'b>) -> Result<BuiltComponent<'b>, Diagnostic> {
        let Loading { folder, code, basis, .. } = *loading;
        // Taken before they are read, so that no change is missed in between.
        let side_files = side_files::stamps(policy, folder);
        let read = match basis.approved(policy) {
            Some(approved) => Code::approved(approved),
            None => code.read(policy)?,
        };
        let digest = ComponentDigest::of(&read.bytes).to_string();
        // Checked before anything is parsed: unapproved bytes never reach a parser.
        if !basis.withholds(policy, &digest) {
            return self.load_code(policy, loading, read, side_files);
        }
        let held = Withheld { name: policy.name().to_owned(), digest, bytes: read.bytes, signed: read.signed };
        let pinned = basis.start_with(policy).and_then(|pin| code.pinned(policy, pin));
        Ok(match pinned.map(|pinned| self.load_code(policy, loading, pinned, side_files)) {
            Some(Ok(BuiltComponent::Changed(listed))) => BuiltComponent::Pinned(listed, held),
            _ => BuiltComponent::Withheld(held),
        })
    }

    /// A component of bytes that may be parsed.
    fn load_code<'b>(
        &self,
        policy: &ComponentPolicy,
        loading: &Loading<'_, 'b>,
        read: Code,
        side_files: Stamps,
    ) -> Result<BuiltComponent<'b>, Diagnostic> {
        let Loading { folder, code, basis, .. } = *loading;
        let source_digest = ComponentDigest::of(&read.bytes);
        let digest = source_digest.to_string();
        let policy_digest = ComponentDigest::of(policy.canonical().as_bytes()).to_string();
        if let Some((catalog, loaded)) = basis.unchanged(policy, &digest, &read, &policy_digest, &side_files) {
            return Ok(BuiltComponent::Unchanged(catalog, loaded));
        }
        let Code { bytes, signed, dev_source } = read;
        let began = Instant::now();
        let (component, lister) = match basis.compiled(policy, &digest) {
            Some(component) => (component, None),
            None if self.compiler.takes_long(&bytes, source_digest) && self.fails_anyway(loading) => {
                return Ok(BuiltComponent::LeftOut);
            }
            None => {
                let source = code.shown(policy);
                let compilation = Compilation {
                    digest: source_digest,
                    component: policy.name(),
                    source: &source,
                    time: policy.load().compile_time(),
                    memory_bytes: (policy.load().compile_memory_bytes(), policy.limits().memory_bytes()),
                    serves_meanwhile: basis.serves_meanwhile(),
                    tell: &|compiling| (loading.steps)(LoadStep::Compiling(compiling)),
                };
                let compiled = self.compiler.compile(&bytes, &compilation);
                let (component, lister) = compiled.map_err(|error| refused(policy, &error))?;
                (Arc::new(component), lister)
            }
        };
        let time = policy.load().compile_time().saturating_sub(began.elapsed());
        // Checked before anything of it runs.
        let inspection = component.inspection();
        if let Some(problem) = policy.check_wasi(inspection.imports().iter().chain(inspection.exports())) {
            return Err(problem);
        }
        // Checked before they are described, since that takes longer the more there are.
        typed::check_functions(policy, &component)?;
        // The manifest's own come first, since listing those of the component may end early.
        let mut tools = program::tools(policy, &component);
        let mut schemas = check_definitions(&tools, &SchemaLimits::of(policy.load(), time));
        let mut beside = ListedBeside::default();
        if component.shape() != ShapeName::Program {
            let described = typed::written(policy, folder, dev_source.as_deref())?;
            let (report, listed_beside, found) = self.list(policy, &described, &component, lister, &bytes, time)?;
            schemas.tools.extend(found.tools);
            schemas.too_late |= found.too_late;
            for line in report.captured.text.lines() {
                tracing::info!(
                    component = policy.name(),
                    "printed while it listed its tools: {}",
                    sanitize::line(line)
                );
            }
            tools.extend(report.outcome.map_err(|failure| {
                let message = format!("component \"{}\" could not list its tools: {failure}", policy.name());
                Diagnostic::error("components::list", message).at(policy.source_span())
            })?);
            beside = listed_beside;
        }
        Ok(BuiltComponent::Changed(ListedComponent {
            component,
            policy_digest,
            signed,
            side_files,
            dev_source,
            tools,
            beside,
            schemas,
        }))
    }
}

/// The tools that a component lists, its other entries, and what was found in the tools' schemas.
type ListedTools = (CallReport<Vec<contract::GuestTool>>, ListedBeside, SchemaFindings);

impl CatalogBuilder {
    /// Makes a component list its tools.
    fn list(
        &self,
        policy: &ComponentPolicy,
        written: &WrittenDescriptions,
        component: &HeldComponent,
        lister: Option<OpenLister>,
        bytes: &[u8],
        time: Duration,
    ) -> Result<ListedTools, Diagnostic> {
        let schemas = SchemaLimits::of(policy.load(), time);
        let memory_bytes_max = policy.load().compile_memory_bytes();
        let job = ListJob { limits: policy.limits(), memory_bytes_max, written, schemas };
        match self.compiler.list(component, lister, bytes, &job) {
            Ok(ListingResult::Report(report, beside, found)) => Ok((*report, beside, found)),
            Ok(ListingResult::NotWit(problem)) => Err(typed::no_wit(policy, &sanitize::line(&problem))),
            Err(error) => Err(refused(policy, &error)),
        }
    }
}

/// The next component that no thread has taken.
fn take<'a>(next: &AtomicUsize, policies: &'a [ComponentPolicy]) -> Option<(usize, &'a ComponentPolicy)> {
    let index = next.fetch_add(1, Ordering::AcqRel);
    policies.get(index).map(|policy| (index, policy))
}
