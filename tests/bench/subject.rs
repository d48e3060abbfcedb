//! The programs that can be measured. Each answers lines on its stdin with lines on its stdout. One
//! is toolcell; this program as a native child is another. Any MCP server with a tool like `echo`
//! can be a further one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::native::Native;

/// A program to start and send requests to.
#[derive(Clone)]
pub struct Subject {
    /// Its name in errors.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that it has in addition to this program's own.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Subject {
    /// This command of `toolcell` with this manifest. Its cache is in this folder, not in the
    /// user's.
    pub fn toolcell(command: &str, manifest: &Path, kept: &Path) -> Self {
        let arguments = vec![command.into(), "--manifest".into(), manifest.into()];
        let environment =
            ["XDG_CACHE_HOME", "XDG_STATE_HOME"].map(|variable| (variable, kept.join(variable).into_os_string()));
        Self {
            name: "toolcell",
            program: toolcell_tests::toolcell(),
            arguments,
            environment: environment.into_iter().collect(),
        }
    }

    /// The subject with these further arguments.
    pub fn with<const N: usize>(mut self, arguments: [&OsStr; N]) -> Self {
        self.arguments.extend(arguments.map(OsStr::to_owned));
        self
    }

    /// This program as a native child.
    ///
    /// # Errors
    /// The path of this program is unknown.
    pub fn native(native: Native) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let arguments = vec![native.flag().into()];
        Ok(Self { name: "native child", program, arguments, environment: Vec::new() })
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // A person's own settings for toolcell must not change the figures.
        command.args(&self.arguments).env_remove("RUST_BACKTRACE").env_remove("TOOLCELL_CODE_CACHE");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to its end. Only commands that are not servers end by themselves.
    ///
    /// # Errors
    /// It does not start, or fails.
    pub fn run(&self) -> anyhow::Result<()> {
        self.output().map(drop)
    }

    /// The text that it prints until its end.
    ///
    /// # Errors
    /// It does not start, or fails.
    pub fn output(&self) -> anyhow::Result<String> {
        let done = self.command().stdin(Stdio::null()).output().with_context(|| self.program.display().to_string())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{} {:?} failed: {}\n{said}", self.name, self.arguments, done.status);
        Ok(String::from_utf8(done.stdout)?)
    }
}
