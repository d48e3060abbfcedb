//! The messages between the host and a sandbox process. Native code may send any bytes, so that
//! whatever comes is a message or is refused. A message that is read means the same once it is
//! written and read again. The report of a call keeps the limits of the call, whatever it says. An
//! answer within these limits is one that the process's side sends and the host's side decodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcell_policy::Limits;

use toolcell_wall::contract::{GuestContent, GuestResult};
use toolcell_wall::encoding::{decode, encode_fitting};
use toolcell_wall::message::{self, FromSandbox, ToSandbox};
use toolcell_wall::report::CallReport;
use toolcell_wall::weight::weigh;

use again::means_the_same;

#[path = "again.rs"]
mod again;

/// Bytes of a reason or a backtrace that the host takes, as `failure.rs` has them.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Most empty sizes that are added to the icons of an answer: more than any limit allows.
const SIZES_MAX: usize = 1 << 19;

/// Checks that what one side accepts the other decodes. The first bytes say how many empty sizes
/// the first icon of the answer has.
fn is_sent_and_decoded(data: &[u8]) {
    let Some((sizes, answer)) = data.split_first_chunk::<3>() else { return };
    let sizes = usize::try_from(u32::from_le_bytes([sizes[0], sizes[1], sizes[2], 0])).unwrap_or(0) % SIZES_MAX;
    let Ok(mut result) = postcard::from_bytes::<GuestResult>(answer) else { return };
    let links = result.content.iter_mut().filter_map(|content| match content {
        GuestContent::ResourceLink(link) => Some(link),
        _ => None,
    });
    if let Some(icon) = links.flat_map(|link| &mut link.icons).next() {
        icon.sizes.resize(sizes, String::new());
    }
    let limits = Limits::default();
    let (bytes, items) = weigh(&result);
    if bytes > limits.output_bytes() || items > limits.output_items() {
        return;
    }
    let message = FromSandbox::Ended(1, Box::new(CallReport::without_running(result).to_send()));
    let bytes = encode_fitting(&message).expect("an answer within its limits is sent");
    assert!(bytes.len() as u64 <= message::bytes_max(&limits), "{} bytes", bytes.len());
    decode::<FromSandbox>(&bytes).expect("what is sent is decoded");
}

fuzz_target!(|data: &[u8]| {
    is_sent_and_decoded(data);
    means_the_same::<ToSandbox>(data);
    let Some(said) = means_the_same::<FromSandbox>(data) else { return };
    let _ = said.call();
    if let FromSandbox::Ended(_, report) = said {
        let limits = Limits::default();
        let report = report.taken(&limits);
        assert!(report.usage.fuel <= limits.fuel(), "more fuel than the call had");
        assert!(report.usage.log_bytes <= limits.log_bytes(), "more log than the call had");
        assert!(report.captured.text.len() as u64 <= limits.log_bytes() * 3, "more prints than the call had");
        let detail = report.outcome.err().map_or(0, |failure| failure.detail().len());
        assert!(detail <= TEXT_BYTES_MAX, "a detail of {detail} bytes");
    }
});
