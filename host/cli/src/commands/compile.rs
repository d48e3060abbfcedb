//! `toolcell compile`: fills the cache of compiled code, for the next start.

use toolcell_sandbox::CodeOrigin;
use toolcell_server::Note;

use crate::args::CompileArgs;
use crate::exit::Exit;
use crate::manifest::open_or_report;
use crate::terminal;

/// Compiles and prints the result. Fails where nothing could be kept: a start would compile again.
pub fn run(args: &CompileArgs) -> anyhow::Result<Exit> {
    let (_, ready) = open_or_report(&args.manifest.manifest, &args.code)?;
    let mut text = String::new();
    for component in ready.catalog.components() {
        let done = match component.code_origin() {
            CodeOrigin::Compiled => "compiled",
            CodeOrigin::Cache => "was compiled already",
        };
        text.push_str(&format!("{} {done}\n", component.name()));
    }
    terminal::print(&text)?;
    let is_kept = ready.machine.notes.iter().all(|note| !matches!(note, Note::CodeNotKept(_)));
    Ok(if is_kept { Exit::Done } else { Exit::HostFailed })
}
