//! Compiled functions that are kept, so that an edit compiles what it changed. Must not hold: whole
//! components (that is `cache`), or the form of a file (that is `segment`).
//!
//! wasmtime asks for each function by a key: the SHA-256 of Cranelift's input and settings. What it
//! gets becomes native code. So a function is given back only if a MAC over engine, key and code
//! fits, made under the key of the whole cache. Its file need not be trusted for that.
//!
//! Each compilation writes one file, with the functions that no file had. Files are never changed.
//! Many small ones are joined by the next compilation.
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use wasmtime::CacheStore;

use super::cache::{CodeCache, mark_used, open, trusted_bytes};

pub(crate) mod handed;
mod segment;
#[cfg(test)]
mod tests;

use segment::{Draft, Key, Place};

/// The end of a file's name. Before it stand the engine's name and a number.
const SUFFIX: &str = ".functions";

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Bytes of all files, those of other engines too. An interpreter has 35 to 48 MB: 512 MiB are
    /// a dozen of them.
    bytes_max: u64,
    /// Functions in all files of this engine that are read. An interpreter has 13,000, with 3 to 4
    /// KB each. The index of so many takes 20 MB while something is compiled.
    functions_max: usize,
    /// Bytes of one function. The largest of CPython has 1.1 MB.
    function_bytes_max: usize,
    /// Files from this size on are not joined.
    small_bytes: u64,
    /// Small files that may stay beside one another. An edit writes one.
    small_files_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            functions_max: 1 << 18,
            function_bytes_max: 16 << 20,
            small_bytes: 4 << 20,
            small_files_max: 16,
        }
    }
}

impl Bounds {
    /// Bytes that one compilation may add: a component may push out half of the others' functions.
    const fn draft_bytes_max(&self) -> u64 {
        self.bytes_max / 2
    }

    /// Functions that one compilation may add.
    const fn draft_functions_max(&self) -> usize {
        self.functions_max / 2
    }
}

/// The kept functions of one engine.
#[derive(Debug)]
pub(crate) struct FunctionStore {
    cache: Arc<CodeCache>,
    bounds: Bounds,
    /// The engine's name: everything that code depends on beside the function.
    engine: OnceLock<String>,
    compiling: RwLock<Compiling>,
}

/// The files that are open while something is compiled.
#[derive(Debug, Default)]
struct Compiling {
    /// Compilations that run.
    number: usize,
    files: Vec<Arc<Segment>>,
    index: HashMap<Key, (Arc<Segment>, Place)>,
    draft: Option<(Draft, Arc<Segment>)>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// `None` of the draft.
    path: Option<PathBuf>,
    bytes: u64,
    used: AtomicBool,
    /// A function's MAC did not fit.
    wrong: AtomicBool,
}

/// While one of these lives, functions are found and kept.
pub(crate) struct Session<'s>(&'s FunctionStore);

impl FunctionStore {
    /// A store in the folder of this cache. It is of no use before [`Self::set_engine`].
    pub(crate) fn new(cache: Arc<CodeCache>) -> Self {
        Self { cache, bounds: Bounds::default(), engine: OnceLock::new(), compiling: RwLock::default() }
    }

    /// Says which engine compiles. Only the first name counts: a store has one engine.
    pub(crate) fn set_engine(&self, name: String) {
        let _ = self.engine.set(name);
    }

    /// Opens the files for one compilation. Several may run at once; the last one to end closes
    /// them and writes the new functions.
    pub(crate) fn open(&self) -> Session<'_> {
        let mut compiling = self.write();
        compiling.number += 1;
        if compiling.number == 1
            && let Some(engine) = self.engine.get()
        {
            self.read_files(engine, &mut compiling);
        }
        Session(self)
    }

    /// Reads the index of each file, beginning with those used last. What does not fit goes.
    fn read_files(&self, engine: &str, compiling: &mut Compiling) {
        for (_, _, path) in self.cache.listing(SUFFIX).into_iter().rev() {
            if !path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(engine)) {
                continue;
            }
            let functions_left = self.bounds.functions_max.saturating_sub(compiling.index.len());
            let read = open(&path).ok().and_then(|file| {
                let bytes = trusted_bytes(&file, self.bounds.bytes_max)?;
                Some((segment::read_index(&file, bytes, functions_left)?, file, bytes))
            });
            let Some((places, file, bytes)) = read else {
                let _ = fs::remove_file(&path);
                continue;
            };
            let file = Arc::new(Segment::new(file, Some(path), bytes));
            for (key, place) in places {
                compiling.index.entry(key).or_insert_with(|| (Arc::clone(&file), place));
            }
            compiling.files.push(file);
        }
    }

    fn find(&self, key: &Key) -> Option<Vec<u8>> {
        let (segment, place) = self.read().index.get(key).cloned()?;
        segment.used.store(true, Ordering::Relaxed);
        let found = place.read(&segment.file, self.bounds.function_bytes_max).ok().filter(|(code, mac)| {
            // Comparing two `Hash`es takes the same time wherever they differ.
            self.mac(key, code).is_some_and(|right| right == blake3::Hash::from_bytes(*mac))
        });
        if found.is_none() {
            segment.wrong.store(true, Ordering::Relaxed);
            self.write().index.remove(key);
        }
        found.map(|(code, _)| code)
    }

    fn keep(&self, key: Key, code: &[u8]) -> Option<()> {
        if code.len() > self.bounds.function_bytes_max {
            return None;
        }
        let mac = self.mac(&key, code)?;
        let (place, segment) = {
            let mut compiling = self.write();
            if compiling.number == 0 || compiling.index.contains_key(&key) {
                return None;
            }
            if compiling.draft.is_none() {
                let (draft, file) = Draft::create(self.cache.draft(self.engine.get()?)).ok()?;
                compiling.draft = Some((draft, Arc::new(Segment::new(file, None, 0))));
            }
            let (draft, segment) = compiling.draft.as_mut()?;
            let fits = draft.bytes() + code.len() as u64 <= self.bounds.draft_bytes_max()
                && draft.functions() < self.bounds.draft_functions_max();
            (fits.then(|| draft.reserve(code)).flatten()?, Arc::clone(segment))
        };
        // Outside of the lock: others go on meanwhile.
        let written = segment.file.write_all_at(&[code, mac.as_bytes()].concat(), place.offset);
        let mut compiling = self.write();
        let (draft, _) = compiling.draft.as_mut()?;
        if written.is_err() {
            draft.failed();
            return None;
        }
        draft.filled(key, place);
        compiling.index.insert(key, (segment, place));
        Some(())
    }

    /// The MAC of a function. Names of whole entries are hexadecimal, so none begins like this.
    fn mac(&self, key: &Key, code: &[u8]) -> Option<blake3::Hash> {
        let mut hasher = self.cache.hasher("function");
        hasher.update(self.engine.get()?.as_bytes()).update(b"\0").update(key).update(code);
        Some(hasher.finalize())
    }

    /// Ends a compilation. The last one writes the new functions and trims.
    fn close(&self) {
        let compiling = {
            let mut compiling = self.write();
            compiling.number = compiling.number.saturating_sub(1);
            if compiling.number > 0 {
                return;
            }
            std::mem::take(&mut *compiling)
        };
        let Compiling { files, draft, .. } = compiling;
        let (wrong, right): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.wrong.load(Ordering::Relaxed));
        wrong.iter().for_each(|file| file.remove());
        right.iter().filter(|file| file.used.load(Ordering::Relaxed)).for_each(|file| mark_used(&file.file));
        if let (Some((draft, segment)), Some(engine)) = (draft, self.engine.get()) {
            self.finish(draft, &segment.file, engine, &right);
        }
        self.cache.trim_to(SUFFIX, self.bounds.bytes_max);
    }

    /// Puts the new file in its place, with the functions of the small ones where those are many.
    fn finish(&self, mut draft: Draft, new: &File, engine: &str, files: &[&Arc<Segment>]) -> Option<()> {
        let mut small: Vec<_> = files.iter().filter(|file| file.bytes < self.bounds.small_bytes).collect();
        if small.len() < self.bounds.small_files_max {
            small.clear();
        }
        for file in &small {
            for (key, place) in segment::read_index(&file.file, file.bytes, self.bounds.functions_max)? {
                let (code, mac) = place.read(&file.file, self.bounds.function_bytes_max).ok()?;
                let to = draft.reserve(&code)?;
                // Its MAC goes with it, and is looked at where it is used.
                new.write_all_at(&[code.as_slice(), &mac].concat(), to.offset).ok()?;
                draft.filled(key, to);
            }
        }
        if draft.finish(new, &self.cache.unused_path(engine, SUFFIX).ok()?).ok()? {
            small.iter().for_each(|file| file.remove());
        }
        Some(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Compiling> {
        self.compiling.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Compiling> {
        self.compiling.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segment {
    fn new(file: File, path: Option<PathBuf>, bytes: u64) -> Self {
        Self { file, path, bytes, used: AtomicBool::new(false), wrong: AtomicBool::new(false) }
    }

    fn remove(&self) {
        self.path.iter().for_each(|path| fs::remove_file(path).unwrap_or_default());
    }
}

impl CacheStore for FunctionStore {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.find(key.try_into().ok()?).map(Cow::Owned)
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        key.try_into().ok().and_then(|key| self.keep(key, &value)).is_some()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
