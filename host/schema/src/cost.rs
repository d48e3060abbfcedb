//! The cost of validating a value. With references, one subschema can apply to one value in
//! exponentially many ways. Schemas and results come from untrusted authors, so the applications
//! are counted first.

use serde_json::Value;

use super::graph::{Graph, Node};
use super::meter::pay;
use crate::bounds::DefinitionProblem;

/// Applications of subschemas that validating any value may take: a few milliseconds of work.
const STEPS_MAX: usize = 1_000_000;

/// The bound per value of a document, for long but legitimate documents.
const STEPS_PER_VALUE_MAX: usize = 64;

/// Applications of subschemas to the root alone, whatever the value. Deep `allOf` trees stay below
/// 1,000.
const STEPS_HERE_MAX: usize = 10_000;

/// The bound over all subschemas. A chain of 400 references takes 80,000.
const STEPS_ALL_MAX: usize = 2_000_000;

/// Bytes that the validator keeps for each subschema that a search for unevaluated members passes,
/// and for each name in it.
const PASSED_BYTES: usize = 500;
const PASSED_NAME_BYTES: usize = 100;

/// Steps for counting one application.
const APPLY_STEPS: u64 = 10;

/// Steps for finding a member's subschema by name, besides the bytes of the name.
const MEMBER_STEPS: u64 = 40;

/// Deepest nesting of subschemas during validation: the validator is recursive, and a thread's
/// stack is finite.
const NESTING_MAX: usize = 512;

/// The counts of a schema.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SchemaCounts {
    /// Most subschemas that apply to one value.
    pub(super) applied: usize,
    /// Bytes that the validator keeps to find unevaluated members, for every subschema on the way,
    /// as often as it is on one.
    pub(super) kept_bytes: usize,
}

/// Counts the applications of a schema to a value, before its validator runs.
#[derive(Debug)]
pub(super) struct Guard {
    nodes: Vec<Node>,
}

impl Guard {
    /// Builds a guard if the schema needs one, and returns the counts.
    ///
    /// # Errors
    /// The schema applies to itself without going deeper, or in too many ways to any value.
    pub(super) fn new(field: &str, graph: &Graph) -> Result<(Option<Self>, SchemaCounts), DefinitionProblem> {
        let mut counts = SchemaCounts::default();
        let mut all = STEPS_ALL_MAX;
        for (place, node) in graph.nodes.iter().enumerate() {
            let mut path = Vec::new();
            let most = STEPS_HERE_MAX.min(all);
            let mut steps = most;
            if !here_only(&graph.nodes, place, &mut path, &mut steps) {
                let text = if steps == 0 {
                    "its references apply to one value in too many ways"
                } else {
                    "a reference leads back to itself without going deeper into the value"
                };
                return Err(DefinitionProblem::new(field, text));
            }
            counts.applied = counts.applied.max(most - steps);
            all -= most - steps;
            if node.looks_twice {
                counts.kept_bytes = counts.kept_bytes.saturating_add(kept_bytes(&graph.nodes, place));
            }
        }
        let needed = graph.has_references || graph.nodes.iter().any(|node| node.looks_twice);
        Ok((needed.then(|| Self { nodes: graph.nodes.clone() }), counts))
    }

    /// True if validating this value stays within bounds. Must run within a meter: counting takes
    /// steps.
    pub(super) fn allows(&self, value: &Value) -> bool {
        let steps = STEPS_MAX.max(count(value).saturating_mul(STEPS_PER_VALUE_MAX));
        self.apply(0, value, &mut Budget { steps, nesting: 0 })
    }

    /// Counts all applications; false if the budget runs out.
    fn apply(&self, place: usize, value: &Value, budget: &mut Budget) -> bool {
        let Some(node) = self.nodes.get(place) else { return true };
        if budget.steps == 0 || budget.nesting == NESTING_MAX || !pay(APPLY_STEPS) {
            return false;
        }
        budget.steps -= 1;
        budget.nesting += 1;
        let rounds = if node.looks_twice { 2 } else { 1 };
        let here = (0..rounds).all(|_| node.here.iter().all(|next| self.apply(*next, value, budget)));
        let within = here && self.descend(node, value, budget);
        budget.nesting -= 1;
        within
    }

    fn descend(&self, node: &Node, value: &Value, budget: &mut Budget) -> bool {
        if node.members.is_empty() && node.below.is_empty() {
            return true;
        }
        match value {
            Value::Object(members) => members.iter().all(|(name, member)| {
                if !pay(MEMBER_STEPS + name.len() as u64) {
                    return false;
                }
                let named = node.members.get(name).is_none_or(|next| self.apply(*next, member, budget));
                named && self.apply_below(node, member, budget)
            }),
            Value::Array(elements) => {
                elements.iter().all(|element| pay(APPLY_STEPS) && self.apply_below(node, element, budget))
            }
            _ => true,
        }
    }

    fn apply_below(&self, node: &Node, value: &Value, budget: &mut Budget) -> bool {
        node.below.iter().all(|next| self.apply(*next, value, budget))
    }
}

/// The remaining budget.
struct Budget {
    steps: usize,
    nesting: usize,
}

/// Walks the subschemas that apply to the same value; false if they are recursive or too many.
fn here_only(nodes: &[Node], place: usize, path: &mut Vec<usize>, steps: &mut usize) -> bool {
    let Some(node) = nodes.get(place) else { return true };
    if path.contains(&place) {
        return false;
    }
    if path.len() >= NESTING_MAX {
        *steps = 0;
    }
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    path.push(place);
    let rounds = if node.looks_twice { 2 } else { 1 };
    let ends = (0..rounds).all(|_| node.here.iter().all(|next| here_only(nodes, *next, path, steps)));
    path.pop();
    ends
}

/// Bytes that the validator keeps to find unevaluated members at this place. Its references are
/// known to end.
fn kept_bytes(nodes: &[Node], place: usize) -> usize {
    let Some(node) = nodes.get(place) else { return 0 };
    let names =
        node.members.keys().map(|name| name.len() + PASSED_NAME_BYTES).fold(PASSED_BYTES, usize::saturating_add);
    node.here.iter().map(|next| kept_bytes(nodes, *next)).fold(names, usize::saturating_add)
}

/// The number of values in a JSON value.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        Value::Array(elements) => 1 + elements.iter().map(count).sum::<usize>(),
        _ => 1,
    }
}
