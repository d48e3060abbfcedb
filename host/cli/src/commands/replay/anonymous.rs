//! Copies of recordings without their content, for a bug report.
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolcell_server::file::write_private;
use toolcell_server::recordings::{Recording, SchemaNames};

use super::stage::Stages;
use super::{ENDING, read};
use crate::exit::Failure;
use crate::terminal;

/// The folder that copies are written into: nobody else reads it.
const FOLDER_MODE: u32 = 0o700;

/// Writes a copy of each recording into this folder, as `1.jsonl`, `2.jsonl` and so on: names of
/// recordings have the times of their calls.
pub(super) fn write(folder: &Path, files: &[PathBuf], stages: &mut Stages<'_>) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))?;
    for (number, path) in (1..).zip(files) {
        let recording = read(path)?;
        let names = names(path, &recording, stages);
        let to = folder.join(format!("{number}.{ENDING}"));
        if to.exists() {
            let hint = "name another folder: --anonymous FOLDER";
            return Err(Failure::at_fault(format!("{} is there already", to.display()), hint).into());
        }
        let bytes = recording.to_anonymous_bytes(&names)?;
        write_private(&to, &bytes).with_context(|| format!("cannot write {}", to.display()))?;
        terminal::eprint(&format!("wrote {} without its content as {}\n", path.display(), to.display()));
    }
    terminal::eprint("read them before you send them: names of tools and functions, lengths and counts are there\n");
    Ok(())
}

/// The names in the tool's schemas, which may be shown; none without the recorded component.
fn names(path: &Path, recording: &Recording, stages: &mut Stages<'_>) -> SchemaNames {
    let stage = stages.of(recording).ok().and_then(Result::ok).filter(|stage| stage.is_recorded(recording));
    let names = stage.and_then(|stage| stage.schema_names(recording));
    names.unwrap_or_else(|| {
        let text = "the recorded component is not here, so names of arguments are replaced as well";
        terminal::warning(&format!("{}: {text}", path.display()));
        SchemaNames::default()
    })
}
