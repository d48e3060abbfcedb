//! Compiled functions in a loader: those that earlier versions of the same component left, which
//! the host passes in, and those that it makes.
//!
//! The host never reads them. Functions of one component are only ever reused for later versions of
//! the same component.
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcell_wall::load::FUNCTIONS_BYTES_MAX;
use wasmtime::CacheStore;

use super::segment::{self, SegmentKey, SegmentPlace};

/// Functions that a loader takes over. An interpreter has 13,000, with 3 to 4 KB each. An index of
/// this size takes 20 MB while something is compiled.
const FUNCTIONS_MAX: usize = 1 << 18;

/// Bytes of one function. CPython's largest has 1.1 MB.
const FUNCTION_BYTES_MAX: usize = 16 << 20;

/// The functions of one load.
#[derive(Debug, Default)]
pub(crate) struct HandedFunctions(Mutex<Handed>);

#[derive(Debug, Default)]
struct Handed {
    file: Option<Arc<File>>,
    places: HashMap<SegmentKey, SegmentPlace>,
    used: HashSet<SegmentKey>,
    made: HashMap<SegmentKey, Vec<u8>>,
    made_bytes: u64,
}

impl HandedFunctions {
    /// Reads the index of what earlier loads left. The file has this many bytes.
    pub(crate) fn take(&self, file: File, bytes: u64) {
        let places = segment::read_index(&file, bytes, FUNCTIONS_MAX).unwrap_or_default();
        let mut handed = self.lock();
        handed.places = places.into_iter().collect();
        handed.file = Some(Arc::new(file));
    }

    /// Writes what this load used and made into an empty file. Returns false, and leaves the file
    /// empty, if nothing changed, or if it is too much: the host ends a loader that writes more.
    pub(crate) fn hand_back(&self, to: &File) -> io::Result<bool> {
        let handed = self.lock();
        if handed.made.is_empty() && handed.used.len() == handed.places.len() {
            return Ok(false);
        }
        let used = handed.used.iter().filter_map(|key| Some((*key, handed.places.get(key)?.bytes as usize)));
        let made = handed.made.iter().map(|(key, code)| (*key, code.len()));
        if segment::file_bytes(made.chain(used).map(|(_, bytes)| bytes)) > FUNCTIONS_BYTES_MAX {
            return Ok(false);
        }
        let used = handed.used.iter().filter_map(|key| Some((*key, Cow::Owned(handed.read(key)?))));
        let made = handed.made.iter().map(|(key, code)| (*key, Cow::Borrowed(code.as_slice())));
        segment::write(to, made.chain(used))?;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Handed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handed {
    fn read(&self, key: &SegmentKey) -> Option<Vec<u8>> {
        let file = self.file.as_deref()?;
        let place = self.places.get(key)?;
        place.read(file, FUNCTION_BYTES_MAX).ok()
    }
}

impl CacheStore for HandedFunctions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let key: SegmentKey = key.try_into().ok()?;
        let (file, place) = {
            let handed = self.lock();
            (Arc::clone(handed.file.as_ref()?), *handed.places.get(&key)?)
        };
        // Outside of the lock, so that others can go on.
        let code = place.read(&file, FUNCTION_BYTES_MAX).ok()?;
        self.lock().used.insert(key);
        Some(Cow::Owned(code))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let Ok(key) = SegmentKey::try_from(key) else { return false };
        let mut handed = self.lock();
        let bytes = handed.made_bytes.saturating_add(value.len() as u64);
        if value.len() > FUNCTION_BYTES_MAX || bytes > FUNCTIONS_BYTES_MAX {
            return false;
        }
        handed.made_bytes = bytes;
        handed.made.insert(key, value);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn store(functions: &HandedFunctions, key: u8, code: &[u8]) {
        assert!(functions.insert(&[key; 32], code.to_vec()));
    }

    fn next(before: &HandedFunctions) -> HandedFunctions {
        let file = tempfile::tempfile().unwrap();
        assert!(before.hand_back(&file).unwrap());
        let after = HandedFunctions::default();
        let bytes = file.metadata().unwrap().len();
        after.take(file, bytes);
        after
    }

    #[test]
    fn a_load_finds_the_functions_of_the_one_before_and_leaves_what_it_used_and_made() {
        let first = HandedFunctions::default();
        store(&first, 1, b"one");
        store(&first, 2, b"two");
        let written = tempfile::tempfile().unwrap();
        assert!(first.hand_back(&written).unwrap());
        assert_eq!(written.metadata().unwrap().len(), segment::file_bytes([3, 3].into_iter()), "known before");
        let second = next(&first);
        assert_eq!(second.get(&[1; 32]).unwrap().as_ref(), b"one");
        assert!(second.get(&[3; 32]).is_none());
        store(&second, 3, b"three");
        let third = next(&second);
        assert_eq!(third.get(&[3; 32]).unwrap().as_ref(), b"three");
        assert_eq!(third.get(&[1; 32]).unwrap().as_ref(), b"one");
        assert!(third.get(&[2; 32]).is_none(), "nothing used it");
        assert!(!third.hand_back(&tempfile::tempfile().unwrap()).unwrap(), "nothing has changed");
    }

    #[test]
    fn a_file_of_anything_is_no_functions() {
        for content in [&b""[..], b"tcfuncs1", &[0xff; 200]] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content).unwrap();
            let functions = HandedFunctions::default();
            functions.take(file, content.len() as u64);
            assert!(functions.get(&[0; 32]).is_none());
        }
    }

    #[test]
    fn more_than_may_be_handed_back_is_not_kept() {
        let functions = HandedFunctions::default();
        let large = vec![0; FUNCTION_BYTES_MAX];
        let kept = (0..20).filter(|key| functions.insert(&[*key; 32], large.clone())).count();
        assert_eq!(kept as u64, FUNCTIONS_BYTES_MAX / large.len() as u64);
        // The index makes it too large, so nothing is written.
        let file = tempfile::tempfile().unwrap();
        assert!(!functions.hand_back(&file).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert!(!functions.insert(&[99; 31], Vec::new()), "a key of another kind");
    }
}
