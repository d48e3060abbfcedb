//! A component as the host holds it: the facts about it, and its code. Must not hold: how either is
//! made.
use std::fs::File;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::component::{CodeFacts, ToolComponent};
use super::digest::Digest;
use super::inspect::Inspection;
use super::precompiled::CodeOrigin;
use super::wishes::CarriedWishes;
use crate::bindings::contract;
use crate::failure::Failure;
use crate::run::call::{CallInput, CallReport};
use crate::shape::ShapeName;
use crate::shape::typed::LeftOut;

/// A component as the host holds it.
pub struct HeldComponent(Held);

enum Held {
    /// It was compiled and linked in this process.
    Here(Arc<ToolComponent>),
    /// A loader did that. This process has never looked at it.
    Elsewhere(Box<Elsewhere>),
}

struct Elsewhere {
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
    /// The name of all that it was made of, if there is a cache.
    pub(crate) name: Option<String>,
}

/// Facts about a component that its loader tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentFacts {
    exports: Vec<String>,
    imports: Vec<String>,
    shape: ShapeName,
    is_program: bool,
    left_out: Vec<LeftOut>,
    functions: Option<Vec<String>>,
    describable: Option<Vec<String>>,
    wishes: CarriedWishes,
}

impl ComponentFacts {
    pub(crate) fn of(component: &ToolComponent) -> Self {
        let inspection = component.inspection();
        Self {
            exports: inspection.exports().to_vec(),
            imports: inspection.imports().to_vec(),
            shape: component.shape(),
            is_program: component.is_program(),
            left_out: component.left_out().to_vec(),
            functions: component.functions(),
            describable: component.describable(),
            wishes: component.wishes().clone(),
        }
    }
}

impl HeldComponent {
    /// A component of this process.
    #[must_use]
    pub fn here(component: ToolComponent) -> Self {
        Self(Held::Here(Arc::new(component)))
    }

    /// A component that a loader made.
    pub(crate) fn elsewhere(code: CodeElsewhere, mut facts: ComponentFacts) -> Self {
        let identity = (code.facts.digest(), code.facts.size_bytes(), code.facts.is_adapted());
        let exports = std::mem::take(&mut facts.exports);
        let inspection = Inspection::told(identity, exports, std::mem::take(&mut facts.imports));
        Self(Held::Elsewhere(Box::new(Elsewhere { code, inspection, facts })))
    }

    /// The component, where it is linked in this process.
    #[must_use]
    pub fn linked(&self) -> Option<&Arc<ToolComponent>> {
        match &self.0 {
            Held::Here(component) => Some(component),
            Held::Elsewhere(_) => None,
        }
    }

    /// Its code, where that is elsewhere.
    pub(crate) fn code_elsewhere(&self) -> Option<&CodeElsewhere> {
        match &self.0 {
            Held::Here(_) => None,
            Held::Elsewhere(elsewhere) => Some(&elsewhere.code),
        }
    }

    /// Its digest, exports and imports.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        match &self.0 {
            Held::Here(component) => component.inspection(),
            Held::Elsewhere(elsewhere) => &elsewhere.inspection,
        }
    }

    /// As [`ToolComponent::is_pooled`].
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        match &self.0 {
            Held::Here(component) => component.is_pooled(),
            Held::Elsewhere(elsewhere) => elsewhere.code.facts.survey().fits_pool(),
        }
    }

    /// The origin of its code.
    #[must_use]
    pub fn code_origin(&self) -> CodeOrigin {
        match &self.0 {
            Held::Here(component) => component.code_origin(),
            Held::Elsewhere(elsewhere) => elsewhere.code.origin,
        }
    }

    /// The digest of the bytes it was compiled from.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inspection().digest()
    }

    /// The shape that makes tools of it.
    #[must_use]
    pub fn shape(&self) -> ShapeName {
        match &self.0 {
            Held::Here(component) => component.shape(),
            Held::Elsewhere(elsewhere) => elsewhere.facts.shape,
        }
    }

    /// The wishes that it carries.
    #[must_use]
    pub fn wishes(&self) -> &CarriedWishes {
        match &self.0 {
            Held::Here(component) => component.wishes(),
            Held::Elsewhere(elsewhere) => &elsewhere.facts.wishes,
        }
    }

    /// As [`ToolComponent::is_program`].
    #[must_use]
    pub fn is_program(&self) -> bool {
        match &self.0 {
            Held::Here(component) => component.is_program(),
            Held::Elsewhere(elsewhere) => elsewhere.facts.is_program,
        }
    }

    /// As [`ToolComponent::left_out`].
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        match &self.0 {
            Held::Here(component) => component.left_out(),
            Held::Elsewhere(elsewhere) => &elsewhere.facts.left_out,
        }
    }

    /// As [`ToolComponent::functions`].
    #[must_use]
    pub fn functions(&self) -> Option<Vec<String>> {
        match &self.0 {
            Held::Here(component) => component.functions(),
            Held::Elsewhere(elsewhere) => elsewhere.facts.functions.clone(),
        }
    }

    /// As [`ToolComponent::describable`].
    #[must_use]
    pub fn describable(&self) -> Option<Vec<String>> {
        match &self.0 {
            Held::Here(component) => component.describable(),
            Held::Elsewhere(elsewhere) => elsewhere.facts.describable.clone(),
        }
    }

    /// Runs one call in this process.
    pub async fn call_tool(&self, input: CallInput<'_>) -> CallReport<contract::CallResult> {
        match &self.0 {
            Held::Here(component) => component.call_tool(input).await,
            Held::Elsewhere(_) => {
                let detail = "the component runs in sandbox processes alone, and has none".to_owned();
                CallReport::not_run(Failure::Host { detail })
            }
        }
    }

    /// Its code and the facts about it, for a sandbox process.
    ///
    /// # Errors
    /// There is no memory or no descriptor for it.
    pub(crate) fn hand_over(&self) -> io::Result<(File, CodeFacts)> {
        match &self.0 {
            Held::Here(component) => component.hand_over(),
            Held::Elsewhere(elsewhere) => Ok((elsewhere.code.file.try_clone()?, elsewhere.code.facts)),
        }
    }
}
