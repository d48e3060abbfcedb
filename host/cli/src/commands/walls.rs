//! `toolcell walls`: the walls that this machine supports.
use serde_json::json;
use toolcell_walls::kernel;

use crate::args::WallsArgs;
use crate::exit::Exit;
use crate::{sandbox_process, terminal};

/// Tries the walls in a separate process, and prints which of them stand.
pub fn run(args: &WallsArgs) -> anyhow::Result<Exit> {
    let report = kernel::probe(sandbox_process::probe()?)?;
    if args.json {
        let wall = |(wall, state): (kernel::Wall, &kernel::WallState)| json!({"wall": wall.to_string(), "state": state.word(), "meaning": wall.meaning(), "detail": state.detail()});
        let walls: Vec<_> = report.iter().map(wall).collect();
        let all = report.missing().next().is_none();
        terminal::print(&format!("{:#}\n", json!({"all": all, "walls": walls})))?;
    } else {
        terminal::print(&report.to_string())?;
    }
    Ok(Exit::Done)
}
