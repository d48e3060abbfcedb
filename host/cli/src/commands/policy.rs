//! `toolcell policy`: what the manifest allows, asked without running anything.
mod explain;
mod subjects;
mod suggest;
mod test;

use crate::args::{PolicyArgs, PolicyCommand};
use crate::exit::Exit;

/// Answers.
pub fn run(args: &PolicyArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Test(args) => test::run(args),
        PolicyCommand::Suggest(args) => suggest::run(args),
    }
}
