//! From a component's bytes to machine code: out of the cache where it is there, else compiled and
//! kept.
//!
//! The only file of the project with `unsafe` in it.
use std::borrow::Cow;
use std::fs::File;
use std::hash::{Hash as _, Hasher};
use std::io::Write as _;

use rustix::fs::{MemfdFlags, SealFlags};
use wasmtime::component::Component;
use wasmtime::{CodeBuilder, Engine};

use crate::engine;
use crate::load::cache::CodeCache;
use crate::load::digest::Digest;
use crate::load::functions::FunctionStore;
use crate::load::preview1;
use crate::load::survey::{Refusal, Survey};

/// Bump when a change of this crate makes earlier code unusable in a way that wasmtime cannot see.
/// Bump also when code that was compiled before would not be compiled any more.
const FORMAT: u8 = 2;

/// The origin of a component's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Compiled now.
    Compiled,
    /// Compiled before.
    Cache,
}

/// Why there is no code.
#[derive(Debug)]
pub(crate) enum NotCompiled {
    /// It would cost too much.
    Refused(Refusal),
    /// The engine does not take it.
    Engine(wasmtime::Error),
}

impl From<wasmtime::Error> for NotCompiled {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Refusal> for NotCompiled {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A component's machine code.
pub(crate) struct Code {
    pub(crate) component: Component,
    pub(crate) origin: CodeOrigin,
    /// The name of its entry in the cache, if there is a cache.
    pub(crate) entry: Option<String>,
}

/// Compiles a component whose parts are counted, or finds it compiled. The digest is that of the
/// bytes.
pub(crate) fn component(
    engine: &Engine,
    kept: Option<(&CodeCache, &FunctionStore)>,
    (bytes, digest): (&[u8], Digest),
) -> Result<Code, NotCompiled> {
    let code = |component, origin, entry| Code { component, origin, entry };
    let Some((cache, functions)) = kept else { return Ok(code(compile(engine, bytes)?, CodeOrigin::Compiled, None)) };
    let name = name(engine, bytes, digest);
    if let Some(found) = find(engine, cache, &name) {
        return Ok(found);
    }
    let component = {
        let _compiling = functions.open();
        compile(engine, bytes)?
    };
    if let Ok(code) = component.serialize() {
        cache.keep(&name, &code);
    }
    Ok(Code { component, origin: CodeOrigin::Compiled, entry: Some(name) })
}

/// The component's code of this name, if it is in the cache.
pub(crate) fn find(engine: &Engine, cache: &CodeCache, name: &str) -> Option<Code> {
    let component = load(engine, &cache.find(name)?).ok()?;
    Some(Code { component, origin: CodeOrigin::Cache, entry: Some(name.to_owned()) })
}

/// A file with a component's code, for another process to map: that of its entry in the cache, or
/// one in memory.
pub(crate) fn file(cache: Option<(&CodeCache, &str)>, component: &Component) -> std::io::Result<File> {
    if let Some(file) = cache.and_then(|(cache, entry)| cache.find(entry)) {
        return Ok(file);
    }
    let code = component.serialize().map_err(std::io::Error::other)?;
    in_memory(&code)
}

/// A file in memory with these bytes, which nobody changes any more.
pub(crate) fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let file = empty_in_memory()?;
    (&file).write_all(bytes)?;
    seal(&file)?;
    Ok(file)
}

/// An empty file in memory, which can be written to until it is sealed.
pub(crate) fn empty_in_memory() -> std::io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(File::from(rustix::fs::memfd_create("toolcell-code", flags)?))
}

/// From now on nobody writes to this file in memory, whoever has it.
///
/// # Errors
/// Somebody has it mapped to write to it.
pub(crate) fn seal(file: &File) -> std::io::Result<()> {
    let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    Ok(rustix::fs::fcntl_add_seals(file, all)?)
}

/// Maps code that the host handed to this process.
pub(crate) fn handed(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    load(engine, file)
}

/// True if there is an entry for bytes with this digest. It may prove wrong.
pub(crate) fn is_kept(engine: &Engine, cache: &CodeCache, (bytes, digest): (&[u8], Digest)) -> bool {
    cache.has(&name(engine, bytes, digest))
}

/// Compiles a component, or the one that a program for WASI preview 1 becomes.
fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, NotCompiled> {
    Ok(Component::from_binary(engine, &counted(bytes)?)?)
}

/// Compiles likewise, to bytes, of which none becomes executable here.
pub(crate) fn serialized(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, NotCompiled> {
    let bytes = counted(bytes)?;
    Ok(CodeBuilder::new(engine).wasm_binary(bytes.as_ref(), None)?.compile_component_serialized()?)
}

/// The component to compile, once the cost of its code is counted.
fn counted(bytes: &[u8]) -> Result<Cow<'_, [u8]>, NotCompiled> {
    // Code in the cache was counted before it was compiled.
    Survey::check_code(bytes)?;
    if preview1::is_module(bytes) { Ok(preview1::component(bytes)?.into()) } else { Ok(bytes.into()) }
}

/// The name of an entry: everything that the code depends on. wasmtime's hash covers its full
/// version, the target, the processor's features in use, and every setting that code is compiled
/// for.
pub(crate) fn name(engine: &Engine, bytes: &[u8], digest: Digest) -> String {
    let mut settings = Settings::of(engine);
    settings.write_source(digest, preview1::is_module(bytes));
    settings.0.finalize().to_hex().to_string()
}

/// The name of everything that code from a loader depends on. `engine` is [`settings_name`].
pub(crate) fn name_elsewhere(engine: &str, digest: Digest, adapted: bool) -> String {
    let mut settings = Settings(blake3::Hasher::new());
    settings.write(engine.as_bytes());
    settings.write_source(digest, adapted);
    settings.0.finalize().to_hex().to_string()
}

/// The name of the settings that code is compiled for, on this machine. The engine that is asked
/// for them has seen nothing and is gone when this returns.
pub(crate) fn settings_name(stack_bytes: usize) -> wasmtime::Result<String> {
    Ok(engine_name(&Engine::new(&engine::config(stack_bytes))?))
}

/// The name of an engine: everything of it that code depends on.
pub(crate) fn engine_name(engine: &Engine) -> String {
    Settings::of(engine).0.finalize().to_hex().to_string()
}

/// A hasher that keeps all it is told, not 64 bits of it.
struct Settings(blake3::Hasher);

impl Settings {
    /// Everything of the engine that code depends on.
    fn of(engine: &Engine) -> Self {
        let mut settings = Self(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut settings);
        settings.write_u8(FORMAT);
        settings
    }
}

impl Settings {
    /// Adds the component itself.
    fn write_source(&mut self, digest: Digest, adapted: bool) {
        self.write(digest.as_bytes());
        if adapted {
            let (format, adapter) = preview1::adapter();
            self.write_u8(format);
            self.write(adapter);
        }
    }
}

impl Hasher for Settings {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
}

/// Maps the code of an entry that [`CodeCache::find`] has verified.
#[allow(unsafe_code)]
fn load(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    use std::os::fd::AsRawFd as _;
    // The file is opened by its descriptor, so it is the very file that was verified, even if its
    // path leads elsewhere now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the bytes must come from `Component::serialize` for an engine of the same settings,
    // and must not change while mapped. The MAC, made under a key that only this user can read,
    // shows that this host wrote them for an engine whose settings are in the entry's name. The
    // file belongs to this user and no other may write to it. Only a user who could replace this
    // program anyway can change it now; this program never writes to an entry again. A sandbox
    // process has the file from the host, over the link that it was started with. It cannot tell a
    // wrong one from a right one, and trusts the host.
    unsafe { Component::deserialize_file(engine, path) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const TINY: &[u8] = b"\0asm\x0d\0\x01\0";

    /// A folder of code, and the functions of an engine in it.
    struct Kept(Arc<CodeCache>, FunctionStore);

    impl Kept {
        fn new(root: &std::path::Path, engine: &Engine) -> Self {
            let cache = CodeCache::open(&root.join("code"), &root.join("state/key"), 1 << 30).unwrap();
            let cache = Arc::new(cache);
            let functions = FunctionStore::new(Arc::clone(&cache));
            functions.set_engine(engine_name(engine));
            Self(cache, functions)
        }

        fn origin(&self, engine: &Engine) -> CodeOrigin {
            component(engine, Some((&self.0, &self.1)), (TINY, Digest::of(TINY))).unwrap().origin
        }
    }

    #[test]
    fn a_component_is_compiled_once() {
        let root = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let kept = Kept::new(root.path(), &engine);
        assert_eq!([kept.origin(&engine), kept.origin(&engine)], [CodeOrigin::Compiled, CodeOrigin::Cache]);
        let is_kept = |bytes| is_kept(&engine, &kept.0, (bytes, Digest::of(bytes)));
        assert!(is_kept(TINY) && !is_kept(b"other bytes"));
        let uncached = component(&engine, None, (TINY, Digest::of(TINY))).unwrap();
        assert_eq!(uncached.origin, CodeOrigin::Compiled);
    }

    #[test]
    fn another_engine_s_code_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        Kept::new(root.path(), &engine).origin(&engine);
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        let metered = Engine::new(&config).unwrap();
        assert_ne!(engine_name(&engine), engine_name(&metered));
        assert_eq!(Kept::new(root.path(), &metered).origin(&metered), CodeOrigin::Compiled);
    }

    #[test]
    fn a_tampered_entry_is_compiled_again_and_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let kept = Kept::new(root.path(), &engine);
        let origin = || kept.origin(&engine);
        origin();
        let entry = std::fs::read_dir(root.path().join("code")).unwrap().next().unwrap().unwrap().path();
        let mut bytes = std::fs::read(&entry).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::set_permissions(&entry, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&entry, bytes).unwrap();
        assert_eq!([origin(), origin()], [CodeOrigin::Compiled, CodeOrigin::Cache]);
    }
}
