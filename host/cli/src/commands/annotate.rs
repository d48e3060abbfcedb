//! `toolcell annotate COMPONENT --wit PATH`: puts the comments of WIT into a component, since
//! builds leave them out.
use std::fs;
use std::path::{Path, PathBuf};

use toolcell_sandbox::{COMPONENT_BYTES_MAX, annotate};
use toolcell_server::file::{plain, read_bounded};
use toolcell_server::wit;

use crate::args::AnnotateArgs;
use crate::exit::Exit;
use crate::terminal;

/// The first eight bytes of a component.
const COMPONENT_PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";

/// Packages whose comments stay out: what a component imports from its host.
const HOSTS: [&str; 2] = ["wasi", "toolcell"];

/// Writes the annotated component, and prints the number of its descriptions.
pub fn run(args: &AnnotateArgs) -> anyhow::Result<Exit> {
    let output = args.output.as_ref().unwrap_or(&args.component);
    match annotated(args).and_then(|(component, count)| write(output, &component).map(|()| count)) {
        Ok(count) => {
            let output = toolcell_mcp::sanitize::line(&output.display().to_string()).into_owned();
            terminal::print(&format!("{output}: {count} descriptions of functions, types and their parts\n"))?;
            Ok(Exit::Done)
        }
        Err((problem, hint)) => {
            terminal::error(&problem, hint);
            Ok(Exit::AtFault)
        }
    }
}

type Problem = (String, Option<&'static str>);

fn annotated(args: &AnnotateArgs) -> Result<(Vec<u8>, usize), Problem> {
    let shown = args.component.display();
    let component =
        read_bounded(&args.component, COMPONENT_BYTES_MAX).map_err(|problem| (format!("{shown} {problem}"), None))?;
    if !component.starts_with(COMPONENT_PREAMBLE) {
        return Err((format!("{shown} is not a WebAssembly component"), Some("name a built component")));
    }
    // Models read of a component's own functions; what it imports is described elsewhere.
    let texts =
        wit::read(&args.wit, &args.wit.display().to_string()).map_err(|problem| (problem, None))?.without(&HOSTS);
    match texts.count() {
        0 => Err((
            format!("{} describes nothing", args.wit.display()),
            Some("write comments of three slashes before functions, types, fields and cases"),
        )),
        count => Ok((annotate(&component, &texts), count)),
    }
}

/// Writes a draft, then renames it over the old file, so that readers see one or the other.
fn write(path: &Path, component: &[u8]) -> Result<(), Problem> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.draft", std::process::id()));
    let draft = PathBuf::from(draft);
    let written = fs::write(&draft, component).and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        (format!("{} cannot be written: {}", path.display(), plain(&error)), None)
    })
}
