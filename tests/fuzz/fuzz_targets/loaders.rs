//! The messages between the host and a loader. Native code may send any bytes, so that whatever
//! comes is a message or is refused. A message that is read means the same once it is written and
//! read again. A list of tools keeps the limits of listing, whatever it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcell_policy::Limits;

use toolcell_wall::load::message::{self, FromLoader, ToLoader};

use again::means_the_same;

#[path = "again.rs"]
mod again;

/// Bytes of a reason that the host takes, as `failure.rs` has them.
const TEXT_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    if let Some(ToLoader::List { limits, .. }) = means_the_same(data) {
        // Keys that there are not, and values out of bounds, change nothing.
        let limits = message::limits(&limits);
        assert_eq!(message::limits(&message::limits_by_key(&limits)), limits);
    }
    if let Some(FromLoader::Listed(listing)) = means_the_same(data) {
        let limits = Limits::default();
        let is_whole = listing.is_whole();
        let report = listing.taken(&limits).report;
        assert!(!is_whole || report.outcome.is_ok(), "a whole list was not taken");
        assert!(report.captured.text.len() as u64 <= limits.log_bytes() * 3, "more prints than listing has");
        let detail = report.outcome.err().map_or(0, |failure| failure.detail().len());
        assert!(detail <= TEXT_BYTES_MAX, "a detail of {detail} bytes");
    }
});
