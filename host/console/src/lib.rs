//! The pages of the console, as pure functions from values to HTML.
//!
//! [`page`] makes whole documents from the values of [`model`], [`update`] the parts that an event
//! replaces. [`routes`] has the addresses and the fields of forms, [`form`] turns a form that tries
//! a tool into arguments. [`asset`] has the style sheet and the script, [`policy`] the headers of
//! each page.
//!
//! Texts in the model may come from components, clients and other servers. Each is clipped and
//! escaped. Pages contain no inline script, style or event handler.
//!
//! Must not hold: HTTP, sessions, clocks, files, threads, and types of our other crates.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod asset;
pub mod bounds;
mod chart;
mod diff;
mod figure;
pub mod form;
mod frame;
pub mod json;
pub mod model;
pub mod page;
mod picture;
pub mod policy;
pub mod routes;
mod table;
mod text;
pub mod update;

pub use frame::View;
