//! One run of a command-line program: what it is run with, what it prints, how it ends, and what of that is the tool's
//! answer. Must not hold: templates (that is policy), or which components are programs (that is `shape`).
//!
//! | file | holds |
//! |---|---|
//! | `export.rs` | the export of a component that is a program |
//! | `answer.rs` | a run that ended → what the caller gets |
mod answer;
mod export;

use toolcell_policy::{Invocation, Limits, Output, Program};
use wasmtime::Store;
use wasmtime::component::TypedFunc;
use wasmtime_wasi::I32Exit;

use crate::contract;
use crate::load::preview1;
use crate::shape::{Answer, Ask};
use crate::wasi::cli::{Printed, Standard};
use crate::wasi::state::CallState;
pub(crate) use answer::plain;
pub(super) use export::detect;

/// What `wasi:cli/run` exports: ends in success or in failure, or the guest exits before.
pub(crate) type Run = TypedFunc<(), (Result<(), ()>,)>;

/// What a call is told whose arguments the adapter has no room for.
const TOO_MUCH: &str =
    "the arguments are larger than the program can be given: 48 KiB for the longest and eight bytes for each";

/// A run that ended by itself.
pub(crate) struct Ended {
    exit_code: u8,
    /// Standard output, where that is the answer; else nothing.
    stdout: Vec<u8>,
    /// The end of standard error; of standard output as well, where that is not the answer.
    last_words: String,
    /// The bytes of the file that is the answer, or why there are none.
    file: Option<Result<Vec<u8>, String>>,
}

/// Runs the program once, in an instance that ran nothing before.
///
/// # Errors
/// The engine's: a trap, or a limit.
pub(crate) async fn run(
    store: &mut Store<CallState>,
    run: &Run,
    program: &Program,
    Ask { arguments_json, adapted, limits, .. }: Ask<'_>,
) -> wasmtime::Result<Answer> {
    let invocation = match program.expand(arguments_json) {
        Ok(invocation) if adapted && preview1::is_too_much(&invocation) => {
            return Ok(Err(contract::Failure::InvalidInput(TOO_MUCH.to_owned())));
        }
        Ok(invocation) => invocation,
        Err(error) => return Ok(Err(contract::Failure::InvalidInput(error.to_string()))),
    };
    for (path, text) in &invocation.files {
        if let Err(why) = store.data_mut().write_own_file(path, text.as_bytes()) {
            return Ok(Err(contract::Failure::Failed(why)));
        }
    }
    let printed = set_up(store.data_mut(), invocation, program, limits);
    let exit_code = match run.call_async(&mut *store, ()).await {
        Ok((Ok(()),)) => 0,
        Ok((Err(()),)) => 1,
        // Exit codes that WASI hands over have eight bits.
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
    let ended = Ended { exit_code, stdout: printed.stdout(), last_words: printed.last_words(), file };
    Ok(answer::of(program, ended))
}

fn set_up(state: &mut CallState, invocation: Invocation, program: &Program, limits: &Limits) -> Printed {
    let answers = !matches!(program.output(), Output::Media { file: Some(_), .. });
    let printed = Printed::new(state.log.clone(), answers.then(|| limits.output_bytes()));
    state.begin_run(limits, Standard { invocation, printed: printed.clone() });
    printed
}
