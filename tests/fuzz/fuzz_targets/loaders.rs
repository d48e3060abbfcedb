//! The messages between the host and a loader. Native code may send any bytes, so that whatever
//! comes is a message or is refused. A message that is read means the same once it is written and
//! read again. A list of tools keeps the limits of listing, whatever it says.
//!
//! The messages are included by their files, without the crate that runs guests.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use libfuzzer_sys::fuzz_target;
use toolcell_policy::Limits;

use around::{bindings, caller, failure, load, loading, means_the_same, message, run, secrets, wall, wasi};
use loading::{FromLoader, ToLoader};

#[path = "around_messages.rs"]
mod around;

/// Bytes of a reason that the host takes, as `wall/message.rs` has them.
const TEXT_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    if let Some(ToLoader::List { limits, .. }) = means_the_same(data) {
        // Keys that there are not, and values out of bounds, change nothing.
        let limits = loading::limits(&limits);
        assert_eq!(loading::limits(&loading::told(&limits)), limits);
    }
    if let Some(FromLoader::Listed(listing)) = means_the_same(data) {
        let limits = Limits::default();
        let is_whole = listing.is_whole();
        let (report, ..) = listing.into_report(&limits);
        assert!(!is_whole || report.outcome.is_ok(), "a list that is whole is none");
        assert!(report.captured.text.len() as u64 <= limits.log_bytes() * 3, "more prints than listing has");
        let detail = report.outcome.err().map_or(0, |failure| failure.detail().len());
        assert!(detail <= TEXT_BYTES_MAX, "a detail of {detail} bytes");
    }
});
