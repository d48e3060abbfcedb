//! The state of a component on a server that all replicas share: the same bounds, and the texts for
//! what the server refuses.
//!
//! A call has nothing to settle: the server has each operation before the guest gets the answer,
//! and keeps it as configured.
use std::sync::Arc;

use toolcell_shared::{Away, Bucket, Kept, NotKept, Quota};
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::error::StateRefusal;
use super::keeper::{BucketPlace, Performing, StateKeeper};
use super::session::StateSession;
use super::store::{CALLERS_MAX, KeyPage, check_value, cut_page, rows_max};

/// A component's state on a server.
#[derive(Debug)]
pub(super) struct OnServer {
    kept: Arc<Kept>,
    component: String,
}

impl OnServer {
    pub(super) fn new(kept: &Arc<Kept>, component: &str) -> Self {
        Self { kept: Arc::clone(kept), component: component.to_owned() }
    }

    async fn perform(&self, place: BucketPlace, operation: StateOperation) -> Result<StateOutcome, StateRefusal> {
        operation.check()?;
        let BucketPlace { bounds, path } = &place;
        let bucket = Bucket { component: &self.component, namespace: &path.namespace, name: &path.bucket };
        let quota = Quota {
            bytes: bounds.bytes,
            entries: bounds.entries,
            value_bytes: bounds.value_bytes,
            namespaces: CALLERS_MAX,
        };
        let refused = |why: NotKept| refusal(why, &place);
        match operation {
            StateOperation::Open => Ok(StateOutcome::Done),
            StateOperation::Get(key) => {
                let value = self.kept.get(bucket, &key, bounds.value_bytes).await.map_err(unread)?;
                Ok(StateOutcome::Value(value.map(Blob)))
            }
            StateOperation::Exists(key) => {
                Ok(StateOutcome::Exists(self.kept.exists(bucket, &key).await.map_err(unread)?))
            }
            StateOperation::List(cursor) => {
                let rows = self.kept.keys_after(bucket, cursor.unwrap_or(0), rows_max()).await.map_err(unread)?;
                let KeyPage { keys, cursor } = cut_page(rows.into_iter().map(Ok))?;
                Ok(StateOutcome::Page(keys, cursor))
            }
            StateOperation::Add(key, delta) => {
                Ok(StateOutcome::Number(self.kept.add(bucket, quota, key, delta).await.map_err(refused)?))
            }
            StateOperation::GetMany(keys) => {
                let values = match self.kept.get_all(bucket, &keys, place.answer_bytes_max()).await {
                    Err(NotKept::Away(away)) => return Err(unread(away)),
                    values => values.map_err(refused)?,
                };
                let pairs = keys.into_iter().zip(values);
                let pairs = pairs.map(|(key, value)| value.map(|value| (key, Blob(value))));
                Ok(StateOutcome::Values(pairs.collect()))
            }
            StateOperation::SetMany(pairs) => {
                pairs.iter().try_for_each(|(_, value)| check_value(&value.0, bounds))?;
                let pairs = pairs.into_iter().map(|(key, Blob(value))| (key, value)).collect();
                self.kept.set_all(bucket, quota, pairs).await.map_err(refused)?;
                Ok(StateOutcome::Done)
            }
            StateOperation::DeleteMany(keys) => {
                self.kept.delete_all(bucket, quota, keys).await.map_err(refused)?;
                Ok(StateOutcome::Done)
            }
        }
    }
}

impl StateKeeper for OnServer {
    fn perform<'a>(&'a self, _: &'a mut StateSession, place: BucketPlace, operation: StateOperation) -> Performing<'a> {
        Box::pin(self.perform(place, operation))
    }
}

/// The text for an operation that the server did not do.
fn refusal(why: NotKept, place: &BucketPlace) -> StateRefusal {
    let bounds = &place.bounds;
    match why {
        NotKept::Away(away) => StateRefusal::Away { away, may_be_done: true },
        NotKept::Bytes { held, wanted } => StateRefusal::Bytes { held, wanted, max: bounds.bytes },
        NotKept::Entries { wanted } => StateRefusal::Entries { wanted, max: bounds.entries },
        NotKept::Namespaces => StateRefusal::Callers { max: CALLERS_MAX },
        NotKept::Value { bytes } => StateRefusal::Value { bytes, max: bounds.value_bytes },
        NotKept::NoNumber => StateRefusal::NoNumber,
        NotKept::Overflow => StateRefusal::Overflow,
        NotKept::Answer => StateRefusal::Answer { max: place.answer_bytes_max() },
    }
}

fn unread(away: Away) -> StateRefusal {
    StateRefusal::Away { away, may_be_done: false }
}
