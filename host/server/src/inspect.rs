//! Inspects a component without a manifest: its facts, and its tools.
use toolcell_policy::{AdvisedFault, Limits, LoadLimits};
use toolcell_sandbox::{
    CarriedPermissions, ComponentDigest, HeldComponent, Inspection, LeftOutFunction, ListJob, ListedBeside,
    ListingResult, LoadJob, Loader, NotLoaded, SchemaLimits, ShapeName, WrittenDescriptions, contract,
};

use crate::machine::Machine;

/// Advice for a component that exceeds the limits of loading.
pub const MORE: &str = "serve it from a manifest whose [components.NAME.load] gives it more time or memory";

/// Advice if its loader ended, or did not start.
const AGAIN: &str = "load it again; if that ends the same way, it met a fault of the engine, or was made to harm";

/// Findings about a component.
pub struct Inspected {
    /// Its digest, exports and imports.
    pub inspection: Inspection,
    /// Its tools, or the reason why it cannot be served.
    pub tools: Result<Vec<contract::GuestTool>, String>,
    /// Its prompts and resources.
    pub beside: ListedBeside,
    /// Shape that makes tools of it.
    pub shape: Option<ShapeName>,
    /// True if it is a command-line program, even if it is also something else.
    pub is_program: bool,
    /// The function behind each tool, as in WIT with interface and version; empty if its tools are
    /// not functions.
    pub functions: Vec<String>,
    /// Functions that cannot be tools.
    pub left_out: Vec<LeftOutFunction>,
    /// Its requested permissions; none if it cannot be served.
    pub requested: CarriedPermissions,
}

impl Inspected {
    /// True if a manifest may leave out some of its functions.
    #[must_use]
    pub fn skips_functions(&self) -> bool {
        self.shape == Some(ShapeName::Typed) && !self.left_out.is_empty()
    }
}

/// Reads a component and lists its tools, with the default limits. `name` is its path.
///
/// # Errors
/// One sentence, and advice: it is not a component.
pub fn inspect(machine: &Machine, name: &str, bytes: &[u8]) -> Result<Inspected, AdvisedFault> {
    machine.runtime.block_on(inspect_bytes(&machine.loader, name, bytes))
}

async fn inspect_bytes(loader: &Loader, name: &str, bytes: &[u8]) -> Result<Inspected, AdvisedFault> {
    let limits = Limits::default();
    let load = LoadLimits::default();
    let time = load.compile_time();
    let memory_bytes_max = load.compile_memory_bytes();
    let call_memory_bytes = limits.memory_bytes();
    let digest = ComponentDigest::of(bytes);
    let job = LoadJob { digest, component: name, time, memory_bytes_max, call_memory_bytes, gives_way: false };
    let (component, lister) = match loader.load(bytes, &job).await {
        Ok(loaded) => loaded,
        Err(NotLoaded::Refused { message, inspection: Some(inspection), .. }) => {
            return Ok(Inspected {
                inspection: *inspection,
                tools: Err(message),
                beside: ListedBeside::default(),
                shape: None,
                is_program: false,
                functions: Vec::new(),
                left_out: Vec::new(),
                requested: CarriedPermissions::None,
            });
        }
        Err(NotLoaded::Refused { message, hint, .. }) => return Err(AdvisedFault::new(message, hint)),
        Err(error @ (NotLoaded::TooLate | NotLoaded::TooMuchMemory)) => {
            return Err(AdvisedFault::new(error.to_string(), MORE));
        }
        Err(error) => return Err(AdvisedFault::new(error.to_string(), AGAIN)),
    };
    let written = WrittenDescriptions::default();
    let schemas = SchemaLimits::of(&load, time);
    let job = ListJob { limits: &limits, memory_bytes_max, written: &written, schemas };
    let listing = loader.list(&component, lister, bytes, &job).await;
    let listed = match listing {
        ListingResult::Report(report, beside, _) => report.outcome.map(|tools| (tools, beside)).map_err(not_listed),
        ListingResult::NotWit(problem) => Err(not_listed(problem)),
    };
    Ok(found(&component, listed))
}

/// The tools of a component, and its other entries.
type InspectedEntries = (Vec<contract::GuestTool>, ListedBeside);

fn found(component: &HeldComponent, listed: Result<InspectedEntries, String>) -> Inspected {
    let (tools, beside) = match listed {
        Ok((tools, beside)) => (Ok(tools), beside),
        Err(problem) => (Err(problem), ListedBeside::default()),
    };
    Inspected {
        inspection: component.inspection().clone(),
        tools,
        beside,
        shape: Some(component.shape()),
        is_program: component.is_program(),
        functions: component.functions().unwrap_or_default(),
        left_out: component.left_out().to_vec(),
        requested: component.requested().clone(),
    }
}

fn not_listed(problem: impl std::fmt::Display) -> String {
    format!("could not list its tools: {problem}")
}
