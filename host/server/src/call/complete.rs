//! Completions of an argument: values from the manifest, a definition or a folder, or else from a
//! component.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use toolcell_mcp::{Call, CallResult, Completing, Completions, ContentKind};
use toolcell_policy::Limit;
use toolcell_policy::quantity::Rate;
use toolcell_sandbox::{CallFailure, export};
use toolcell_shared::{AllowanceName, Taken};

use super::CallOrigin;
use crate::catalog::{CallTarget, Catalog, CatalogEntry, TEXTS, in_whole_seconds, pace};

/// Callers of one component that have their own allowance. Any others share one.
const CALLERS_MAX: usize = 1_000;

/// The values that a component finds, as a sandbox gives them.
#[derive(Deserialize)]
struct CompletedValues {
    values: Vec<String>,
    total: Option<u64>,
    has_more: bool,
}

impl Catalog {
    /// Finds completions. Each search counts against `completion_rate`; one that runs a component
    /// is a recorded call of it.
    pub(super) async fn complete_argument(
        self: &Arc<Self>,
        call: Call,
        completing: Completing,
    ) -> Result<Completions, String> {
        let target = self.target(call.tool);
        let limits = match (target, self.text_of(call.tool)) {
            (Some(target), _) => &target.limits,
            (None, Some(text)) => &text.limits,
            (None, None) => return Err("the host has no such prompt".to_owned()),
        };
        if call.arguments.get().len() as u64 > limits.arguments_bytes() {
            return Err(CallFailure::over(Limit::Arguments, limits).to_string());
        }
        let component = target.map_or(TEXTS, |target| target.component.name());
        self.take_completion(call.context.caller.name(), component, limits.completion_rate()).await?;
        if let Some(known) = completing.known(&**self, call.tool) {
            return Ok(known);
        }
        let template = completing.template.as_deref();
        if let Some(found) = template.and_then(|template| self.resources.complete(template, &completing.value)) {
            return Ok(found);
        }
        match target.and_then(|target| self.completes(target)) {
            Some(place) => self.ask_component(call, completing, place).await,
            None => Ok(Completions::default()),
        }
    }

    /// The entry that completes arguments for the component of this target, if it has one.
    fn completes(&self, target: &CallTarget) -> Option<usize> {
        let own = |entry: &CatalogEntry| {
            entry.target().filter(|other| other.name == export::COMPLETION).is_some() && entry.is_of(&target.component)
        };
        self.entries.iter().position(own)
    }

    async fn take_completion(&self, caller: &str, component: &str, rate: Rate) -> Result<(), String> {
        let scope = format!("completion\n{component}\n{rate}");
        let allowance = AllowanceName { scope: &scope, pace: pace(rate), callers_max: CALLERS_MAX };
        match self.services.state.take(caller, &[allowance]).await.map_err(|away| away.to_string())? {
            Taken::All => Ok(()),
            Taken::Refused { wait, .. } => Err(format!(
                "too many completions: more than {rate} (limit \"completion_rate\"); try again in {}",
                in_whole_seconds(wait)
            )),
        }
    }

    async fn ask_component(
        self: &Arc<Self>,
        call: Call,
        completing: Completing,
        place: usize,
    ) -> Result<Completions, String> {
        let subject = self.target(call.tool).map(|target| target.name.as_str()).unwrap_or_default();
        let arguments = typed(&completing, export::prompt_of(subject)).ok_or("it cannot be written as JSON")?;
        let (result, _) = self.run(Call { tool: place, arguments, ..call }, CallOrigin::Client).await;
        if result.is_error {
            return Err(first_text(&result));
        }
        let found =
            result.structured.as_ref().and_then(|text| serde_json::from_str::<CompletedValues>(text.get()).ok());
        let CompletedValues { values, total, has_more } = found.ok_or("the component gave no completions")?;
        Ok(Completions::new(values, total, has_more))
    }
}

/// The arguments of the export.
fn typed(completing: &Completing, prompt: Option<&str>) -> Option<Box<RawValue>> {
    let Completing { template, argument, value, others } = completing;
    let others: BTreeMap<&str, &str> = others.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let prompt = prompt.filter(|_| template.is_none());
    let typed = serde_json::json!({
        "template": template, "prompt": prompt, "argument": argument, "value": value, "others": others,
    });
    to_raw_value(&typed).ok()
}

fn first_text(result: &CallResult) -> String {
    let text = result.content.iter().find_map(|content| match &content.kind {
        ContentKind::Text(text) => Some(text.clone()),
        _ => None,
    });
    text.unwrap_or_else(|| "the component found no completions".to_owned())
}
