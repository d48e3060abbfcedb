//! Resources that the host serves without a guest: files of folders, and entries of kept state.
//! Must not hold: who may read them.

pub(crate) mod folders;
pub(crate) mod kept_entries;
