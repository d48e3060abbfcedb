//! Components that are command-line programs: one run, its input and output, and its end. Must not
//! hold: templates (those are the policy's).
//!
//! | file | holds |
//! |---|---|
//! | `answer.rs` | from a finished run to the caller's answer |
mod answer;

use toolcell_policy::{Invocation, Limits, Output, Program};
use wasmtime::Store;
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex, TypedFunc};
use wasmtime_wasi::I32Exit;

use super::error::ShapeError;
use super::tool_call::{ToolAnswer, ToolCall};
use crate::wasi::cli::{Printed, RunStreams};
use crate::wasi::state::CallState;
pub(crate) use answer::plain;
use toolcell_wall::failure::CallFailure;

/// The export of a program, up to its version, in WASI 0.3 and 0.2. In 0.3 its function is async,
/// which makes no difference to its caller. A program that has both means 0.3: Rust's standard
/// library adds that of 0.2 to every one.
const EXPORTS: [&str; 2] = ["wasi:cli/run@0.3.", "wasi:cli/run@0.2."];

/// The function that `wasi:cli/run` exports. It returns success or failure, unless the guest exits
/// before.
pub(crate) type RunExport = TypedFunc<(), (Result<(), ()>,)>;

/// Bytes that the adapter can hold at once, in a page of 64 KiB that also holds its own state. They
/// hold the longest argument or variable, and a pair of pointers for each.
const AT_ONCE_BYTES_MAX: usize = 48 << 10;

/// The answer to a call with more arguments than the adapter can hold.
const TOO_MUCH: &str =
    "the arguments are larger than the program can be given: 48 KiB for the longest and eight bytes for each";

/// A run that ended by itself.
pub(crate) struct FinishedRun {
    exit_code: u8,
    /// Standard output, if it is the answer; otherwise empty.
    stdout: Vec<u8>,
    /// Standard error, if it is part of the answer; otherwise empty.
    stderr: Vec<u8>,
    /// The end of standard error, and of standard output if that is not the answer.
    last_words: String,
    /// The bytes of the file that is the answer, or a sentence with the reason why it cannot be
    /// read.
    file: Option<Result<Vec<u8>, String>>,
}

/// Runs the program once, in an instance that ran nothing before.
///
/// # Errors
/// An error of the engine: a trap, or a limit.
pub(crate) async fn run(
    store: &mut Store<CallState>,
    run: &RunExport,
    program: &Program,
    ToolCall { arguments_json, adapted, limits, .. }: ToolCall<'_>,
) -> wasmtime::Result<ToolAnswer> {
    let invocation = match program.expand(arguments_json) {
        Ok(invocation) if adapted && is_too_much(&invocation) => {
            return Ok(Err(CallFailure::InvalidInput(TOO_MUCH.to_owned())));
        }
        Ok(invocation) => invocation,
        Err(error) => return Ok(Err(CallFailure::InvalidInput(error.to_string()))),
    };
    for (path, text) in &invocation.files {
        if let Err(why) = store.data_mut().write_own_file(path, text.as_bytes()) {
            return Ok(Err(CallFailure::Failed(why)));
        }
    }
    let printed = set_up(store.data_mut(), invocation, program, limits);
    let exit_code = match run.call_async(&mut *store, ()).await {
        Ok((Ok(()),)) => 0,
        Ok((Err(()),)) => 1,
        // WASI's exit codes have eight bits.
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => u8::try_from(exit.0).unwrap_or(u8::MAX),
            None => return Err(error),
        },
    };
    let file = match program.output() {
        Output::Media { file: Some(path), .. } if program.is_fine(exit_code) => {
            Some(store.data_mut().read_own_file(path, limits.output_bytes()))
        }
        _ => None,
    };
    let ended = FinishedRun {
        exit_code,
        stdout: printed.stdout(),
        stderr: printed.stderr(),
        last_words: printed.last_words(),
        file,
    };
    Ok(answer::of(program, ended))
}

fn set_up(state: &mut CallState, invocation: Invocation, program: &Program, limits: &Limits) -> Printed {
    let answers = !matches!(program.output(), Output::Media { file: Some(_), .. });
    let printed = Printed::new(state.log.clone(), answers.then(|| limits.output_bytes()));
    let printed = match program.output() {
        Output::Text { stderr: true } => printed.with_stderr(),
        _ => printed,
    };
    state.begin_run(limits, RunStreams { invocation, printed: printed.clone() });
    printed
}

/// True for the name of the interface that programs export.
pub(super) fn is_export(name: &str) -> bool {
    EXPORTS.iter().any(|export| name.starts_with(export))
}

/// Finds the entry point of a component that is a program.
///
/// # Errors
/// It exports something else under that name.
pub(super) fn detect(component: &Component, exports: &[String]) -> Result<Option<ComponentExportIndex>, ShapeError> {
    let export = |begin: &&str| exports.iter().find(|name| name.starts_with(*begin));
    let Some(name) = EXPORTS.iter().find_map(export) else { return Ok(None) };
    let run = || {
        let (_, interface) = component.get_export(None, name)?;
        let (item, index) = component.get_export(Some(&interface), "run")?;
        is_run(&item).then_some(index)
    };
    match run() {
        Some(index) => Ok(Some(index)),
        None => Err(ShapeError::Mismatch { reason: format!("\"{name}\" has no function run: func() -> result") }),
    }
}

fn is_run(item: &ComponentItem) -> bool {
    let ComponentItem::ComponentFunc(run) = item else { return false };
    let mut results = run.results();
    let plain = |ty: &Type| matches!(ty, Type::Result(result) if result.ok().is_none() && result.err().is_none());
    run.params().len() == 0 && results.next().is_some_and(|ty| plain(&ty)) && results.next().is_none()
}

/// True if a run has more arguments than the adapter can hold. It would trap.
fn is_too_much(invocation: &Invocation) -> bool {
    let args = invocation.args.iter().map(String::len).max().unwrap_or_default() + 8 * invocation.args.len();
    let env = invocation.env.iter().map(|(name, value)| name.len() + value.len()).max().unwrap_or_default();
    args > AT_ONCE_BYTES_MAX || env + 16 * invocation.env.len() > AT_ONCE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use wasmtime::Engine;

    use super::*;

    #[test]
    fn a_program_of_both_versions_is_run_as_one_of_0_3() {
        // What is exported for 0.2 is no program.
        let text = r#"(component
            (core module $m (func (export "ok") (result i32) i32.const 0) (func (export "no")))
            (core instance $i (instantiate $m))
            (func $ok (result (result)) (canon lift (core func $i "ok")))
            (func $no (canon lift (core func $i "no")))
            (instance $new (export "run" (func $ok)))
            (instance $old (export "run" (func $no)))
            (export "wasi:cli/run@0.2.3" (instance $old))
            (export "wasi:cli/run@0.3.0" (instance $new)))"#;
        let component = Component::new(&Engine::default(), wat::parse_str(text).unwrap()).unwrap();
        let both = ["wasi:cli/run@0.2.3".to_owned(), "wasi:cli/run@0.3.0".to_owned()];
        assert!(detect(&component, &both).unwrap().is_some());
        assert!(detect(&component, &both[..1]).is_err());
        assert!(detect(&component, &[]).unwrap().is_none());
    }
}
