//! Operations on the state that a tool was granted, and the right to it.
use toolcell_policy::{Capability, Grants};
use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::error::StateRefusal;
use super::granted::GrantedState;
use super::keeper::BucketPlace;
use super::reading::ChangeNotice;
use super::session::StateSession;
use super::store::BucketPath;
use crate::wasi::net::CallNet;
use toolcell_wall::caller::CallerLink;
use toolcell_wall::denials::CallDenials;

/// Bytes of a bucket's name: as long as a component's or a tool's.
const BUCKET_BYTES_MAX: usize = 64;

/// The bucket of guests that do not name one.
const DEFAULT_BUCKET: &str = "default";

/// A call's share of the state that its tool was granted.
pub(crate) struct KeptState<'a> {
    pub(crate) session: &'a mut StateSession,
    pub(crate) grants: &'a Grants,
    pub(crate) granted: Option<&'a GrantedState>,
    pub(crate) denials: &'a CallDenials,
    pub(crate) caller: &'a dyn CallerLink,
    pub(crate) net: &'a CallNet,
}

impl<'g> KeptState<'g> {
    /// Does one operation on the bucket of this name.
    pub(super) async fn perform(
        &mut self,
        bucket: &str,
        operation: StateOperation,
    ) -> Result<StateOutcome, StateRefusal> {
        let (granted, place) = self.place(bucket)?;
        let notice = ChangeNotice::of(&operation, bucket, self.caller);
        let done = granted.keeper().perform(self.session, place, operation).await;
        if let Err(StateRefusal::Away { away, .. }) = &done {
            self.caller.state_away(away.internal());
        }
        match &done {
            Ok(_) | Err(StateRefusal::Away { may_be_done: true, .. } | StateRefusal::Fault(_)) => drop(notice),
            Err(_) => notice.into_iter().for_each(ChangeNotice::cancel),
        }
        done
    }

    /// Every well-formed name is a bucket. The empty name means [`DEFAULT_BUCKET`].
    fn place(&self, bucket: &str) -> Result<(&'g GrantedState, BucketPlace), StateRefusal> {
        let granted = match (self.grants.open_keyvalue(), self.granted) {
            (Ok(_), Some(granted)) => {
                self.net.used(|| Capability::KeyValue.name().to_owned());
                granted
            }
            (Err(denial), _) => {
                self.denials.add(denial);
                return Err(StateRefusal::Denied);
            }
            (Ok(_), None) => return Err(StateRefusal::Denied),
        };
        let Some(name) = bucket_named(bucket) else { return Err(StateRefusal::NoSuchStore) };
        let path = BucketPath { namespace: granted.namespace(self.caller.name()), bucket: name.to_owned() };
        Ok((granted, BucketPlace { bounds: granted.bounds(), path }))
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
