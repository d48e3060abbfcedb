//! `toolcell man FOLDER`: writes a manual page of each command, for packages.
use clap::CommandFactory as _;

use crate::args::{Args, ManArgs};
use crate::exit::Exit;

/// Writes the pages.
pub fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.folder)?;
    clap_mangen::generate_to(Args::command(), &args.folder)?;
    Ok(Exit::Done)
}
