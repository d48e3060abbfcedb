//! `toolcell dev`: serves, and builds a project whenever a file of it changes.
use std::path::PathBuf;

use anyhow::Context as _;
use toolcell_policy::{Manifest, SourceRef, parse};
use toolcell_server::catalog::folder_of;
use toolcell_server::dev::{BuildJob, DevFolder, LastBuild, Project, ProjectBuild, ProjectState};
use toolcell_server::lock;
use toolcell_server::{ManifestFile, OpenOptions};

use crate::args::{DevArgs, ServeArgs};
use crate::commands::serve;
use crate::exit::{Exit, Failure};
use crate::logging;

/// Builds if a component is missing, then serves.
pub fn run(args: DevArgs) -> anyhow::Result<Exit> {
    let DevArgs { serve: args, project, command } = args;
    let log = logging::start(&args.log);
    if !project.is_dir() {
        let problem = format!("{} is not a folder", project.display());
        return Err(Failure::usage(problem, "name the project with --project").into());
    }
    // Problems of the manifest are reported when it is opened.
    let file = ManifestFile::read(&args.manifest.manifest).ok();
    let manifest = file.and_then(|file| parse(&file.source()).ok()).map(|parsed| parsed.manifest);
    let home = folder_of(&args.manifest.manifest);
    let project = Project::new(&project, manifest.as_ref(), &home).without(files_of_server(&args));
    let dev = DevFolder::of(project.folder());
    dev.clear().context("what an earlier `toolcell dev` served cannot be removed")?;
    // A lock pins the manifest's files, so the build must produce those.
    let dev = (!args.locked).then_some(dev);
    let job = BuildJob { project, command, hands_over: dev.is_some(), last_build: LastBuild::default() };
    let mut built: Option<ProjectState> = None;
    if manifest.is_some_and(|manifest| is_any_missing(&manifest, &home)) {
        built = Some(job.project.poll());
        if !job.build_first().context("the build does not start")? {
            return Ok(Exit::Done);
        }
    }
    let options = OpenOptions { dev, ..serve::opening(&args) };
    serve::serve(&args, &log, options, Some(ProjectBuild { job, built }))
}

/// Files that the server itself reads or writes, but no build: a change of the manifest is a
/// reload.
fn files_of_server(args: &ServeArgs) -> impl Iterator<Item = PathBuf> {
    let manifest = &args.manifest.manifest;
    let own = [manifest.clone(), lock::path_beside(manifest).to_path_buf()];
    own.into_iter().chain([&args.audit, &args.observe, &args.code.code_cache].into_iter().flatten().cloned())
}

/// True if a component was not built yet, so that nothing can be served.
fn is_any_missing(manifest: &Manifest, home: &std::path::Path) -> bool {
    manifest.components().iter().any(|component| match component.source() {
        SourceRef::File(source) => !home.join(source).exists(),
        _ => false,
    })
}
