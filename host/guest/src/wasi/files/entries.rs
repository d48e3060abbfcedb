//! Names in folders: create, remove, rename, link. Each changes the count of the mount's quota,
//! under the account's lock.
use std::sync::PoisonError;

use toolcell_policy::FilePermit;

use super::bindings::types::ErrorCode;
use super::ledger::Reservation;
use super::mount::{MountedPath, PATH_BYTES_MAX};
use super::refused::code;

type Result<T> = std::result::Result<T, ErrorCode>;

pub(super) fn create_folder(spot: &MountedPath, _permit: FilePermit) -> Result<()> {
    made(spot, 0, || spot.dir.create_dir(&spot.path))
}

/// A link leads to its own folder or below. So following it stays in the mount, even after it is
/// moved.
pub(super) fn create_link(spot: &MountedPath, target: &str, _permit: FilePermit) -> Result<()> {
    if target.is_empty() {
        return Err(ErrorCode::NoEntry);
    }
    if target.len() > PATH_BYTES_MAX {
        return Err(ErrorCode::NameTooLong);
    }
    if target.contains('\0') {
        return Err(ErrorCode::Invalid);
    }
    if target.starts_with('/') || target.split('/').any(|name| name == "..") {
        return Err(ErrorCode::NotPermitted);
    }
    made(spot, target.len() as u64, || spot.dir.symlink(target, &spot.path))
}

fn made(spot: &MountedPath, bytes: u64, make: impl Fn() -> std::io::Result<()>) -> Result<()> {
    let account = spot.account()?;
    account.with_room(|| {
        let _turn = account.names();
        spot.check()?;
        if spot.lent.is_some() {
            return Err(ErrorCode::Exist);
        }
        let room = account.reserve(bytes, 1)?;
        make().map_err(|error| code(&error))?;
        room.keep();
        Ok(())
    })
}

pub(super) fn remove_file(spot: &MountedPath, _permit: FilePermit) -> Result<()> {
    removed(spot, || spot.dir.remove_file(&spot.path))
}

pub(super) fn remove_folder(spot: &MountedPath, _permit: FilePermit) -> Result<()> {
    removed(spot, || spot.dir.remove_dir(&spot.path))
}

fn removed(spot: &MountedPath, remove: impl FnOnce() -> std::io::Result<()>) -> Result<()> {
    let account = spot.account()?;
    let turn = account.names();
    let facts = spot.facts_of_name()?;
    if spot.pinned {
        return Err(ErrorCode::Busy);
    }
    remove().map_err(|error| code(&error))?;
    turn.removed(&facts);
    Ok(())
}

/// Both are in the same mount.
pub(super) fn rename(old: &MountedPath, new: &MountedPath, _gone: FilePermit, _made: FilePermit) -> Result<()> {
    let turn = old.account()?.names();
    let moved = old.facts_of_name()?;
    let replaced = match new.facts_of_name() {
        Ok(facts) => Some(facts),
        Err(ErrorCode::NoEntry) => None,
        Err(code) => return Err(code),
    };
    if old.pinned || new.pinned {
        return Err(ErrorCode::Busy);
    }
    old.dir.rename(&old.path, &new.dir, &new.path).map_err(|error| code(&error))?;
    // Two names of one file: renaming one to the other does nothing.
    if let Some(replaced) = replaced.filter(|replaced| replaced.identity != moved.identity) {
        turn.removed(&replaced);
    }
    Ok(())
}

/// Adds a name for a file of the same mount. The quota counts a file once for each name.
pub(super) fn link(old: &MountedPath, new: &MountedPath, _source: FilePermit, _made: FilePermit) -> Result<()> {
    let account = old.account()?;
    account.with_room(|| {
        let turn = account.names();
        new.check()?;
        if new.lent.is_some() {
            return Err(ErrorCode::Exist);
        }
        let seen = old.facts_of_name()?;
        if !seen.is_file() {
            return Err(ErrorCode::NotPermitted);
        }
        // Its size is fixed from now on: a file with two names is not written.
        let writing = turn.writing(seen.identity).unwrap_or_default();
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = old.facts_of_name()?;
        let room: Reservation = account.reserve(facts.charged_bytes(), 1)?;
        old.dir.hard_link(&old.path, &new.dir, &new.path).map_err(|error| code(&error))?;
        room.keep();
        Ok(())
    })
}
