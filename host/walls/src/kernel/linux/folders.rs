//! Landlock: the files that may be opened.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::FileType;

use super::refusal::{Refusal, WallStep};
use super::syscalls;
use crate::kernel::rights::{Access, Folder};

/// The newest Landlock that the crate knows. An older kernel enforces what it supports.
const NEWEST: ABI = ABI::V10;

/// Refuses opening any file outside of `folders`, TCP, signals to other processes, and abstract
/// sockets, as far as the kernel's Landlock supports it.
pub(super) fn restrict(folders: &[Folder<'_>]) -> Result<String, Refusal> {
    let mut rules = empty_rules().map_err(refusal)?;
    for folder in folders {
        let status = rustix::fs::fstat(folder.descriptor).step("fstat of a granted folder")?;
        let is_folder = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
        let rule = || PathBeneath::new(folder.descriptor, rights(is_folder, folder.access));
        // Landlock accepts no rule for a file in memory, such as code without a cache, and allows
        // opening it. A file that was replaced has no name either, but needs its rule.
        if !is_folder && status.st_nlink == 0 && empty_rules().and_then(|rules| rules.add_rule(rule())).is_err() {
            continue;
        }
        rules = rules.add_rule(rule()).map_err(refusal)?;
    }
    let landlock = rules.restrict_self().map_err(refusal)?.landlock;
    match landlock {
        LandlockStatus::NotImplemented => Err(not_there()),
        LandlockStatus::NotEnabled => Err(Refusal::new("it was turned off when the kernel started")),
        LandlockStatus::Available { effective_abi, .. } => judged(effective_abi),
    }
}

/// Why the kernel has no Landlock: the crate does not distinguish the reasons.
fn not_there() -> Refusal {
    match syscalls::landlock_version() {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Refusal::new("the kernel is built without it"),
        Err(error) => Refusal::filtered("landlock_create_ruleset", &error),
        Ok(version) => Refusal::new(format!("the kernel gives version {version}, and did not a moment ago")),
    }
}

/// A ruleset that allows nothing.
fn empty_rules() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
}

fn refusal(error: RulesetError) -> Refusal {
    Refusal::new(error.to_string())
}

/// What a version enforces.
fn judged(abi: ABI) -> Result<String, Refusal> {
    match abi as i32 {
        ..=2 => Err(Refusal::new(format!(
            "version {} lets files that may only be read be truncated, Linux 6.2 does not",
            abi as i32
        ))),
        version @ 3 => Ok(format!("version {version}: files, neither TCP nor signals")),
        version @ 4..=5 => Ok(format!("version {version}: files and TCP, not signals")),
        version => Ok(format!("version {version}: files, TCP and signals")),
    }
}

/// A component's folders contain no programs to run, devices or pipes, so none of these is allowed.
fn rights(is_folder: bool, access: Access) -> BitFlags<AccessFs> {
    use AccessFs::{MakeDir, MakeReg, MakeSym, ReadDir, ReadFile, Refer, RemoveDir, RemoveFile, Truncate, WriteFile};
    match (is_folder, access) {
        (false, Access::Read) => ReadFile.into(),
        (false, Access::Write) => ReadFile | WriteFile | Truncate,
        (true, Access::Read) => ReadFile | ReadDir,
        (true, Access::Write) => {
            let contents = ReadFile | WriteFile | Truncate | ReadDir;
            contents | MakeReg | MakeDir | MakeSym | RemoveFile | RemoveDir | Refer
        }
    }
}
