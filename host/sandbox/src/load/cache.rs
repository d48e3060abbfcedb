//! The folder of precompiled code: names, integrity, size.
//!
//! Precompiled code is native code: a file here that is accepted runs outside any sandbox. So an
//! entry is used only if it has a MAC under a key that is kept elsewhere and that only this user
//! can read. The MAC is checked on the very file that is mapped. If anything is wrong with an
//! entry, the component is compiled again.
//!
//! Promise: compiled code is the host's own.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use toolcell_wall::load::CODE_BYTES_MAX;

use crate::load::drafts;

/// Bytes of all entries together, by default. Precompiled Rust tools have about half a megabyte,
/// Python and JavaScript ones about 35.
pub const CACHE_BYTES_MAX: u64 = 2 << 30;

/// Bytes of a key, and of a MAC (BLAKE3).
const KEY_BYTES: usize = 32;
/// The suffix of an entry's file name.
const SUFFIX: &str = ".cwasm";
/// Bytes of an entry that are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// Files of this size and more are checked for holes. Some file systems store small ones in the
/// folder's own blocks.
const HOLES_BYTES_MIN: u64 = 1 << 20;
/// A file may be this many times as large as its blocks. File systems compress code by two to four.
const HOLES_FACTOR: u64 = 16;
/// An entry is marked as used at most once in this time, so the oldest is known to the day.
const USED_AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why there is no cache. The host can run without one.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder or the key file cannot be made or read.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user could change its content.
    #[error("{} belongs to somebody else, or others may write to it", path.display())]
    Exposed {
        /// The folder or file.
        path: PathBuf,
    },
    /// The key file does not hold a key.
    #[error("{} holds no key; remove it to have a new one made", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
}

/// A folder of precompiled code.
#[derive(Debug)]
pub struct CodeCache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    bytes_max: u64,
    drafts_removed: usize,
}

impl CodeCache {
    /// Opens a cache, and makes the folder (0700) and the key (0600) where they are missing.
    ///
    /// `key_file` must be outside of `folder`, in a folder that only this user can write to.
    ///
    /// # Errors
    /// [`CacheError`], also if other users could change the folder or the key.
    pub fn open(folder: &Path, key_file: &Path, bytes_max: u64) -> Result<Self, CacheError> {
        make_folder(folder)?;
        if let Some(parent) = key_file.parent() {
            make_folder(parent)?;
        }
        let key = match read_key(key_file) {
            Err(CacheError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => make_key(key_file)?,
            read => read?,
        };
        // Drafts of the key are in its folder, under its name.
        let of_key = key_file.parent().zip(key_file.file_stem().and_then(|stem| stem.to_str()));
        let of_key = of_key.map_or(0, |(folder, stem)| drafts::remove_abandoned(folder, stem));
        let drafts_removed = drafts::remove_abandoned(folder, "") + of_key;
        Ok(Self { folder: folder.to_owned(), key, bytes_max, drafts_removed })
    }

    /// Abandoned drafts of entries or of the key that were removed on opening.
    #[must_use]
    pub const fn drafts_removed(&self) -> usize {
        self.drafts_removed
    }

    /// The open file of an entry with a correct MAC, to be mapped as it is; `None` if there is no
    /// entry. A wrong entry is removed.
    pub(crate) fn find(&self, name: &str) -> Option<File> {
        self.find_file(name, SUFFIX, CODE_BYTES_MAX)
    }

    /// The open file with this name and suffix, of at most `bytes_max` bytes without its MAC.
    pub(crate) fn find_file(&self, name: &str, suffix: &str, bytes_max: u64) -> Option<File> {
        let path = self.folder.join(format!("{name}{suffix}"));
        let file = open(&path).ok()?;
        if self.verify(name, &file, bytes_max).is_none() {
            let _ = fs::remove_file(&path);
            return None;
        }
        mark_used(&file);
        Some(file)
    }

    /// The content of the file with this name and suffix, of at most `bytes_max` bytes.
    pub(crate) fn find_bytes(&self, name: &str, suffix: &str, bytes_max: u64) -> Option<Vec<u8>> {
        let path = self.folder.join(format!("{name}{suffix}"));
        let file = open(&path).ok()?;
        let Some(content) = self.content(name, &file, bytes_max.saturating_add(KEY_BYTES as u64)) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        mark_used(&file);
        Some(content)
    }

    /// The content of the entry in this open file, if its MAC is correct.
    fn content(&self, name: &str, file: &File, bytes_max: u64) -> Option<Vec<u8>> {
        let bytes = usize::try_from(trusted_bytes(file, bytes_max)?).ok()?;
        let mut content = vec![0; bytes];
        file.read_exact_at(&mut content, 0).ok()?;
        let mac = content.split_off(bytes.checked_sub(KEY_BYTES)?);
        let mac = <[u8; KEY_BYTES]>::try_from(mac).ok()?;
        // Comparing two `Hash`es takes constant time.
        (self.mac(name, &content) == blake3::Hash::from_bytes(mac)).then_some(content)
    }

    /// True if there is an entry with this name, valid or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Keeps content under this name and suffix. All files with the suffix have at most
    /// `bytes_max` bytes. A draft is written and renamed, so no reader sees half of it. If the
    /// machine stops halfway, the MAC is wrong. A failure is ignored: the next start compiles
    /// again.
    pub(crate) fn keep_bytes(&self, name: &str, suffix: &str, content: &[u8], bytes_max: u64) {
        let _ = self.write(name, suffix, |file| {
            file.write_all(content)?;
            Ok(self.mac(name, content))
        });
        self.trim_to(suffix, bytes_max);
    }

    /// Keeps code from a file that nobody changes any more. Returns the entry, as
    /// [`find`](Self::find) would, without reading it again.
    pub(crate) fn keep_code_of(&self, name: &str, from: &File) -> Option<File> {
        self.keep_file(name, SUFFIX, from, self.bytes_max)
    }

    /// Keeps the content of a file that nobody changes any more. Returns the entry.
    pub(crate) fn keep_file(&self, name: &str, suffix: &str, from: &File, bytes_max: u64) -> Option<File> {
        let kept = self.write(name, suffix, |file| {
            let mut hasher = self.hasher(name);
            let mut piece = vec![0; PIECE_BYTES];
            let mut at = 0_u64;
            loop {
                let read = from.read_at(&mut piece, at)?;
                let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else { break };
                hasher.update(piece);
                file.write_all(piece)?;
                at = at.saturating_add(read as u64);
            }
            Ok(hasher.finalize())
        });
        self.trim_to(suffix, bytes_max);
        kept.filter(|file| trusted_bytes(file, CODE_BYTES_MAX).is_some())
    }

    /// Writes a draft with its MAC, and renames it. Returns the same file, for reading.
    fn write(
        &self,
        name: &str,
        suffix: &str,
        write: impl FnOnce(&mut File) -> io::Result<blake3::Hash>,
    ) -> Option<File> {
        let draft = self.draft(name);
        let written = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&draft).and_then(|mut file| {
            let mac = write(&mut file)?;
            file.write_all(mac.as_bytes())?;
            reopened(&file)
        });
        let placed = written.and_then(|file| {
            fs::rename(&draft, self.folder.join(format!("{name}{suffix}")))?;
            Ok(file)
        });
        if placed.is_err() {
            let _ = fs::remove_file(&draft);
        }
        placed.ok()
    }

    /// A path for a draft of a file that will have this name.
    fn draft(&self, name: &str) -> PathBuf {
        /// Distinguishes the drafts of this process.
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{name}.{}-{number}{}", std::process::id(), drafts::SUFFIX))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{SUFFIX}"))
    }

    /// The MAC of an entry. It covers the name, so that one entry cannot replace another.
    fn mac(&self, name: &str, code: &[u8]) -> blake3::Hash {
        self.hasher(name).update(code).finalize()
    }

    /// Begins the MAC of what has this name.
    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes()).update(b"\0");
        hasher
    }

    /// Verifies the MAC of the entry in this open file. Only this user could change the file after
    /// that.
    fn verify(&self, name: &str, file: &File, bytes_max: u64) -> Option<()> {
        let code_bytes = trusted_bytes(file, bytes_max)?.checked_sub(KEY_BYTES as u64)?;
        let mut hasher = self.hasher(name);
        let mut piece = vec![0; PIECE_BYTES];
        let mut code = file.take(code_bytes);
        loop {
            match code.read(&mut piece).ok()? {
                0 => break,
                read => hasher.update(piece.get(..read)?),
            };
        }
        let mut file = file;
        let mut mac = [0; KEY_BYTES];
        file.read_exact(&mut mac).ok()?;
        // Comparing two `Hash`es takes constant time.
        (hasher.finalize() == blake3::Hash::from_bytes(mac)).then_some(())
    }

    /// Removes the least recently used files with this suffix, until the rest has at most this many
    /// bytes.
    pub(super) fn trim_to(&self, suffix: &str, bytes_max: u64) {
        let files = self.listing(suffix);
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, file_bytes, path) in files {
            if bytes <= bytes_max {
                return;
            }
            let _ = fs::remove_file(path);
            bytes = bytes.saturating_sub(file_bytes);
        }
    }

    /// The files with this suffix: time of last use, bytes and path. The oldest comes first.
    pub(super) fn listing(&self, suffix: &str) -> Vec<(SystemTime, u64, PathBuf)> {
        let Ok(listing) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = listing
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(suffix)))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort_unstable();
        files
    }
}

/// Opens a file for reading, without following a link and without blocking: a FIFO may have no
/// writer.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK)).open(path)
}

/// Opens the file of this descriptor again, for reading. No path is involved, so it is the same
/// file.
fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The size of an open file that only this user could have written, if it is at most `bytes_max`.
pub(super) fn trusted_bytes(file: &File, bytes_max: u64) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    let fits = metadata.is_file() && is_ours(&metadata) && metadata.len() <= bytes_max && !has_holes(&metadata);
    fits.then_some(metadata.len())
}

/// True if parts of a file are not on the disk. Entries are written in full.
fn has_holes(metadata: &fs::Metadata) -> bool {
    const BLOCK_BYTES: u64 = 512;
    metadata.len() > HOLES_BYTES_MIN && metadata.blocks().saturating_mul(BLOCK_BYTES) < metadata.len() / HOLES_FACTOR
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// Best effort: an entry without the mark is only removed earlier.
pub(super) fn mark_used(file: &File) {
    let now = SystemTime::now();
    let marked = file.metadata().and_then(|metadata| metadata.modified());
    if marked.is_ok_and(|marked| now.duration_since(marked).is_ok_and(|age| age > USED_AGAIN_AFTER)) {
        let _ = file.set_modified(now);
    }
}

/// True if this user owns it and no other may write to it.
fn is_ours(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn make_folder(path: &Path) -> Result<(), CacheError> {
    let failed = |source| CacheError::Io { path: path.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_dir() || !is_ours(&metadata) {
        return Err(CacheError::Exposed { path: path.to_owned() });
    }
    Ok(())
}

fn read_key(path: &Path) -> Result<[u8; KEY_BYTES], CacheError> {
    let failed = |source| CacheError::Io { path: path.to_owned(), source };
    let mut file = open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(CacheError::NoKey { path: path.to_owned() });
    }
    if !is_ours(&metadata) || metadata.mode() & 0o077 != 0 {
        return Err(CacheError::Exposed { path: path.to_owned() });
    }
    let mut key = [0; KEY_BYTES];
    if metadata.len() != KEY_BYTES as u64 || file.read_exact(&mut key).is_err() {
        return Err(CacheError::NoKey { path: path.to_owned() });
    }
    Ok(key)
}

/// Makes a key. If several processes do so at once, all use that of the first.
fn make_key(path: &Path) -> Result<[u8; KEY_BYTES], CacheError> {
    let failed = |source| CacheError::Io { path: path.to_owned(), source };
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| failed(io::Error::other(error)))?;
    let draft = path.with_extension(format!("{}{}", std::process::id(), drafts::SUFFIX));
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    let linked = file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => read_key(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn cache(root: &Path, bytes_max: u64) -> CodeCache {
        CodeCache::open(&root.join("code"), &root.join("state/key"), bytes_max).unwrap()
    }

    fn keep(cache: &CodeCache, name: &str, code: &[u8]) {
        cache.keep_bytes(name, SUFFIX, code, cache.bytes_max);
    }

    fn entry(cache: &CodeCache, name: &str) -> PathBuf {
        cache.path(name)
    }

    fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    }

    #[test]
    fn what_is_kept_is_found_again_by_another_process_of_the_same_user() {
        let root = tempfile::tempdir().unwrap();
        keep(&cache(root.path(), 1 << 20), "a", b"code");
        assert!(cache(root.path(), 1 << 20).find("a").is_some());
        assert!(cache(root.path(), 1 << 20).find("b").is_none());
    }

    #[test]
    fn code_that_is_kept_of_a_file_comes_back_as_the_entry_and_cannot_be_written_to() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1 << 20);
        let mut from = tempfile::tempfile().unwrap();
        from.write_all(b"code").unwrap();
        let kept = cache.keep_code_of("a", &from).unwrap();
        let found = cache.find("a").unwrap();
        let identity = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino())).unwrap();
        assert_eq!(identity(&kept), identity(&found));
        assert_eq!(rustix::fs::fcntl_getfl(&kept).unwrap() & OFlags::ACCMODE, OFlags::RDONLY);
        fs::remove_dir_all(root.path().join("code")).unwrap();
        assert!(cache.keep_code_of("b", &from).is_none());
    }

    /// Changes that make a file invalid.
    const CHANGES: [fn(&mut Vec<u8>); 4] =
        [|bytes| bytes[0] ^= 1, |bytes| bytes.truncate(bytes.len() - 1), |bytes| bytes.clear(), |bytes| bytes.push(0)];

    #[test]
    fn content_that_anything_is_wrong_with_is_not_used_and_goes() {
        for change in CHANGES {
            let root = tempfile::tempdir().unwrap();
            let cache = cache(root.path(), 1 << 20);
            cache.keep_bytes("a", ".facts", b"facts", 1 << 20);
            let find = || cache.find_bytes("a", ".facts", 5);
            assert_eq!(find().as_deref(), Some(&b"facts"[..]));
            let path = root.path().join("code/a.facts");
            rewrite(&path, change);
            assert_eq!(find(), None);
            assert!(!path.exists());
        }
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1 << 20);
        cache.keep_bytes("a", ".facts", b"facts", 1 << 20);
        assert_eq!(cache.find_bytes("a", ".facts", 4), None, "it is larger than asked for");
    }

    #[test]
    fn an_entry_that_anything_is_wrong_with_is_not_used_and_goes() {
        for change in CHANGES {
            let root = tempfile::tempdir().unwrap();
            let cache = cache(root.path(), 1 << 20);
            keep(&cache, "a", b"code");
            rewrite(&entry(&cache, "a"), change);
            assert!(cache.find("a").is_none());
            assert!(!entry(&cache, "a").exists());
        }
    }

    #[test]
    fn an_entry_cannot_stand_in_for_another() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1 << 20);
        keep(&cache, "a", b"code");
        fs::rename(entry(&cache, "a"), entry(&cache, "b")).unwrap();
        assert!(cache.find("b").is_none());
    }

    #[test]
    fn an_entry_made_under_another_key_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let forger = cache(other.path(), 1 << 20);
        let cache = cache(root.path(), 1 << 20);
        keep(&forger, "a", b"evil");
        fs::copy(entry(&forger, "a"), entry(&cache, "a")).unwrap();
        assert!(cache.find("a").is_none());
    }

    #[test]
    fn an_entry_that_others_may_write_or_that_is_a_link_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1 << 20);
        keep(&cache, "a", b"code");
        fs::set_permissions(entry(&cache, "a"), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(cache.find("a").is_none());
        keep(&cache, "b", b"code");
        fs::rename(entry(&cache, "b"), root.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(root.path().join("elsewhere"), entry(&cache, "b")).unwrap();
        assert!(cache.find("b").is_none());
    }

    #[test]
    fn a_folder_or_key_that_others_may_change_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let open = || CodeCache::open(&root.path().join("code"), &root.path().join("state/key"), 1);
        drop(open().unwrap());
        fs::set_permissions(root.path().join("state/key"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(open().unwrap_err(), CacheError::Exposed { .. }));
        fs::remove_file(root.path().join("state/key")).unwrap();
        fs::set_permissions(root.path().join("code"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(open().unwrap_err(), CacheError::Exposed { .. }));
    }

    #[test]
    fn a_fifo_and_a_file_of_holes_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1 << 20);
        for make in [fifo as fn(&Path), |path| File::create(path).unwrap().set_len(1 << 40).unwrap()] {
            make(&entry(&cache, "a"));
            assert!(cache.find("a").is_none());
            assert!(!entry(&cache, "a").exists());
        }
        let key = root.path().join("state/key");
        fs::remove_file(&key).unwrap();
        fifo(&key);
        let opened = CodeCache::open(&root.path().join("code"), &key, 1);
        assert!(matches!(opened.unwrap_err(), CacheError::NoKey { .. }));
    }

    fn fifo(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn a_key_file_that_is_none_is_said_so() {
        let root = tempfile::tempdir().unwrap();
        drop(cache(root.path(), 1));
        let key = root.path().join("state/key");
        fs::write(&key, "short").unwrap();
        let opened = CodeCache::open(&root.path().join("code"), &key, 1);
        assert!(matches!(opened.unwrap_err(), CacheError::NoKey { .. }));
    }

    #[test]
    fn past_its_size_the_oldest_entries_go() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 250);
        for (name, age_s) in [("old", 3_000), ("older", 4_000), ("new", 0)] {
            keep(&cache, name, &[0; 68]);
            let file = File::open(entry(&cache, name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
        }
        cache.trim_to(SUFFIX, cache.bytes_max);
        let left: Vec<bool> = ["old", "older", "new"].map(|name| entry(&cache, name).exists()).into();
        assert_eq!(left, [true, false, true]);
    }
}
