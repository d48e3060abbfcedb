//! Reading an entry of kept state for the host itself, and announcing entries that calls change.
use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::keeper::BucketPlace;
use super::operations::bucket_named;
use super::session::StateSession;
use super::store::BucketPath;
use crate::wasi::capabilities::GrantedCapabilities;
use toolcell_wall::caller::CallerLink;

impl GrantedCapabilities {
    /// True if there is state to read.
    #[must_use]
    pub fn keeps_state(&self) -> bool {
        self.keyvalue().is_some()
    }

    /// The value of a key, as a call of this caller would find it, without secrets. Needs a
    /// runtime: a file is read on a thread for blocking work.
    ///
    /// # Errors
    /// One sentence for the log if it cannot be read now.
    pub async fn kept_value(&self, caller: &str, bucket: &str, key: String) -> Result<Option<Vec<u8>>, String> {
        let Some((granted, bucket)) = self.keyvalue().zip(bucket_named(bucket)) else { return Ok(None) };
        let operation = StateOperation::Get(key);
        // No guest could have set it.
        if operation.check().is_err() {
            return Ok(None);
        }
        let path = BucketPath { namespace: granted.namespace(caller), bucket: bucket.to_owned() };
        let place = BucketPlace { bounds: granted.bounds(), path };
        let mut session = StateSession::default();
        let value = match granted.keeper().perform(&mut session, place, operation).await {
            Ok(StateOutcome::Value(value)) => value.map(|value| value.0),
            Ok(_) => return Err("the state answered another operation".to_owned()),
            Err(refusal) => return Err(refusal.to_string()),
        };
        Ok(value.map(|value| self.redactor().bytes(&value).into_owned()))
    }
}

/// Announces the entries that an operation changes, once it is over. An abandoned operation may
/// still have been done.
pub(super) struct ChangeNotice<'c> {
    caller: &'c dyn CallerLink,
    bucket: &'c str,
    keys: Vec<String>,
}

impl<'c> ChangeNotice<'c> {
    /// `None` if nothing changes, or if the caller does not want to know.
    pub(super) fn of(operation: &StateOperation, bucket: &'c str, caller: &'c dyn CallerLink) -> Option<Self> {
        let keys = operation.changes().filter(|_| caller.notes_state())?;
        Some(Self { caller, bucket: bucket_named(bucket)?, keys })
    }

    /// Nothing has changed.
    pub(super) fn cancel(mut self) {
        self.keys.clear();
    }
}

impl Drop for ChangeNotice<'_> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            self.caller.state_changed(self.bucket, &self.keys);
        }
    }
}
