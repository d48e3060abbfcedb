//! The name of the engines that kept code is for.
//!
//! This process has no engine, so another one reports the name of both: each process that compiles
//! does, once its walls stand and before it gets a byte of a component. No other message may report
//! a name, since a process that has read a component may send anything.
//!
//! A start that finds all code kept would have to wait for such a process, so the name is kept as
//! well, under a MAC like code. It holds for this file of the program, a processor with these
//! features, and these settings. If it is still wrong, as on a processor with new features that
//! this list lacks, the engine refuses to map the code: wasmtime stores version, settings and
//! features in it.
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use toolcell_wall::load::engine_name::EngineName;

use crate::load::cache::CodeCache;
use crate::load::kept_facts;

/// Bytes of a name in its file, with the version of the encoding.
const NAME_BYTES_MAX: u64 = 64;

/// The program that runs, whatever its path leads to now.
const PROGRAM: &str = "/proc/self/exe";

/// The name of the engine, once a process has reported it.
pub(super) struct KnownEngine {
    cache: Arc<CodeCache>,
    /// The name of the file with the name; `None` if this machine cannot be identified.
    file: Option<String>,
    name: Mutex<Option<EngineName>>,
}

impl KnownEngine {
    /// The engine for calls with this stack, with its name if an earlier start has learned it.
    pub(super) fn new(cache: Arc<CodeCache>, stack_bytes: usize) -> Self {
        let file = place(stack_bytes);
        let name = file.as_deref().and_then(|file| kept_facts::find(&cache, file, NAME_BYTES_MAX));
        Self { cache, file, name: Mutex::new(name) }
    }

    /// Its name; `None` until a process has reported it.
    pub(super) fn name(&self) -> Option<EngineName> {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a name that was reported by a process that has read no component. True if it is new.
    pub(super) fn learn(&self, name: EngineName) -> bool {
        let before = self.name.lock().unwrap_or_else(PoisonError::into_inner).replace(name);
        let is_news = before != Some(name);
        if let Some(file) = self.file.as_deref().filter(|_| is_news) {
            kept_facts::keep(&self.cache, file, &name, NAME_BYTES_MAX);
        }
        is_news
    }
}

/// The name of everything that the name of an engine depends on: this file of the program, the
/// processor and the settings. Replacing the program makes another file, or changes its time.
fn place(stack_bytes: usize) -> Option<String> {
    let program = fs::metadata(PROGRAM).ok()?;
    let features = features()?;
    let mut hasher = blake3::Hasher::new();
    for number in [program.ino(), program.len(), stack_bytes as u64] {
        hasher.update(&number.to_le_bytes());
    }
    for number in [program.mtime(), program.mtime_nsec(), program.ctime(), program.ctime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes()).update(b"\0");
    hasher.update(&features);
    Some(format!("engine-{}", hasher.finalize().to_hex()))
}

/// The features that code may depend on, each present or not. Cranelift asks for most of them.
#[cfg(target_arch = "x86_64")]
fn features() -> Option<Vec<u8>> {
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(u8::from(std::arch::is_x86_feature_detected!($name))),*] };
    }
    Some(detected!(
        "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "fma" "bmi1" "bmi2" "lzcnt" "cmpxchg16b" "movbe" "adx"
        "aes" "pclmulqdq" "sha" "f16c" "rdrand" "rdseed" "xsave" "gfni" "vaes" "vpclmulqdq" "avx512f" "avx512bw"
        "avx512cd" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni" "avx512bitalg"
        "avx512vpopcntdq"
    ))
}

/// As above.
#[cfg(target_arch = "aarch64")]
fn features() -> Option<Vec<u8>> {
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(u8::from(std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    Some(detected!("lse" "lse2" "paca" "pacg" "bti" "fp16" "dotprod" "aes" "sha2" "sha3" "crc" "sve" "sve2"))
}

/// On other architectures each start asks a process.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Option<Vec<u8>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK_BYTES: usize = 1 << 19;

    fn cache(root: &std::path::Path) -> Arc<CodeCache> {
        Arc::new(CodeCache::open(&root.join("code"), &root.join("state/key"), 1 << 20).unwrap())
    }

    #[test]
    fn the_name_of_the_engine_is_known_to_the_next_start_with_the_same_settings() {
        let root = tempfile::tempdir().unwrap();
        let engine = KnownEngine::new(cache(root.path()), STACK_BYTES);
        assert_eq!(engine.name(), None);
        let name = EngineName::new([7; 32]);
        assert!(engine.learn(name) && !engine.learn(name), "it is news once");
        assert_eq!(KnownEngine::new(cache(root.path()), STACK_BYTES).name(), Some(name));
        assert_eq!(KnownEngine::new(cache(root.path()), STACK_BYTES + 1).name(), None);
        let other = EngineName::new([8; 32]);
        assert!(engine.learn(other), "what a process says now counts");
        assert_eq!(KnownEngine::new(cache(root.path()), STACK_BYTES).name(), Some(other));
    }

    #[test]
    fn a_name_that_somebody_else_wrote_is_nobodys() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        KnownEngine::new(cache(other.path()), STACK_BYTES).learn(EngineName::new([7; 32]));
        let ours = cache(root.path());
        for entry in fs::read_dir(other.path().join("code")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), root.path().join("code").join(entry.file_name())).unwrap();
        }
        assert_eq!(KnownEngine::new(ours, STACK_BYTES).name(), None);
    }
}
