//! Folders to serve from: a manifest, and components that are built already.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Command, Folder, bulk};

use crate::subject::Subject;

/// The folder of the examples' built components, relative to this crate's folder.
const EXAMPLES: &str = "../guest-examples/components";

/// The folder of the fixtures' built components, relative to this crate's folder.
const FIXTURES: &str = "fixtures/components";

/// The fixture that makes HTTP requests. It is Rust with its standard library, so it also has
/// files.
const REACHING: &str = "reach_http";

/// The fixture that is saved repeatedly.
const NUMBERED: &str = "numbered";

/// Mounts of [`Serving::granted`]: one writable, one of scratch space, the others read-only.
pub const MOUNTS: usize = 4;

/// HTTP rules of [`Serving::granted`].
pub const RULES: usize = 20;

/// The call rate of one tool. It is counted as always, and never reached.
const RATE: &str = "1000000/s";

/// A folder with a manifest and components. Dropping this removes it.
pub struct Serving(Folder);

impl Serving {
    /// Serves `echo` and `tiny` with the default settings of a tool, except for [`RATE`].
    ///
    /// # Errors
    /// They were not built.
    pub fn examples() -> anyhow::Result<Self> {
        Self::examples_with("")
    }

    /// Serves `echo` and `tiny` with no instance made before a call comes.
    ///
    /// # Errors
    /// They were not built.
    pub fn fresh() -> anyhow::Result<Self> {
        Self::examples_with("prewarm = 0\n")
    }

    fn examples_with(keys: &str) -> anyhow::Result<Self> {
        let serving = Self::with("", &[("echo", keys), ("tiny", keys)]);
        serving.place("echo", &built(EXAMPLES, "echo")?);
        serving.place("tiny", &built(EXAMPLES, "tiny")?);
        Ok(serving)
    }

    /// Serves `echo` next to `loops`, in one group. No limit ends a call of `loops` while the
    /// measurement runs.
    ///
    /// # Errors
    /// They were not built.
    pub fn loops() -> anyhow::Result<Self> {
        Self::loops_with("")
    }

    /// Serves [`loops`](Self::loops) with a grant for `loops`, which gives it processes of its own.
    ///
    /// # Errors
    /// They were not built.
    pub fn loops_apart() -> anyhow::Result<Self> {
        Self::loops_with(&granted_variable("loops"))
    }

    fn loops_with(further: &str) -> anyhow::Result<Self> {
        let limits = "[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"1h\"\n";
        let serving = Self::with(&format!("{limits}{further}"), &[("echo", ""), ("loops", "")]);
        serving.place("echo", &built(EXAMPLES, "echo")?);
        serving.place("loops", &built(FIXTURES, "loops")?);
        Ok(serving)
    }

    /// Serves this many components, each with one tool: `echo` with [`prefix`] before its name.
    /// Each has the same code and a section that differs, so that no compiled component serves for
    /// another.
    ///
    /// # Errors
    /// `echo` was not built.
    pub fn copies(count: usize) -> anyhow::Result<Self> {
        Self::copies_with(count, |_| String::new())
    }

    /// Serves [`copies`](Self::copies) from the store, once each was pushed to a registry and
    /// pulled from there. With a key each is signed, and has to be.
    ///
    /// # Errors
    /// `echo` was not built, or toolcell fails.
    pub fn pulled_copies(count: usize, registry: &Registry, key: Option<&SigningKey>) -> anyhow::Result<Self> {
        let serving = Self::copies(count)?;
        let trusted = key.map(|_| SigningKey::trusted(registry)).unwrap_or_default();
        let host = registry.host();
        let reached = format!("[server]\nstore = \"store\"\n\n[registries.\"{host}\"]\nprivate = true\n{trusted}");
        key.into_iter().for_each(|key| key.place(&serving.0));
        let mut manifest = std::fs::read_to_string(serving.0.manifest())?;
        manifest.push('\n');
        manifest.push_str(&reached);
        serving.0.write("toolcell.toml", &manifest);
        for at in 0..count {
            let file = format!("copy{at}.wasm");
            let source = push(&serving.0, &registry.reference(&format!("bench/copy{at}"), "1.0.0"), &file, key)?;
            manifest = manifest.replacen(&format!("source = \"{file}\""), &format!("source = \"{source}\""), 1);
        }
        serving.0.write("toolcell.toml", manifest);
        serving.toolcell("pull").run()?;
        Ok(serving)
    }

    /// Serves [`copies`](Self::copies) with a grant for each, next to `echo`, which has none.
    ///
    /// # Errors
    /// `echo` was not built.
    pub fn granted_copies(count: usize) -> anyhow::Result<Self> {
        let serving = Self::copies_with(count, granted_variable)?;
        let manifest = std::fs::read_to_string(serving.0.manifest())?;
        serving.0.write("toolcell.toml", format!("{manifest}\n[components.echo]\nsource = \"echo.wasm\"\n"));
        serving.place("echo", &built(EXAMPLES, "echo")?);
        Ok(serving)
    }

    fn copies_with(count: usize, further: impl Fn(&str) -> String) -> anyhow::Result<Self> {
        let echo = built(EXAMPLES, "echo")?;
        let names: Vec<(String, String)> =
            (0..count).map(|at| (format!("copy{at}"), format!("prefix = \"{}\"\n", prefix(at)))).collect();
        let named: Vec<(&str, &str)> = names.iter().map(|(name, keys)| (name.as_str(), keys.as_str())).collect();
        let further: String = names.iter().map(|(name, _)| further(name)).collect();
        let serving = Self::with(&further, &named);
        for (name, _) in &names {
            serving.place(name, &distinct(&echo, name));
        }
        Ok(serving)
    }

    /// Serves `echo` next to a component that can be saved again with another number.
    ///
    /// # Errors
    /// They were not built.
    pub fn numbered() -> anyhow::Result<(Self, Numbered)> {
        let serving = Self::with("", &[("echo", ""), (NUMBERED, "")]);
        let numbered = Numbered(built(FIXTURES, NUMBERED)?);
        serving.place("echo", &built(EXAMPLES, "echo")?);
        serving.place(NUMBERED, &numbered.0);
        Ok((serving, numbered))
    }

    /// Replaces the component that can be saved with these bytes, in one step.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.0.path().join(format!("{NUMBERED}.wasm"));
        let draft = path.with_extension("draft");
        std::fs::write(&draft, bytes)?;
        Ok(std::fs::rename(draft, path)?)
    }

    /// Serves `reach_http` with these keys and tables in its manifest entry.
    ///
    /// # Errors
    /// It was not built.
    pub fn reaching(keys: &str, tables: &str) -> anyhow::Result<Self> {
        let serving = Self::with(tables, &[(REACHING, keys)]);
        serving.place(REACHING, &built(FIXTURES, REACHING)?);
        Ok(serving)
    }

    /// Serves `reach_http` with [`MOUNTS`] mounts and [`RULES`] HTTP rules.
    ///
    /// # Errors
    /// It was not built.
    pub fn granted(keys: &str) -> anyhow::Result<Self> {
        let mut tables = format!("[components.{REACHING}.filesystem]\n\"/tmp\" = {{ scratch = \"1MiB\" }}\n");
        for mount in 1..MOUNTS {
            let access = if mount == 1 { "write" } else { "read" };
            tables.push_str(&format!(
                "\"/mount{mount}\" = {{ path = \"mount{mount}\", access = \"{access}\", create = true }}\n"
            ));
        }
        let rules: Vec<String> = (0..RULES).map(|rule| format!("\"GET https://api{rule}.example.com/v1/*\"")).collect();
        tables.push_str(&format!("\n[components.{REACHING}.network]\nhttp = [{}]\n", rules.join(", ")));
        Self::reaching(keys, &tables)
    }

    /// Serves `reach_http` with permission to ask the server on this port.
    ///
    /// # Errors
    /// It was not built.
    pub fn fetching(port: u16) -> anyhow::Result<Self> {
        let rule = format!("http = [\"GET http://127.0.0.1:{port}\"]\nprivate = [\"127.0.0.1:{port}\"]\n");
        Self::reaching("", &format!("[components.{REACHING}.network]\n{rule}"))
    }

    /// The components, with further keys for each, then further tables.
    fn with(further: &str, components: &[(&str, &str)]) -> Self {
        let mut manifest = format!("version = 1\n\n[defaults.limits]\nrate = \"{RATE}\"\n");
        for (name, keys) in components {
            manifest.push_str(&format!("\n[components.{name}]\nsource = \"{name}.wasm\"\n{keys}"));
        }
        manifest.push('\n');
        manifest.push_str(further);
        Self(Folder::with_manifest(&manifest))
    }

    fn place(&self, name: &str, component: &[u8]) {
        self.0.write(&format!("{name}.wasm"), component);
    }

    /// toolcell serving this.
    pub fn subject(&self) -> Subject {
        self.toolcell("serve")
    }

    /// toolcell serving this and recording every call.
    pub fn audited(&self) -> Subject {
        self.subject().with(["--audit".as_ref(), self.0.path().join("audit.jsonl").as_os_str()])
    }

    /// Makes toolcell compile all components in advance.
    ///
    /// # Errors
    /// toolcell fails.
    pub fn compile(&self) -> anyhow::Result<()> {
        self.toolcell("compile").run()
    }

    /// Removes everything that toolcell has cached, so that the next start compiles all components.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn forget(&self) -> anyhow::Result<()> {
        match std::fs::remove_dir_all(self.kept()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn toolcell(&self, command: &str) -> Subject {
        Subject::toolcell(command, &self.0.manifest(), &self.kept())
    }

    fn kept(&self) -> PathBuf {
        self.0.path().join("kept")
    }
}

/// A component whose tools return a number and mention it in their descriptions. Both stand in its
/// bytes.
pub struct Numbered(Vec<u8>);

impl Numbered {
    /// The component with this number and with that many more bytes of code.
    ///
    /// # Errors
    /// The fixture has no place for a number.
    pub fn bytes(&self, number: u64, code_bytes: usize) -> anyhow::Result<Vec<u8>> {
        let mut bytes = self.0.clone();
        for words in ["number ", "listed "] {
            let found = bytes.windows(words.len()).position(|window| window == words.as_bytes());
            let at = found.with_context(|| format!("{NUMBERED} says nowhere {words:?}"))? + words.len();
            let digits = format!("{number:06}").into_bytes();
            bytes.get_mut(at..at + digits.len()).context("no room for a number")?.copy_from_slice(&digits);
        }
        Ok(bulk::with_code(&bytes, code_bytes))
    }
}

/// `echo`, as it was built.
///
/// # Errors
/// It was not.
pub fn echo() -> anyhow::Result<Vec<u8>> {
    built(EXAMPLES, "echo")
}

/// A key that signs components, in two files.
pub struct SigningKey(rcgen::KeyPair);

impl SigningKey {
    const OWN: &str = "bench.key";
    const PUBLIC: &str = "bench.pub";

    /// A new one: ECDSA with P-256, as cosign makes it.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?))
    }

    /// Writes both halves into a folder.
    pub fn place(&self, folder: &Folder) {
        folder.write(Self::OWN, self.0.serialize_pem());
        folder.write(Self::PUBLIC, self.0.public_key_pem());
    }

    /// A rule that asks for its signature of all that comes from a registry.
    pub fn trusted(registry: &Registry) -> String {
        format!("\n[trust.\"{}/\"]\nsigned_by = [{{ key = \"{}\" }}]\n", registry.host(), Self::PUBLIC)
    }
}

/// Pushes a file of the folder, signed if a key is given. Returns the source that names it.
///
/// # Errors
/// It is not taken.
pub fn push(folder: &Folder, reference: &str, file: &str, key: Option<&SigningKey>) -> anyhow::Result<String> {
    let signed: &[&str] = if key.is_some() { &["--sign-key", SigningKey::OWN] } else { &[] };
    let pushed = Command::in_folder(folder, &[&["push", reference, file, "--json"], signed].concat()).run().json();
    pushed.get("source").and_then(|source| source.as_str()).map(str::to_owned).context("nothing was pushed")
}

/// A grant that changes nothing for a component that does not look at it.
fn granted_variable(component: &str) -> String {
    format!("\n[components.{component}.env]\nUNITS = \"metric\"\n")
}

/// The prefix of the tool name of this copy.
pub fn prefix(copy: usize) -> String {
    format!("c{copy}_")
}

fn built(folder: &str, name: &str) -> anyhow::Result<Vec<u8>> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.wasm"));
    std::fs::read(&path).with_context(|| format!("{} is not there; `make bench` builds it", path.display()))
}

/// The component with a custom section of this name at its end. A custom section is allowed there
/// and means nothing.
fn distinct(component: &[u8], name: &str) -> Vec<u8> {
    let length = |bytes: usize| u8::try_from(bytes).unwrap_or(0x7f) & 0x7f;
    let header = [0, length(name.len() + 1), length(name.len())];
    [component, &header, name.as_bytes()].concat()
}
