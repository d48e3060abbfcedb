//! The first message on a door. Must not hold: what comes after it.
use serde::{Deserialize, Serialize};

use crate::wasi::http;

/// The first message on a door: the operation that it is for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Opening {
    /// One HTTP request.
    Http(Box<http::outside::RequestHead>),
}
