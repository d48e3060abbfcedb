//! This program as a sandbox process: the host starts it with one argument, and a socket as its
//! input.
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use toolcell_guest::{run_sandbox_process, sandbox_threads};
use toolcell_server::machine::GuestRunners;
use toolcell_walls::kernel;
use toolcell_walls::process::Command;

/// The argument that makes this program a sandbox process. No command has this name.
const ARGUMENT: &str = "--sandbox-process";

/// The argument that makes it probe the machine's walls, and print which of them stand.
const PROBE: &str = "--probe-walls";

/// The means of running guests: this program, or its threads for a manifest with `walls = "none"`.
pub fn guests() -> GuestRunners {
    let relay = |engine, imports: &[String]| toolcell_guest::relay(engine, imports).map_err(|error| error.to_string());
    GuestRunners { process: program(), threads: Some(sandbox_threads), relay: Some(relay) }
}

/// This program, as a sandbox process.
fn program() -> Option<Command> {
    let program = Command::this_program("toolcell-sandbox").ok()?.argument(ARGUMENT);
    #[cfg(feature = "drill")]
    let program = drilled(program);
    Some(program)
}

/// Passes on the walls that a drill omits. One of them it cannot omit itself.
#[cfg(feature = "drill")]
fn drilled(program: Command) -> Command {
    const WITHOUT: &str = "TOOLCELL_DRILL_WITHOUT";
    let without = std::env::var(WITHOUT).unwrap_or_default();
    let shares = without.split(',').any(|name| kernel::Wall::from_name(name) == Some(kernel::Wall::PidNamespace));
    let program = if shares { program.shares_process_ids() } else { program };
    program.inherit_variable(WITHOUT).inherit_variable("TOOLCELL_DRILL_LOADS")
}

/// This program, to try the walls of the machine.
pub fn probe() -> std::io::Result<Command> {
    Ok(Command::this_program("toolcell-probe")?.argument(PROBE))
}

/// Runs as a sandbox process, if this was started as one.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let argument = arguments.next()?;
    let further = arguments.next();
    let run = match argument.to_str() {
        Some(ARGUMENT) if further.is_none() => run,
        Some(PROBE) if further.is_none() => || Ok(kernel::answer_probe()?),
        _ => return None,
    };
    Some(run().map_or_else(
        |error| {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

fn run() -> anyhow::Result<()> {
    // First, while this process has no descriptors of its own.
    kernel::close_inherited()?;
    kernel::end_on_abort()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    run_sandbox_process(socket)?;
    Ok(())
}
