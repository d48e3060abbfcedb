//! Loading a component: from bytes to a component that can be called, or an error with the cause.
use std::fs::File;

use toolcell_walls::memory_file;
use wasmtime::component::{Component, InstancePre};

use super::compile::{self, CompiledComponent};
use super::error::{LoadError, invalid, mismatch};
use super::sandbox::{LinkedEngine, Sandbox};
use super::start_code::StartCode;
use super::{inspect, precompiled};
use crate::engine::errors::one_line;
use crate::shape::{ComponentShape, ExportedTools};
use crate::wasi::state::CallState;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, LeftOutFunction, ShapeName, SourceFacts};
use toolcell_wall::load::inspection::Inspection;
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_wall::sections::is_module;
use toolcell_wall::sections::requested_permissions::{CarriedPermissions, carried_permissions};

/// A component that was compiled, linked and found to have tools. Its `Arc` is cheap to clone;
/// calls borrow it.
pub struct ToolComponent {
    sandbox: Sandbox,
    pre: InstancePre<CallState>,
    shape: ComponentShape,
    left_out: Vec<LeftOutFunction>,
    slot_units: u32,
    pooled: bool,
    inspection: Inspection,
    cost: InstanceCost,
    start: StartCode,
    requested: CarriedPermissions,
}

/// Code that is mapped, and not linked yet.
pub(crate) struct Mapped<'s> {
    sandbox: &'s Sandbox,
    lane: &'s LinkedEngine,
    code: Component,
    facts: CodeFacts,
}

impl<'s> Mapped<'s> {
    /// Maps the code that the host handed to this process. The engine refuses code of the other
    /// one.
    ///
    /// # Errors
    /// [`LoadError`] if this program did not compile the code from a component, for this engine.
    pub(crate) fn of(sandbox: &'s Sandbox, code: &File, facts: &CodeFacts) -> Result<Self, LoadError> {
        let lane = compile::lane(sandbox, &facts.cost).map_err(|error| invalid(one_line(&error)))?;
        let code = precompiled::handed(&lane.engine, code).map_err(|error| invalid(one_line(&error)))?;
        Ok(Self { sandbox, lane, code, facts: *facts })
    }

    /// Its exports and imports.
    pub(crate) fn inspection(&self) -> Inspection {
        inspect::of_code(&self.code, self.facts.source)
    }

    /// Links it. Without the component's bytes, the doc comments of its functions are not read.
    ///
    /// # Errors
    /// [`LoadError`]. Nothing of the component has run.
    pub(crate) fn link(self, bytes: &[u8]) -> Result<ToolComponent, LoadError> {
        let inspection = self.inspection();
        if !inspection.not_offered().is_empty() {
            return Err(LoadError::Imports { names: inspection.not_offered().to_vec() });
        }
        let Self { sandbox, lane, code, facts } = self;
        let pre = lane.linker.instantiate_pre(&code).map_err(|error| mismatch(one_line(&error)))?;
        let ExportedTools { shape, left_out } = ExportedTools::of(&pre, bytes, inspection.exports())?;
        Ok(ToolComponent {
            sandbox: sandbox.clone(),
            pre,
            shape,
            left_out,
            slot_units: sandbox.slots().units(&code, facts.cost.stacks(facts.engine)),
            pooled: std::ptr::eq(lane, sandbox.pooled()),
            inspection,
            cost: facts.cost,
            start: StartCode::default(),
            requested: carried_permissions(bytes),
        })
    }
}

impl ToolComponent {
    /// Compiles and links these bytes in one process, for tests and benchmarks. Takes a core for
    /// about a second per megabyte. The engine is the sandbox's, whichever the component needs.
    ///
    /// # Errors
    /// [`LoadError`], naming the import, export or rule that does not fit. Nothing of the component
    /// has run.
    pub fn load(sandbox: &Sandbox, bytes: &[u8]) -> Result<Self, LoadError> {
        let CompiledComponent { cost, code, .. } = compile::compile(|_| &sandbox.pooled().engine, bytes)?;
        let code = memory_file::sealed(&code).map_err(|error| invalid(error.to_string()))?;
        let source = SourceFacts {
            digest: ComponentDigest::of(bytes),
            size_bytes: bytes.len() as u64,
            adapted: is_module(bytes),
        };
        let facts = CodeFacts { source, engine: sandbox.options().engine, cost };
        Mapped::of(sandbox, &code, &facts)?.link(bytes)
    }

    /// Maps the code that the host handed to this process, and links it.
    ///
    /// # Errors
    /// [`LoadError`] if this program did not compile the code from a component.
    pub(crate) fn handed(sandbox: &Sandbox, code: &File, facts: &CodeFacts) -> Result<Self, LoadError> {
        Mapped::of(sandbox, code, facts)?.link(&[])
    }

    /// Its digest, exports and imports.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// True if its calls run in slots of the pool. A component that does not fit a slot (a table of
    /// more than 32,768 elements) gets its memory mapped for each call, which costs more.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// The digest of the bytes it was compiled from.
    #[must_use]
    pub fn digest(&self) -> ComponentDigest {
        self.inspection.digest()
    }

    /// The shape that makes tools of it.
    #[must_use]
    pub fn shape(&self) -> ShapeName {
        self.shape.name()
    }

    /// The permission requests that it carries. Empty if it was linked without its bytes.
    #[must_use]
    pub fn requested(&self) -> &CarriedPermissions {
        &self.requested
    }

    /// True if it is a command-line program. A typed component may be one as well.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.shape.is_program()
    }

    /// Functions that are not tools, such as those whose parameters or results JSON cannot carry.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOutFunction] {
        &self.left_out
    }

    /// The functions of a typed component that are tools, as in WIT with interface and version, in
    /// the order in which they are listed. `None` for any other component.
    #[must_use]
    pub fn functions(&self) -> Option<Vec<String>> {
        match &self.shape {
            ComponentShape::Typed { functions, .. } => Some(functions.served()),
            ComponentShape::Contract(_) | ComponentShape::Program(_) => None,
        }
    }

    /// Everything of a typed component that [`Descriptions`](crate::Descriptions) can describe;
    /// `None` for any other component.
    #[must_use]
    pub fn describable(&self) -> Option<Vec<String>> {
        match &self.shape {
            ComponentShape::Typed { functions, .. } => Some(functions.describable()),
            ComponentShape::Contract(_) | ComponentShape::Program(_) => None,
        }
    }

    /// The facts that a loader sends to the host.
    pub(crate) fn facts(&self) -> ComponentFacts {
        ComponentFacts {
            exports: self.inspection.exports().to_vec(),
            imports: self.inspection.imports().to_vec(),
            shape: self.shape(),
            is_program: self.is_program(),
            left_out: self.left_out.clone(),
            functions: self.functions(),
            describable: self.describable(),
            requested: self.requested.clone(),
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(crate) fn pre(&self) -> &InstancePre<CallState> {
        &self.pre
    }

    pub(crate) fn start(&self) -> &StartCode {
        &self.start
    }

    pub(crate) fn tools(&self) -> &ComponentShape {
        &self.shape
    }

    /// What one instance of it costs the host.
    pub(crate) fn cost(&self) -> &InstanceCost {
        &self.cost
    }

    /// Bytes of stacks that a call of it may fill besides the first one.
    pub(crate) fn more_stack_bytes(&self) -> u64 {
        let SandboxOptions { stack_bytes, engine, .. } = self.sandbox.options();
        // At least one part is not waiting.
        let more = self.cost.stacks(*engine).saturating_sub(2);
        u64::from(more).saturating_mul(*stack_bytes as u64)
    }

    pub(crate) fn slot_units(&self) -> u32 {
        self.slot_units
    }
}
