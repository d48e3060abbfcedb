//! Loading a component: from bytes to a component that can be called, or to an error that names the
//! cause.
use std::fs::File;

use serde::{Deserialize, Serialize};
use wasmtime::component::InstancePre;

use super::cache::CodeCache;
use super::compile::{self, Compiled};
use super::digest::Digest;
use super::error::{LoadError, invalid, mismatch};
use super::inspect::Inspection;
use super::precompiled::{self, CodeOrigin};
use super::sandbox::Sandbox;
use super::start_code::StartCode;
use super::survey::Survey;
use super::wishes::{CarriedWishes, carried_wishes};
use crate::failure::one_line;
use crate::shape::typed::LeftOut;
use crate::shape::{ExportedTools, Shape, ShapeName};
use crate::wasi::state::CallState;

/// A component that was compiled, linked and found to have tools. Cheap to clone is its `Arc`;
/// calls borrow it.
pub struct ToolComponent {
    sandbox: Sandbox,
    pre: InstancePre<CallState>,
    shape: Shape,
    left_out: Vec<LeftOut>,
    slot_units: u32,
    pooled: bool,
    inspection: Inspection,
    origin: CodeOrigin,
    survey: Survey,
    start: StartCode,
    entry: Option<String>,
    wishes: CarriedWishes,
}

/// Facts about a component that are not in its code.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CodeFacts {
    digest: Digest,
    size_bytes: u64,
    adapted: bool,
    survey: Survey,
}

impl CodeFacts {
    /// Of bytes with this digest and size.
    pub(crate) fn new(digest: Digest, size_bytes: u64, adapted: bool, survey: Survey) -> Self {
        Self { digest, size_bytes, adapted, survey }
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn is_adapted(&self) -> bool {
        self.adapted
    }

    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }
}

/// Code that is mapped, and not linked yet.
pub(crate) struct Mapped<'s> {
    sandbox: &'s Sandbox,
    compiled: Compiled<'s>,
    facts: CodeFacts,
}

impl<'s> Mapped<'s> {
    /// Maps the code that the host handed to this process.
    ///
    /// # Errors
    /// [`LoadError`] where it is not the code of a component that this program compiled.
    pub(crate) fn of(sandbox: &'s Sandbox, code: &File, facts: &CodeFacts) -> Result<Self, LoadError> {
        let survey = facts.survey;
        let lane = compile::lane(sandbox, &survey).map_err(|error| invalid(one_line(&error)))?;
        let component = precompiled::handed(lane.engine(), code).map_err(|error| invalid(one_line(&error)))?;
        let compiled = Compiled { component, origin: CodeOrigin::Cache, lane, survey, entry: None };
        Ok(Self { sandbox, compiled, facts: *facts })
    }

    /// Its exports and imports.
    pub(crate) fn inspection(&self) -> Inspection {
        let CodeFacts { digest, size_bytes, adapted, .. } = self.facts;
        Inspection::of_code(&self.compiled.component, digest, size_bytes, adapted)
    }

    /// Links it. Without its bytes, the texts of its functions are not read.
    ///
    /// # Errors
    /// [`LoadError`]. Nothing of the component has run.
    pub(crate) fn link(self, bytes: &[u8]) -> Result<ToolComponent, LoadError> {
        let inspection = self.inspection();
        ToolComponent::link(self.sandbox, self.compiled, inspection, bytes)
    }
}

impl ToolComponent {
    /// Compiles and links these bytes. Takes a core for about a second per megabyte: call it off
    /// the hot path.
    ///
    /// # Errors
    /// [`LoadError`], naming the import, export or rule that does not fit. Nothing of the component
    /// has run.
    pub fn load(sandbox: &Sandbox, bytes: &[u8]) -> Result<Self, LoadError> {
        Self::load_known(sandbox, bytes, Digest::of(bytes))
    }

    /// As [`load`](Self::load), for bytes whose digest is known.
    ///
    /// # Errors
    /// Likewise.
    pub fn load_known(sandbox: &Sandbox, bytes: &[u8], digest: Digest) -> Result<Self, LoadError> {
        let compiled = compile::compile_to_link(sandbox, (bytes, digest))?;
        let inspection = Inspection::of(&compiled.component, (bytes, digest));
        Self::link(sandbox, compiled, inspection, bytes)
    }

    /// Links these bytes with this digest, if an earlier load compiled them, of a process that runs
    /// components itself. It takes a millisecond: nothing is counted or compiled.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn find(sandbox: &Sandbox, bytes: &[u8], digest: Digest) -> Result<Option<Self>, LoadError> {
        let Some(compiled) = compile::find(sandbox, (bytes, digest)) else { return Ok(None) };
        let inspection = Inspection::of(&compiled.component, (bytes, digest));
        Self::link(sandbox, compiled, inspection, bytes).map(Some)
    }

    /// Maps the code that the host handed to this process, and links it.
    ///
    /// # Errors
    /// [`LoadError`] where it is not the code of a component that this program compiled.
    pub(crate) fn handed(sandbox: &Sandbox, code: &File, facts: &CodeFacts) -> Result<Self, LoadError> {
        Mapped::of(sandbox, code, facts)?.link(&[])
    }

    /// Its code and the facts about it, for a sandbox process.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn hand_over(&self) -> std::io::Result<(File, CodeFacts)> {
        let file = precompiled::file(self.kept_as(), self.pre.component())?;
        let inspection = &self.inspection;
        let (digest, size_bytes, adapted) = (inspection.digest(), inspection.size_bytes(), inspection.is_adapted());
        Ok((file, CodeFacts { digest, size_bytes, adapted, survey: self.survey }))
    }

    fn link(
        sandbox: &Sandbox,
        compiled: Compiled<'_>,
        inspection: Inspection,
        bytes: &[u8],
    ) -> Result<Self, LoadError> {
        let Compiled { component, origin, lane, survey, entry } = compiled;
        if !inspection.not_offered().is_empty() {
            return Err(LoadError::Imports { names: inspection.not_offered().to_vec() });
        }
        let linked = lane.linker().instantiate_pre(&component);
        let pre = linked.map_err(|error| mismatch(one_line(&error)))?;
        let ExportedTools { shape, left_out } = ExportedTools::of(&pre, bytes, inspection.exports())?;
        let pooled = std::ptr::eq(lane, sandbox.pooled());
        Ok(Self {
            sandbox: sandbox.clone(),
            pre,
            shape,
            left_out,
            slot_units: sandbox.slots().units(&component),
            pooled,
            inspection,
            origin,
            survey,
            start: StartCode::default(),
            entry,
            wishes: carried_wishes(bytes),
        })
    }

    /// True if its code was kept by an earlier load, for the pool: loading it takes milliseconds.
    #[must_use]
    pub fn is_compiled(sandbox: &Sandbox, bytes: &[u8], digest: Digest) -> bool {
        let engine = sandbox.pooled().engine();
        sandbox.cache().is_some_and(|cache| precompiled::is_kept(engine, cache, (bytes, digest)))
    }

    /// The cache, and the name of its code there.
    pub(crate) fn kept_as(&self) -> Option<(&CodeCache, &str)> {
        self.sandbox.cache().zip(self.entry.as_deref())
    }

    /// Its digest, exports and imports.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// True if its calls run in slots of the pool. A component that does not fit a slot (a table of
    /// more than 32,768 elements) has its memory mapped for each call, which costs more.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// The origin of its code.
    #[must_use]
    pub fn code_origin(&self) -> CodeOrigin {
        self.origin
    }

    /// The digest of the bytes it was compiled from.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inspection.digest()
    }

    /// The shape that makes tools of it.
    #[must_use]
    pub fn shape(&self) -> ShapeName {
        self.shape.name()
    }

    /// The wishes that it carries. None of a component that was linked without its bytes.
    #[must_use]
    pub fn wishes(&self) -> &CarriedWishes {
        &self.wishes
    }

    /// True if it is a command-line program. A typed component may be one as well.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.shape.is_program()
    }

    /// Functions that are not tools, such as those whose parameters or results JSON cannot carry.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The functions of a typed component that are tools, as in WIT with interface and version, in
    /// the order in which they are listed. `None` of any other.
    #[must_use]
    pub fn functions(&self) -> Option<Vec<String>> {
        match &self.shape {
            Shape::Typed { functions, .. } => Some(functions.served()),
            Shape::Contract(_) | Shape::Program(_) => None,
        }
    }

    /// Everything of a typed component that [`Descriptions`](crate::Descriptions) can describe;
    /// `None` of any other.
    #[must_use]
    pub fn describable(&self) -> Option<Vec<String>> {
        match &self.shape {
            Shape::Typed { functions, .. } => Some(functions.describable()),
            Shape::Contract(_) | Shape::Program(_) => None,
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

    pub(crate) fn tools(&self) -> &Shape {
        &self.shape
    }

    /// The host's cost of one instance of it.
    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    pub(crate) fn slot_units(&self) -> u32 {
        self.slot_units
    }
}
