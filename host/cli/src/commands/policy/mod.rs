//! `toolcell policy`: questions about the manifest's grants, answered without running anything.
mod evidence;
mod explain;
mod fuzz;
mod narrow;
mod subjects;
mod suggest;
mod test;

use crate::args::{PolicyArgs, PolicyCommand};
use crate::exit::Exit;

/// Runs one of its commands.
pub fn run(args: &PolicyArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Test(args) => test::run(args),
        PolicyCommand::Suggest(args) if args.narrow => narrow::run(args),
        PolicyCommand::Suggest(args) => suggest::run(args),
        PolicyCommand::Fuzz(args) => fuzz::run(args),
    }
}
