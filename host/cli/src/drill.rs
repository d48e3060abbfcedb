//! `toolcell` for the drill: a guest that imports `toolcell:drill/native` has the power of native
//! code in its sandbox process. Only for tests: no package contains it, and `--version` shows it.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod edit;
mod exit;
mod listed;
mod lock_text;
mod logging;
mod manifest;
mod naming;
mod program;
mod sandbox_process;
mod sketch;
mod terminal;
mod top;
mod warned;

fn main() -> std::process::ExitCode {
    program::run()
}
