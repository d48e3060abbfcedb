//! HTTP requests of the host itself: to registries, authorization servers, webhooks and collectors.
//! The addresses that they may go to, the connection, its trusted roots, and the bounds on an
//! answer stand here once. Must not hold: requests of guests, which the sandbox makes and policy
//! decides on; credentials; the meaning of an answer.
//!
//! Each request has a connection of its own, over HTTP/1.1. Proxies of the environment are ignored:
//! behind one, nothing here would know which address a request goes to.
#![forbid(unsafe_code)]

mod client;
mod connect;
mod error;
mod exchange;
mod reach;
mod redirect;
mod roots;

pub use client::{OutboundBounds, OutboundClient};
pub use connect::Way;
pub use error::OutboundError;
pub use exchange::{AnswerBody, send};
pub use reach::{Reach, is_protected, is_same_server, shown};
pub use redirect::{NotFollowed, REDIRECTS_MAX, followed, is_redirect};
pub use roots::{client_config, machine_connector, machine_roots};
pub use toolcell_policy::is_loopback;
