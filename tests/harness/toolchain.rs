//! The languages' own tools, from the same place as those of the examples.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code of the examples' scripts if a compiler cannot be had.
const NOT_TO_BE_HAD: i32 = 3;

/// A folder's name with all that a build must quote.
pub const AWKWARD: &str = "it's a clone";

/// The tools and settings to build projects of one language. The paths of all of them have a blank
/// and an apostrophe, as those of a clone or of a user's folder may.
#[derive(Debug)]
pub struct Toolchain {
    /// Where the tools are found.
    tools: Tools,
    /// A program to run `make` with, which finds the compiler.
    wrapper: Option<PathBuf>,
    /// Variables to set.
    variables: Vec<(&'static str, String)>,
    /// Further arguments of `make`.
    arguments: Vec<String>,
    /// The script that installs what a project's own lock file pins, for projects that npm builds.
    packages: Option<PathBuf>,
}

impl Toolchain {
    /// The toolchain of this language.
    ///
    /// # Errors
    /// The reason why there is none.
    ///
    /// # Panics
    /// If no template has such a language.
    pub fn of(language: &str, repository: &Path) -> Result<Self, String> {
        let examples = repository.join("guest-examples");
        let tools = Tools::new();
        let toolcell = tools.linked("toolcell", &crate::toolcell());
        let mut toolchain = Self {
            tools,
            wrapper: None,
            variables: vec![("TOOLCELL", toolcell)],
            arguments: Vec::new(),
            packages: None,
        };
        let packages = |tools: &Tools, list: &str| tools.packages(&examples, list);
        match language {
            "rust" => toolchain.wrapper = Some(examples.join("toolchain.sh")),
            "js" => {
                Command::new("npm").arg("--version").output().map_err(|error| format!("npm: {error}"))?;
                toolchain.packages = Some(examples.join("packages.sh"));
            }
            "python" => {
                let packages = packages(&toolchain.tools, "statistics/requirements.txt")?;
                toolchain.arguments.push(format!("COMPONENTIZE={packages}/bin/componentize-py"));
                toolchain.variables.push(("PYTHONPATH", packages));
            }
            "c" => {
                toolchain.variables.push(("PYTHONPATH", packages(&toolchain.tools, "html_tidy/requirements.txt")?));
                toolchain.arguments.push("CC=python3 -m ziglang cc -target wasm32-wasi".to_owned());
            }
            "go" => {
                if Command::new("go").arg("version").output().is_err() {
                    said_by(Command::new(examples.join("template/build.sh")))?; // makes its Go executable
                    let packages = packages(&toolchain.tools, "template/requirements.txt")?;
                    toolchain.arguments.push(format!("GO={packages}/go/bin/go"));
                }
                toolchain.variables.extend([("GOTOOLCHAIN", "local".to_owned()), ("GOFLAGS", "-mod=mod".to_owned())]);
            }
            other => panic!("no toolchain is known for {other:?}"),
        }
        Ok(toolchain)
    }

    /// Runs the commands of the project's README, which build and test it.
    ///
    /// # Panics
    /// If one fails.
    pub fn build_and_test(&self, project: &Path, shape: &str) {
        self.build(project, shape);
        match &self.packages {
            Some(_) => self.run(Command::new("npm").args(["test"]), project),
            None => self.make(project, shape, &["test"]),
        }
    }

    /// Builds the project.
    ///
    /// # Panics
    /// If that fails.
    pub fn build(&self, project: &Path, shape: &str) {
        let Some(packages) = &self.packages else { return self.make(project, shape, &[]) };
        let mut command = Command::new(packages);
        command.arg(project.join("package-lock.json"));
        let installed = Path::new(said_by(command).unwrap().trim()).join("node_modules");
        std::os::unix::fs::symlink(installed, project.join("node_modules")).unwrap();
        self.run(Command::new("npm").args(["run", "build"]), project);
    }

    /// The command that builds a project, as a shell reads it.
    #[must_use]
    pub fn make_line(&self) -> String {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
        let arguments = self.arguments.iter().map(|argument| format!(" {}", quoted(argument)));
        format!("{}make{}", variables.collect::<String>(), arguments.collect::<String>())
    }

    fn make(&self, project: &Path, shape: &str, goals: &[&str]) {
        stands_alone(project);
        // Crates compiled for an earlier project of this shape need not be compiled again.
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.join("target"), PathBuf::from);
        let mut command = self.wrapper.as_ref().map_or_else(
            || Command::new("make"),
            |wrapper| {
                let mut command = Command::new(wrapper);
                command.arg("make");
                command
            },
        );
        command.env("CARGO_TARGET_DIR", target.join("new").join(AWKWARD).join(shape));
        self.run(command.args(&self.arguments).args(goals), project);
    }

    fn run(&self, command: &mut Command, project: &Path) {
        let ended = command.current_dir(project).envs(self.variables.iter().cloned()).output().unwrap();
        let said = [&ended.stdout[..], &ended.stderr[..]].concat();
        assert!(ended.status.success(), "{command:?} in {project:?}:\n{}", String::from_utf8_lossy(&said));
    }
}

/// Makes a project of cargo its own workspace. Cargo looks for one in all folders above it.
fn stands_alone(project: &Path) {
    let manifest = project.join("Cargo.toml");
    if let Ok(text) = std::fs::read_to_string(&manifest)
        && !text.lines().any(|line| line.starts_with("[workspace"))
    {
        std::fs::write(&manifest, text + "\n[workspace]\n").unwrap();
    }
}

/// A folder whose name a build must quote, with links to the tools.
#[derive(Debug)]
struct Tools(tempfile::TempDir);

impl Tools {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix(AWKWARD).tempdir().unwrap())
    }

    /// The path of a new link with this name.
    fn linked(&self, name: &str, to: &Path) -> String {
        let link = self.0.path().join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        link.to_string_lossy().into_owned()
    }

    /// The folder with the packages of this list, which belongs to an example.
    fn packages(&self, examples: &Path, list: &str) -> Result<String, String> {
        let mut command = Command::new(examples.join("packages.sh"));
        command.arg(examples.join(list));
        Ok(self.linked("packages", Path::new(said_by(command)?.trim())))
    }
}

/// The output of a script, or an error if the script says that a compiler cannot be had.
fn said_by(mut command: Command) -> Result<String, String> {
    let ended = command.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    match ended.status.code() {
        Some(0) => Ok(String::from_utf8(ended.stdout).unwrap()),
        Some(NOT_TO_BE_HAD) => Err(told),
        _ => panic!("{command:?}: {told}"),
    }
}

/// Runs a command of `toolcell` for as long as it takes. The first run compiles a component with a
/// language's whole engine.
///
/// # Panics
/// If it fails.
#[must_use]
pub fn toolcell(arguments: &[&str]) -> String {
    let ended = Command::new(crate::toolcell()).args(arguments).output().unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Prints a text that the test runner does not capture.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "\n{text}");
}
