//! What guests can import: each interface with whoever implements it. No policy: what an import may do is decided when
//! it is called.
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::bindings::{cli, random as wasi_random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiView as _, p2};

use crate::bindings;
use crate::wasi::files;
use crate::wasi::state::CallState;
use crate::wasi::{config, keyvalue, random, sockets};

type State = CallState;

/// Everything that this host offers.
pub(crate) fn add_all(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // wasi:io, clocks, standard input and output.
    p2::add_to_linker_proxy_interfaces_async(linker)?;
    // In the place of what came with them.
    linker.allow_shadowing(true);
    random::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    add_cli(linker)?;
    files::add_to_linker(linker, State::files)?;
    sockets::add_to_linker(linker)?;
    config::add_to_linker(linker)?;
    keyvalue::add_to_linker(linker, State::keyvalue)?;
    // wasi:http, outgoing alone.
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    bindings::ToolComponent::add_to_linker::<_, HasSelf<_>>(linker, State::called)
}

fn add_cli(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasi_random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)
}
