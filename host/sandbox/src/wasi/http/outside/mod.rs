//! HTTP requests of a guest in a sandbox process, made by the host. Must not hold: decisions, or
//! connections.
//!
//! One door carries one request. Out of the process come its head, pieces of its body, and trailers
//! or the end. Back comes the response in the same parts, or an error. On the host's side, the
//! request goes the way of any other ([`Requests`](super::requests::Requests)).

mod from_guest;
mod message;
mod serve;

pub(super) use from_guest::OutsideRequests;
pub(crate) use message::{RequestHead, head_bytes_max};
pub(crate) use serve::serve;
