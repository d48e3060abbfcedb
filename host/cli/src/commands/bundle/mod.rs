//! `toolcell bundle`: one file that a desktop client installs with a click. It is a zip of this
//! program, a manifest and its components, with a `manifest.json` about how to start them (MCPB,
//! manifest version 0.3).
mod contents;
mod description;
mod zip;

use std::path::{Path, PathBuf};

use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::{Manifest, Server};
use toolcell_server::file::{read_bounded, write_whole};
use toolcell_server::{OpenOptions, lock, shipped};

use crate::args::BundleArgs;
use crate::exit::{Exit, Failure};
use crate::manifest::{is_same_file, open_with_or_report};
use crate::terminal::{self, counted};
use contents::{Contents, ShippedComponent};
use zip::{ENTRIES_MAX, TooLarge, Zip, ZipKind};

/// Description of the bundle, for the client.
const DESCRIPTION: &str = "manifest.json";

/// Program in the bundle.
const PROGRAM: &str = "server/toolcell";

/// For manifests with `[code]`.
const ENGINE: ShippedComponent = ShippedComponent {
    name: "server/toolcell-code.wasm",
    what: "the engine of scripts",
    find: shipped::engine,
    how: shipped::HOW,
};

/// For components with an `http_tool`.
const BRIDGE: ShippedComponent = ShippedComponent {
    name: "server/toolcell-bridge.wasm",
    what: "the component of bridges",
    find: shipped::bridge,
    how: shipped::BRIDGE_HOW,
};

/// Bytes of a program. Ours has 40 MB without its symbols, and 120 MB with them.
const PROGRAM_BYTES_MAX: u64 = 256 << 20;

/// First bytes of a Linux program.
const ELF: &[u8] = b"\x7fELF";

impl From<TooLarge> for Failure {
    fn from(_: TooLarge) -> Self {
        let message = format!("the bundle would be too large: {ENTRIES_MAX} files and 4 GiB are allowed");
        Self::at_fault(message, "mount a smaller folder, or one by its absolute path, which stays outside")
    }
}

/// The name of the bundle: the server's, or that of the manifest's folder. Clients identify bundles
/// by name.
fn bundle_name(manifest: &Manifest, path: &Path) -> String {
    let name = manifest.server().name();
    if name != Server::default().name() {
        return name.to_owned();
    }
    let folder = path.canonicalize().ok().and_then(|path| Some(path.parent()?.file_name()?.to_str()?.to_owned()));
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let folder: String = folder.unwrap_or_default().chars().map(plain).collect();
    match folder.trim_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => name.to_owned(),
        folder => folder.to_owned(),
    }
}

/// Writes the bundle.
pub fn run(args: &BundleArgs) -> anyhow::Result<Exit> {
    let path = &args.manifest.manifest;
    // With a lock, only its components are bundled and served.
    let locked = lock::path_beside(path).exists();
    let options = OpenOptions { code: args.code.options(), locked, ..OpenOptions::default() };
    let (file, ready) = open_with_or_report(path, options)?;
    let name = bundle_name(&ready.manifest, path);
    let output = args.output.clone().unwrap_or_else(|| file_name(&name));
    if is_same_file(&output, path) {
        let problem = format!("the bundle would take the place of the manifest {}", output.display());
        return Err(Failure::usage(problem, "name another file after --output").into());
    }
    let contents = Contents::of(&file, &ready.manifest, &output)?;
    let program = program(args.program.as_deref())?;
    let description = description::of(args, &name, &ready, &contents, locked);
    let bytes = packed(&description, &program, &contents)?;
    contents.notes().iter().for_each(|note| terminal::eprint(&format!("note: {note}\n")));
    write_whole(&output, &bytes).map_err(|error| {
        Failure::of_machine(format!("{} cannot be written: {error}", output.display()), "name a file with --output")
    })?;
    let tools = ready.catalog.tools().tools().len();
    let size = bytes.len() as f64 / 1e6;
    terminal::print(&format!("{}: {}, {size:.1} MB\n", output.display(), counted(tools as u64, "tool")))?;
    Ok(Exit::Done)
}

/// The program to put into the bundle.
fn program(named: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let hint = "name a toolcell program of Linux with --program";
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()
            .map_err(|error| Failure::at_fault(format!("this program's path is not known: {error}"), hint))?,
    };
    let cannot = |problem: String| Failure::at_fault(format!("{} {problem}", path.display()), hint);
    let bytes = read_bounded(&path, PROGRAM_BYTES_MAX).map_err(cannot)?;
    if bytes.starts_with(ELF) { Ok(bytes) } else { Err(cannot("is not a Linux program".to_owned())) }
}

fn packed(description: &str, program: &[u8], contents: &Contents) -> Result<Vec<u8>, Failure> {
    let mut zip = Zip::default();
    zip.add(DESCRIPTION, description.as_bytes(), ZipKind::File)?;
    zip.add(PROGRAM, program, ZipKind::Program)?;
    for (name, bytes) in contents.files() {
        zip.add(name, bytes, ZipKind::File)?;
    }
    Ok(zip.finish()?)
}

/// Default file name of a server's bundle, without path separators.
fn file_name(server: &str) -> PathBuf {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = server.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    PathBuf::from(format!("{plain}.mcpb"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::file_name;

    #[test]
    fn a_bundle_is_written_here_whatever_its_server_is_called() {
        for (server, name) in [("acme-tools", "acme-tools.mcpb"), ("../a b", "---a-b.mcpb"), (".", "-.mcpb")] {
            assert_eq!(file_name(server), PathBuf::from(name));
        }
    }
}
