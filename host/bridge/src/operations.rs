//! Operations as tools.
use serde_json::{Value, json};
use toolcell_bridge_lines::{BridgeServer, Request};

use crate::definitions::{Definitions, ToolCall, ToolDefinition, hints_of_method};
use crate::document::Document;
use crate::grants::BridgeGrants;
use crate::limits::{DEFINITIONS_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMA_BYTES_MIN, TITLE_BYTES_MAX, TOOL_TEXT_BYTES_MAX};
use crate::names::clipped;
use crate::parameters::Filled;
use crate::security::{Requirement, Security};
use crate::selection::{Operation, Selected};
use crate::server::{self, Base};
use crate::{Bridge, BridgeError, BridgeOptions, LeftOut, body, parameters, responses};

/// One operation as a tool.
struct Made {
    tool: ToolDefinition,
    base: Base,
    is_cut: bool,
    notes: Vec<String>,
}

/// The tools of these operations, within the bytes that a host lists.
pub(crate) fn bridge(
    document: &Document<'_>,
    base: Base,
    selected: Selected<'_>,
    options: &BridgeOptions,
    check: &dyn Fn(&ToolDefinition) -> Result<(), String>,
) -> Result<Bridge, BridgeError> {
    let mut security = Security::of(document, &selected.operations, options);
    let mut left_out = selected.left_out;
    let of_document = OfDocument { document, base: &base, options };
    let secured = of_document.secured(&selected.operations, &security, &mut left_out);
    let mut bytes_max = SCHEMA_BYTES_MAX;
    let (made, mut refused) = loop {
        if let Some(all) = of_document.all(&secured, bytes_max) {
            break all;
        }
        if bytes_max <= SCHEMA_BYTES_MIN {
            let problem = "the definitions of its tools are larger than a host lists";
            return Err(BridgeError::new(problem, "choose fewer with --only TAG or --only OPERATION"));
        }
        bytes_max /= 2;
    };
    let made = served(made, check, &mut refused);
    left_out.extend(refused);
    if made.is_empty() {
        let first = left_out.first().map_or_else(String::new, |first| format!("{} {}", first.operation, first.reason));
        return Err(BridgeError::new("the document has no operation that can be a tool", first));
    }
    let is_made = |one: &&Secured<'_, '_>| made.iter().any(|made| made.tool.name == one.operation.tool);
    secured.iter().filter(is_made).for_each(|one| security.need(&one.operation.tool, one.requirement));
    let mut notes = notes(&base, options, &made, selected.deprecated);
    let is_below = made.iter().all(|made| made.base.path == base.path) && !base.path.is_empty();
    let of_tool = |made: &Made| made.notes.iter().map(|note| format!("{}: {note}", made.tool.name)).collect::<Vec<_>>();
    let notes_of_tools: Vec<String> = made.iter().flat_map(of_tool).collect();
    let tools: Vec<ToolDefinition> = made.into_iter().map(|made| made.tool).collect();
    let mut grants = BridgeGrants::of(&base.origin, &tools);
    let target = if is_below { format!("{base}/*") } else { base.origin.to_string() };
    notes.extend(security.grant(&target, &mut grants));
    // There may be many of them, and a person may see the first alone.
    notes.extend(notes_of_tools);
    let title = clipped(document.info("title"), TITLE_BYTES_MAX);
    let version = clipped(document.info("version"), TITLE_BYTES_MAX);
    let title = format!("{title} {version}").trim().to_owned();
    let definitions = Definitions { server: BridgeServer::Origin(base.origin.to_string()), tools };
    Ok(Bridge { title, origin: base.origin, definitions, grants, left_out, notes })
}

/// An operation with what the host fills into its requests.
struct Secured<'s, 'a> {
    operation: &'s Operation<'a>,
    requirement: Requirement<'a>,
    filled: Filled,
}

/// What all operations of a document share.
struct OfDocument<'d, 'a> {
    document: &'d Document<'a>,
    base: &'d Base,
    options: &'d BridgeOptions,
}

impl<'a> OfDocument<'_, 'a> {
    /// The operations whose requirements can be met.
    fn secured<'s>(
        &self,
        operations: &'s [Operation<'a>],
        security: &Security<'_>,
        left_out: &mut Vec<LeftOut>,
    ) -> Vec<Secured<'s, 'a>> {
        let mut secured = Vec::new();
        for operation in operations {
            match security.requirement(self.document, operation) {
                Ok(requirement) => {
                    secured.push(Secured { operation, requirement, filled: security.filled(requirement) });
                }
                Err(reason) => left_out.push(LeftOut { operation: operation.shown(), reason }),
            }
        }
        secured
    }

    /// The tools with schemas of at most `bytes_max` bytes; `None` once their definitions are
    /// larger than a host lists. The rest is not made then: all together may need far more memory.
    fn all(&self, operations: &[Secured<'_, 'a>], bytes_max: usize) -> Option<(Vec<Made>, Vec<LeftOut>)> {
        let mut all = Vec::new();
        let mut left_out = Vec::new();
        let mut bytes = 0;
        for one in operations {
            match self.made(one, bytes_max) {
                Ok(made) => {
                    bytes += definition_bytes(&made.tool);
                    all.push(made);
                }
                Err(reason) => left_out.push(LeftOut { operation: one.operation.shown(), reason }),
            }
            if bytes > DEFINITIONS_BYTES_MAX {
                return None;
            }
        }
        Some((all, left_out))
    }

    /// One operation as a tool. `Err` says why it cannot be one, as the end of a sentence.
    fn made(&self, one: &Secured<'_, 'a>, bytes_max: usize) -> Result<Made, String> {
        let Secured { operation, filled, .. } = one;
        let document = self.document;
        let base = base_of(self.base, operation, self.options)?;
        let parts = [operation.item, operation.value];
        let mut parameters = parameters::of_operation(document, &operation.target, parts, filled, bytes_max)?;
        let body = body::of_operation(document, operation.value, &mut parameters, bytes_max)?;
        let answer = responses::of_operation(document, operation.value, bytes_max);
        let mut input = json!({"type": "object", "properties": parameters.properties});
        if let (Value::Object(input), false) = (&mut input, parameters.required.is_empty()) {
            input.insert("required".to_owned(), parameters.required.into());
        }
        if let Value::Object(input) = &mut input {
            input.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        let request = Request {
            method: operation.method.to_owned(),
            path: format!("{}{}{}", base.path, operation.target.path, operation.target.fixed()),
            parameters: parameters.list,
            body,
            accept: answer.accept,
            output: answer.form,
        };
        let tool = ToolDefinition {
            name: operation.tool.clone(),
            title: title(operation),
            description: description(operation),
            input,
            output: answer.output,
            hints: hints_of_method(operation.method),
            icons: None,
            call: ToolCall::Http(request),
        };
        Ok(Made { tool, base, is_cut: parameters.is_cut || answer.is_cut, notes: parameters.notes })
    }
}

/// Those that the host can serve.
fn served(
    all: Vec<Made>,
    check: &dyn Fn(&ToolDefinition) -> Result<(), String>,
    refused: &mut Vec<LeftOut>,
) -> Vec<Made> {
    let mut served = Vec::new();
    for mut made in all {
        let operation = made.tool.operation();
        match crate::served::served(made.tool, check) {
            Ok((tool, notes)) => {
                made.notes.extend(notes);
                served.push(Made { tool, ..made });
            }
            Err(reason) => refused.push(LeftOut { operation, reason }),
        }
    }
    served
}

fn definition_bytes(tool: &ToolDefinition) -> usize {
    let schemas = [Some(&tool.input), tool.output.as_ref()];
    schemas.into_iter().flatten().map(crate::merge::json_bytes).sum::<usize>() + tool.description.len()
}

/// The server of an operation, which must be the document's own host.
fn base_of(base: &Base, operation: &Operation<'_>, options: &BridgeOptions) -> Result<Base, String> {
    let own = server::of_part(operation.value, options).or_else(|| server::of_part(operation.item, options));
    match own {
        None => Ok(base.clone()),
        Some(own) => match own? {
            own if own.origin == base.origin => Ok(own),
            own => Err(format!("has another server, {}", own.origin)),
        },
    }
}

fn title(operation: &Operation<'_>) -> Option<String> {
    let summary = operation.value.get("summary").or_else(|| operation.item.get("summary")).and_then(Value::as_str);
    let title = clipped(&summary?.split_whitespace().collect::<Vec<_>>().join(" "), TITLE_BYTES_MAX);
    (!title.is_empty()).then_some(title)
}

/// Summary and description, or the request where there is neither.
fn description(operation: &Operation<'_>) -> String {
    let text = |key: &str| {
        let text = operation.value.get(key).or_else(|| operation.item.get(key));
        text.and_then(Value::as_str).unwrap_or_default().trim()
    };
    let summary = text("summary");
    let long = text("description");
    let both = match (summary.is_empty(), long.is_empty()) {
        (true, true) => operation.shown(),
        (false, true) => summary.to_owned(),
        (true, false) => long.to_owned(),
        (false, false) if long.starts_with(summary.trim_end_matches('.')) => long.to_owned(),
        (false, false) => format!("{summary}\n\n{long}"),
    };
    clipped(&both, TOOL_TEXT_BYTES_MAX)
}

/// What a person should know of the tools that were made.
fn notes(base: &Base, options: &BridgeOptions, made: &[Made], deprecated: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if base.origin.scheme == "http" {
        notes.push(format!("requests to {} are not encrypted", base.origin));
    }
    if let Some(address) = &options.address
        && options.server.is_none()
        && !address.to_ascii_lowercase().starts_with(&format!("{}/", base.origin))
    {
        notes.push(format!("requests go to {}, which is not where the document is", base.origin));
    }
    if deprecated > 0 {
        notes.push(format!("deprecated operations are left out: {deprecated} (--deprecated takes them)"));
    }
    let cut: Vec<&str> = made.iter().filter(|made| made.is_cut).map(|made| made.tool.name.as_str()).collect();
    if !cut.is_empty() {
        const SHOWN_MAX: usize = 8;
        let rest = cut.len().saturating_sub(SHOWN_MAX);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let names = cut.iter().take(SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
        notes
            .push(format!("schemas that are large, recursive or refer elsewhere are left open in part: {names}{rest}"));
    }
    notes
}
