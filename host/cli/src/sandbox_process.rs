//! This program as a sandbox process: the host starts it with one argument, and a socket as its
//! input. Must not hold: what it is told there.
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

use toolcell_sandbox::serve_sandbox;
use toolcell_walls::kernel;
use toolcell_walls::process::Command;

/// The argument that makes a sandbox process of this program. No command of a person's has it.
const ARGUMENT: &str = "--sandbox-process";

/// Longer than any process runs: a century.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// This program, as a sandbox process.
pub fn program() -> Option<Command> {
    Some(Command::this_program("toolcell-sandbox").ok()?.argument(ARGUMENT))
}

/// Runs as a sandbox process, where this was started as one.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|argument| argument == ARGUMENT) && arguments.next().is_none();
    asked.then(|| match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn run() -> anyhow::Result<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    kernel::close_inherited()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One thread for what blocks, which never ends: behind the walls no other starts.
        .max_blocking_threads(1)
        .thread_keep_alive(FOREVER)
        .build()?;
    runtime.block_on(serve_sandbox(socket))?;
    Ok(())
}
