//! Starting a host, alone or as several replicas.
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use super::{AUDIT, TestHost};
use crate::balanced::{self, Balanced};
use crate::bridge::Bridge;
use crate::folder::RUNTIME_FOLDER;
use crate::frames::Said;
use crate::{Folder, binary, fixture};

impl TestHost {
    /// Serves this manifest. Sources of the form `components/FIXTURE.wasm` are put in place.
    ///
    /// # Panics
    /// If the host does not start. Problems of the manifest show only with the first request.
    #[must_use]
    pub fn with_manifest(manifest: &str) -> Self {
        Self::in_folder(Folder::with_manifest(manifest))
    }

    /// Serves these fixtures under the limits that the tests share.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn serving(fixtures: &[&str]) -> Self {
        Self::with_manifest(&fixture::manifest_of(fixtures))
    }

    /// Serves the manifest of this folder.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn in_folder(folder: Folder) -> Self {
        Self::start_with(folder, &[], &[])
    }

    /// Serves the manifest of this folder with these further options.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn with_options(folder: Folder, options: &[&str]) -> Self {
        Self::start_with(folder, options, &[])
    }

    /// Serves this manifest and records each call. [`TestHost::audit`] reads the records.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording(manifest: &str) -> Self {
        Self::recording_in(Folder::with_manifest(manifest), &[])
    }

    /// Serves the manifest of this folder, with these variables in the host's environment, and
    /// records each call.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording_in(folder: Folder, variables: &[(&str, &str)]) -> Self {
        Self::start_with(folder, &["--audit", AUDIT], variables)
    }

    /// Serves the manifest of this folder with these further options, and records each call.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn recording_with(folder: Folder, options: &[&str]) -> Self {
        Self::start_with(folder, &[&["--audit", AUDIT], options].concat(), &[])
    }

    /// Serves the manifest of this folder, and builds the project `guest` in it with a shell
    /// script.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn building(folder: Folder, script: &str) -> Self {
        let manifest = folder.manifest();
        Self::start_as("dev", folder, &manifest, &["--project", "guest", "--", "sh", "-c", script], &[])
    }

    /// [`building`](Self::building) where the manifest is `guest/toolcell.toml`, among the sources.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn building_beside_its_manifest(folder: Folder, script: &str) -> Self {
        let manifest = folder.path().join("guest/toolcell.toml");
        Self::start_as("dev", folder, &manifest, &["--project", "guest", "--", "sh", "-c", script], &[])
    }

    /// Serves the manifest of this folder by the program of the drill, with these variables in the
    /// host's environment, and records each call.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`], or where the program was not built.
    #[must_use]
    pub fn drilling(folder: Folder, variables: &[(&str, &str)]) -> Self {
        let manifest = folder.manifest();
        Self::start_program(&binary::drill(), "serve", folder, &manifest, &["--audit", AUDIT], variables)
    }

    /// Serves the manifest of this folder in a process, and processes of it, with at most this many
    /// KiB of address space each.
    ///
    /// # Panics
    /// As [`TestHost::with_manifest`].
    #[must_use]
    pub fn within_address_space(folder: Folder, kib: u64) -> Self {
        let manifest = folder.manifest();
        Self::start_process(binary::within_address_space(kib), "serve", folder, &manifest, &[], &[])
    }

    pub(crate) fn start_with(folder: Folder, further: &[&str], variables: &[(&str, &str)]) -> Self {
        match balanced::replicas_in(&folder) {
            Some(count) => balanced::start(count, folder, further, variables),
            None => Self::start_alone(folder, further, variables),
        }
    }

    /// Serves the manifest of this folder as one process.
    pub(crate) fn start_alone(folder: Folder, further: &[&str], variables: &[(&str, &str)]) -> Self {
        let manifest = folder.manifest();
        Self::start_as("serve", folder, &manifest, further, variables)
    }

    /// Serves this manifest in its own place, with a new folder for everything else.
    pub(crate) fn start_of(manifest: &Path, further: &[&str]) -> Self {
        match balanced::replicas_for(&std::fs::read_to_string(manifest).unwrap()) {
            Some(count) => balanced::start(count, balanced::standing_for(manifest), further, &[]),
            None => Self::start_as("serve", Folder::with_manifest(""), manifest, further, &[]),
        }
    }

    /// The host with this name of its audit file.
    pub(crate) fn recording_as(mut self, audit: &str) -> Self {
        audit.clone_into(&mut self.audit);
        self
    }

    /// The host as the first of several replicas. A bridge takes the place of its own streams.
    pub(crate) fn balanced(mut self, mut balanced: Balanced) -> Self {
        if let Some((input, lines, thread)) = balanced.bridge.as_mut().and_then(Bridge::ends) {
            self.input = Some(input);
            self.lines = Some(lines);
            drop(self.child.stdout.take());
            self.threads.push(thread);
        }
        self.balanced = Some(Box::new(balanced));
        self
    }

    /// The address where this process serves over HTTP.
    pub(crate) fn http_address(&self) -> SocketAddr {
        assert!(self.said.wait_for("/mcp\n"), "it does not serve:\n{}", self.said.text());
        let said = self.said.text();
        let endpoint = said.lines().find(|line| line.ends_with("/mcp")).unwrap_or_default();
        let at = endpoint.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
        at.parse().unwrap_or_else(|error| panic!("{at}: {error}\n{said}"))
    }

    /// The address where clients find it: that of the balancer where there is one.
    ///
    /// # Panics
    /// If it does not serve over HTTP in time.
    #[must_use]
    pub fn reached_at(&self) -> SocketAddr {
        self.balanced.as_ref().map_or_else(|| self.http_address(), |balanced| balanced.nginx.address())
    }

    fn start_as(command: &str, folder: Folder, manifest: &Path, further: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_program(&binary::toolcell(), command, folder, manifest, further, variables)
    }

    fn start_program(
        program: &Path,
        command: &str,
        folder: Folder,
        manifest: &Path,
        further: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::start_process(std::process::Command::new(program), command, folder, manifest, further, variables)
    }

    fn start_process(
        mut process: std::process::Command,
        command: &str,
        folder: Folder,
        manifest: &Path,
        further: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = process
            .arg(command)
            .arg("--manifest")
            .arg(manifest)
            .args(further)
            .env(RUNTIME_FOLDER, folder.runtime())
            .envs(variables.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, thread) = Said::of(child.stderr.take().unwrap());
        Self {
            input: child.stdin.take(),
            child,
            lines: None,
            said,
            threads: vec![thread],
            kept: VecDeque::new(),
            last_id: 0,
            is_legacy: false,
            folder,
            audit: AUDIT.to_owned(),
            balanced: None,
        }
    }
}
