//! The `toolcell` binary.
//!
//! The server is a library, `toolcell_server`. Must not hold: anything that a server needs.
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
