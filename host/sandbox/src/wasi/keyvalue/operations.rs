//! The operations on the state that a tool was granted, and the right to it. Must not hold: guests'
//! handles and fuel, or where the state is kept.
use serde::{Deserialize, Serialize};
use toolcell_policy::Grants;

use super::bindings::wasi::keyvalue::store::Error;
use super::error::Refusal;
use super::granted::GrantedState;
use super::host::Trouble;
use super::keeper::Place;
use super::reading::ChangeNotice;
use super::session::Session;
use super::store::{BATCH_BYTES_MAX, BATCH_KEYS_MAX, BucketPath, PAGE_KEYS_MAX, check_key, check_keys};
use crate::wasi::doors::bounded::{Blob, List};
use toolcell_wall::caller::Caller;
use toolcell_wall::denials::Denials;

/// Bytes of a bucket's name: as long as a component's or a tool's.
const BUCKET_BYTES_MAX: usize = 64;

/// The bucket of guests that name none.
const DEFAULT_BUCKET: &str = "default";

/// Keys of one operation.
pub(super) type Keys = List<String, BATCH_KEYS_MAX>;

/// One operation on a bucket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Operation {
    /// The guest opens the bucket.
    Open,
    /// The value of a key.
    Get(String),
    /// True if there is an entry of the key.
    Exists(String),
    /// A page of keys, from the cursor on.
    List(Option<u64>),
    /// Adds to the number that a key holds.
    Add(String, u64),
    /// The entries of keys.
    GetMany(Keys),
    /// Sets every key, or none.
    SetMany(List<(String, Blob), BATCH_KEYS_MAX>),
    /// Deletes every key, or none.
    DeleteMany(Keys),
}

/// The outcome of an operation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done,
    Value(Option<Blob>),
    Exists(bool),
    Page(List<String, PAGE_KEYS_MAX>, Option<u64>),
    Number(u64),
    Values(List<Option<(String, Blob)>, BATCH_KEYS_MAX>),
}

impl Operation {
    /// Refuses what no state takes, before anything is done for it: the longest that passes is
    /// bounded.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Open | Self::List(_) => Ok(()),
            Self::Get(key) | Self::Exists(key) | Self::Add(key, _) => check_key(key),
            Self::GetMany(keys) | Self::DeleteMany(keys) => check_keys(keys.0.iter()),
            Self::SetMany(pairs) => {
                check_keys(pairs.0.iter().map(|(key, _)| key))?;
                let bytes = pairs.0.iter().map(|(key, value)| key.len() as u64 + value.0.len() as u64).sum();
                if bytes > BATCH_BYTES_MAX {
                    return Err(Refusal::BatchBytes { bytes, max: BATCH_BYTES_MAX });
                }
                Ok(())
            }
        }
    }
}

impl Operation {
    /// The keys of entries that it changes; `None` if it only reads.
    pub(super) fn changes(&self) -> Option<Vec<String>> {
        match self {
            Self::Open | Self::List(_) | Self::Get(_) | Self::Exists(_) | Self::GetMany(_) => None,
            Self::Add(key, _) => Some(vec![key.clone()]),
            Self::DeleteMany(keys) => Some(keys.0.clone()),
            Self::SetMany(pairs) => Some(pairs.0.iter().map(|(key, _)| key.clone()).collect()),
        }
    }
}

/// A call's share of the state that its tool was granted.
pub(crate) struct KeptState<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) grants: &'a Grants,
    pub(crate) granted: Option<&'a GrantedState>,
    pub(crate) denials: &'a Denials,
    pub(crate) caller: &'a dyn Caller,
}

impl<'g> KeptState<'g> {
    /// Does one operation on the bucket of this name.
    pub(super) async fn perform(&mut self, bucket: &str, operation: Operation) -> Result<Outcome, Trouble> {
        let (granted, place) = self.place(bucket)?;
        let notice = ChangeNotice::of(&operation, bucket, self.caller);
        let done = granted.keeper().perform(self.session, place, operation).await;
        if let Err(Refusal::Away { away, .. }) = &done {
            self.caller.state_away(away.internal());
        }
        match &done {
            Ok(_) | Err(Refusal::Away { may_be_done: true, .. } | Refusal::Fault(_)) => drop(notice),
            Err(_) => notice.into_iter().for_each(ChangeNotice::cancel),
        }
        Ok(done?)
    }

    /// Every name of the right form is a bucket; the empty one is that of [`DEFAULT_BUCKET`].
    fn place(&self, bucket: &str) -> Result<(&'g GrantedState, Place), Trouble> {
        let granted = match (self.grants.open_keyvalue(), self.granted) {
            (Ok(_), Some(granted)) => granted,
            (Err(denial), _) => {
                self.denials.add(denial);
                return Err(Trouble::Guest(Error::AccessDenied));
            }
            (Ok(_), None) => return Err(Trouble::Guest(Error::AccessDenied)),
        };
        let Some(name) = bucket_named(bucket) else { return Err(Trouble::Guest(Error::NoSuchStore)) };
        let path = BucketPath { namespace: granted.namespace(self.caller.name()), bucket: name.to_owned() };
        Ok((granted, Place { bounds: granted.bounds(), path }))
    }
}

/// The bucket that a guest means by this name, if there is one.
pub(super) fn bucket_named(name: &str) -> Option<&str> {
    let name = if name.is_empty() { DEFAULT_BUCKET } else { name };
    is_bucket(name).then_some(name)
}

/// Letters, digits, and `.`, `_`, `-`: the usual form of a store's identifier elsewhere.
fn is_bucket(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=BUCKET_BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::{BUCKET_BYTES_MAX, is_bucket};

    #[test]
    fn bucket_names_have_a_form() {
        let longest = "b".repeat(BUCKET_BYTES_MAX);
        for name in ["a", "default", "Notes.2026-11_x", &longest] {
            assert!(is_bucket(name), "{name:?}");
        }
        let too_long = "b".repeat(BUCKET_BYTES_MAX + 1);
        for name in ["", " ", "a/b", "ü", "a\0", &too_long] {
            assert!(!is_bucket(name), "{name:?}");
        }
    }
}
