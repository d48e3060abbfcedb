//! A component on the host's side: facts about it, and its code.
use std::fs::File;
use std::io;

use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, GuestEngine, LeftOutFunction, ShapeName};
use toolcell_wall::load::inspection::Inspection;
use toolcell_wall::sections::requested_permissions::CarriedPermissions;

/// A component on the host's side. A loader made it; this process has never read it.
pub struct HeldComponent {
    code: CodeElsewhere,
    inspection: Inspection,
    facts: ComponentFacts,
}

/// Code for other processes to map.
pub(crate) struct CodeElsewhere {
    /// A file that nobody changes any more.
    pub(crate) file: File,
    pub(crate) facts: CodeFacts,
    pub(crate) origin: CodeOrigin,
    /// The name of everything that it was made from, if there is a cache.
    pub(crate) name: Option<String>,
}

/// The origin of a component's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Compiled now.
    Compiled,
    /// Compiled before.
    Cache,
}

impl HeldComponent {
    /// A component that a loader made.
    pub(crate) fn new(code: CodeElsewhere, mut facts: ComponentFacts) -> Self {
        let exports = std::mem::take(&mut facts.exports);
        let inspection = Inspection::new(code.facts.source, exports, std::mem::take(&mut facts.imports));
        Self { code, inspection, facts }
    }

    /// Its code.
    pub(crate) fn code(&self) -> &CodeElsewhere {
        &self.code
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
        self.code.facts.cost.fits_pool()
    }

    /// The engine that it runs in.
    #[must_use]
    pub fn engine(&self) -> GuestEngine {
        self.code.facts.engine
    }

    /// The origin of its code.
    #[must_use]
    pub fn code_origin(&self) -> CodeOrigin {
        self.code.origin
    }

    /// The digest of the bytes it was compiled from.
    #[must_use]
    pub fn digest(&self) -> ComponentDigest {
        self.inspection.digest()
    }

    /// The shape that makes tools of it.
    #[must_use]
    pub fn shape(&self) -> ShapeName {
        self.facts.shape
    }

    /// The permission requests that it carries.
    #[must_use]
    pub fn requested(&self) -> &CarriedPermissions {
        &self.facts.requested
    }

    /// True if it is a command-line program. A typed component may be one as well.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.facts.is_program
    }

    /// Functions that are not tools, such as those whose parameters or results JSON cannot carry.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOutFunction] {
        &self.facts.left_out
    }

    /// The functions of a typed component that are tools, as in WIT with interface and version, in
    /// the order in which they are listed. `None` for any other component.
    #[must_use]
    pub fn functions(&self) -> Option<Vec<String>> {
        self.facts.functions.clone()
    }

    /// Everything of a typed component that can be described; `None` for any other component.
    #[must_use]
    pub fn describable(&self) -> Option<Vec<String>> {
        self.facts.describable.clone()
    }

    /// Its code and the facts about it, for a sandbox process.
    ///
    /// # Errors
    /// An error of the system: no descriptor is left.
    pub(crate) fn hand_over(&self) -> io::Result<(File, CodeFacts)> {
        Ok((self.code.file.try_clone()?, self.code.facts))
    }
}
