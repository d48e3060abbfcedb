//! A message that is written and read again.
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcell_wall::encoding::{decode, encode};

/// The message of these bytes, if they are one: what it is written as is read as the same.
pub(crate) fn means_the_same<M: Serialize + DeserializeOwned + Debug>(data: &[u8]) -> Option<M> {
    let message: M = decode(data).ok()?;
    let written = encode(&message).expect("a message that was read is written");
    let again: M = decode(&written).expect("a message that was written is read");
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
    Some(message)
}
