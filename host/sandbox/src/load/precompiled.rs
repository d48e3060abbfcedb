//! From a component's bytes to machine code, and from a file of that to a component that can run.
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
use crate::load::preview1;
use crate::load::survey::{self, Refusal};
use toolcell_wall::digest::Digest;
use toolcell_wall::sections::is_module;

/// Bump when a change of this crate makes earlier code unusable in a way that wasmtime cannot see.
/// Bump also when code that was compiled before would not be compiled any more.
const FORMAT: u8 = 2;

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

/// Compiles a component, or the one that a program for WASI preview 1 becomes, to bytes. None of
/// them becomes executable here.
pub(crate) fn serialized(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, NotCompiled> {
    let bytes = counted(bytes)?;
    Ok(CodeBuilder::new(engine).wasm_binary(bytes.as_ref(), None)?.compile_component_serialized()?)
}

/// The component to compile, once the cost of its code is counted.
fn counted(bytes: &[u8]) -> Result<Cow<'_, [u8]>, NotCompiled> {
    // Code in the cache was counted before it was compiled.
    survey::check_code(bytes)?;
    if is_module(bytes) { Ok(preview1::component(bytes)?.into()) } else { Ok(bytes.into()) }
}

/// The name of everything that code depends on. `engine` is [`settings_name`].
pub(crate) fn name(engine: &str, digest: Digest, adapted: bool) -> String {
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
fn engine_name(engine: &Engine) -> String {
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

/// Maps code that the host handed to this process.
#[allow(unsafe_code)]
pub(crate) fn handed(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    use std::os::fd::AsRawFd as _;
    // The file is opened by its descriptor, so it is the very file that was verified, even if its
    // path leads elsewhere now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the bytes must come from `Component::serialize` for an engine of the same settings,
    // and must not change while mapped. The host hands them over, over the link that this process
    // or thread was started with. It has them from a loader, or from an entry of the cache whose
    // MAC it verified, made under a key that only this user can read. Nobody writes to either any
    // more. What a loader made may be anything that its component wanted: so it is mapped behind
    // walls. Where the manifest wants none, the loader is a thread of this process, and what it
    // made is the compiler's.
    unsafe { Component::deserialize_file(engine, path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_code_depends_on_the_settings_of_its_engine() {
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        let names = [&Engine::default(), &Engine::new(&config).unwrap()].map(engine_name);
        assert_ne!(names[0], names[1]);
        let digest = Digest::of(b"bytes");
        assert_ne!(name(&names[0], digest, false), name(&names[1], digest, false));
        assert_ne!(name(&names[0], digest, false), name(&names[0], digest, true));
        assert_ne!(name(&names[0], digest, false), name(&names[0], Digest::of(b"others"), false));
    }
}
