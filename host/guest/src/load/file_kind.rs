//! Files that are not WebAssembly, known by their first bytes.
use std::fmt;

/// A kind of file that people pass by mistake instead of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A program or library for some machine: ELF, Mach-O or PE.
    Native(&'static str),
    /// A script with the name of its interpreter in the first line.
    Script,
    /// WebAssembly as text.
    Text,
    /// A folder packed into one file.
    Archive(&'static str),
    /// A few bytes that stand in for a file that git LFS or git-annex keeps elsewhere.
    Pointer(KeptBy),
}

/// A tool that keeps large files of a git repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Git LFS.
    Lfs,
    /// git-annex.
    Annex,
}

/// The first bytes of each kind. Mach-O has one for each byte order, and files for several
/// machines.
const BEGINNINGS: [(&[u8], FileKind); 16] = [
    (b"\x7fELF", FileKind::Native("ELF")),
    (b"\xfe\xed\xfa\xce", FileKind::Native("Mach-O")),
    (b"\xfe\xed\xfa\xcf", FileKind::Native("Mach-O")),
    (b"\xce\xfa\xed\xfe", FileKind::Native("Mach-O")),
    (b"\xcf\xfa\xed\xfe", FileKind::Native("Mach-O")),
    (b"\xca\xfe\xba\xbe", FileKind::Native("Mach-O")),
    (b"MZ", FileKind::Native("PE")),
    (b"#!", FileKind::Script),
    (b"(component", FileKind::Text),
    (b"(module", FileKind::Text),
    (b"PK\x03\x04", FileKind::Archive("zip")),
    (b"\x1f\x8b", FileKind::Archive("gzip")),
    (b"!<arch>", FileKind::Archive("ar")),
    // Git LFS's pointers, with the current URL of their specification and the previous one.
    (b"version https://git-lfs.", FileKind::Pointer(KeptBy::Lfs)),
    (b"version https://hawser.", FileKind::Pointer(KeptBy::Lfs)),
    (b"/annex/objects/", FileKind::Pointer(KeptBy::Annex)),
];

impl FileKind {
    /// The kind of a file that begins with these bytes, if it is known.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        BEGINNINGS.iter().find_map(|(beginning, kind)| bytes.starts_with(beginning).then_some(*kind))
    }

    /// A hint on how to get a component.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::Native(_) | Self::Script => {
                "programs of a machine do not run in the sandbox: build it for the target wasm32-wasip2, or see `toolcell new`"
            }
            Self::Text => "assemble it first, with `wasm-tools parse` or `wat2wasm`",
            Self::Archive(_) => "unpack it, and name the .wasm file in it",
            Self::Pointer(KeptBy::Lfs) => "run `git lfs pull` in its repository, which puts the component there",
            Self::Pointer(KeptBy::Annex) => "run `git annex get .` in its folder, which puts the component there",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(format) => write!(f, "a native binary ({format})"),
            Self::Script => f.write_str("a script"),
            Self::Text => f.write_str("WebAssembly as text"),
            Self::Archive(format) => write!(f, "an archive ({format})"),
            Self::Pointer(KeptBy::Lfs) => f.write_str("a pointer of Git LFS"),
            Self::Pointer(KeptBy::Annex) => f.write_str("a pointer of git-annex"),
        }
    }
}
