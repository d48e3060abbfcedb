//! The pages of the console, as pure functions from values to HTML.
//!
//! [`page`] makes whole documents out of the values of [`model`], [`update`] the parts of them that
//! an event replaces. [`routes`] has the addresses and the fields of forms, [`form`] makes
//! arguments of a form that tries a tool. [`asset`] has the style sheet and the script, [`policy`]
//! the headers that belong to each page.
//!
//! Texts in the model may come from components, clients and other servers. Each is clipped, escaped
//! and made visible. No page holds a script, a style or an event handler.
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
