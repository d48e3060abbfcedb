//! Functions between components and the host, and the built-ins of the component model: their cost,
//! and whether they need the engine of async components.
use toolcell_wall::load::facts::GuestEngine;
use wasmparser::{CanonicalFunction, CanonicalOption};

use super::evaluation::Step;
use super::item::{Item, Kind, Size};
use super::ledger::Refusal;
use super::scope::Scopes;

/// Counts one of them.
pub(super) fn count(function: &CanonicalFunction, scopes: &mut Scopes<'_, '_>) -> Result<(), Refusal> {
    if is_async(function) {
        scopes.ledger.engine = GuestEngine::Async;
    }
    let size = size(function, scopes)?;
    scopes.step(Step::Trampoline(size))?;
    match (function, size) {
        (CanonicalFunction::Lift { .. }, Some(size)) => {
            scopes.lifts()?;
            scopes.step(Step::Push(Kind::Function, Item::Plain(size)))
        }
        _ => Ok(()),
    }
}

/// The size of the types that it takes and returns; `None` if it has only numbers.
fn size(function: &CanonicalFunction, scopes: &Scopes<'_, '_>) -> Result<Option<Size>, Refusal> {
    use CanonicalFunction::{FutureRead, FutureWrite, Lift, Lower, StreamRead, StreamWrite, TaskReturn};
    Ok(match *function {
        Lift { type_index: ty, .. }
        | StreamRead { ty, .. }
        | StreamWrite { ty, .. }
        | FutureRead { ty, .. }
        | FutureWrite { ty, .. } => Some(scopes.get(Kind::Type, ty)?.size()),
        Lower { func_index, .. } => Some(scopes.get(Kind::Function, func_index)?.size()),
        TaskReturn { result: Some(ty), .. } => Some(scopes.value(ty)?),
        _ => None,
    })
}

/// True for everything of the component model's async part.
fn is_async(function: &CanonicalFunction) -> bool {
    match function {
        CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. } => {
            options.iter().any(|option| matches!(option, CanonicalOption::Async | CanonicalOption::Callback(_)))
        }
        CanonicalFunction::ResourceNew { .. }
        | CanonicalFunction::ResourceDrop { .. }
        | CanonicalFunction::ResourceRep { .. } => false,
        _ => true,
    }
}
