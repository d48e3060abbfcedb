//! `toolcell man FOLDER`: writes a manual page of each command, for packages.
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, ManArgs};
use crate::exit::Exit;

/// The heading of a page's examples and tables.
const EXTRA: &str = ".SH EXTRA";

/// Writes the pages.
pub fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    write(folder).with_context(|| format!("pages cannot be written into {}", folder.display()))?;
    Ok(Exit::Done)
}

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Args::command(), folder)?;
    for page in std::fs::read_dir(folder)? {
        let path = page?.path();
        if path.extension().is_some_and(|extension| extension == "1") {
            std::fs::write(&path, as_written(&std::fs::read_to_string(&path)?))?;
        }
    }
    Ok(())
}

/// A page whose examples and tables stay as they are written, in place of being filled.
fn as_written(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + 16);
    let mut is_extra = false;
    for line in page.lines() {
        if is_extra && line.starts_with(".SH") {
            text.push_str(".fi\n");
            is_extra = false;
        }
        text.push_str(line);
        text.push('\n');
        if line == EXTRA {
            text.push_str(".nf\n");
            is_extra = true;
        }
    }
    if is_extra {
        text.push_str(".fi\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::as_written;

    #[test]
    fn what_follows_the_options_stays_as_it_is_written() {
        let page = ".SH OPTIONS\n-v\n.SH EXTRA\na  b\n   c\n.SH VERSION\nv1\n";
        let expected = ".SH OPTIONS\n-v\n.SH EXTRA\n.nf\na  b\n   c\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(as_written(page), expected);
    }
}
