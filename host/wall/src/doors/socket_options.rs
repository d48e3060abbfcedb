//! The options of a socket that a guest may set. They are kept until the host makes the socket; an
//! option that is set later is only remembered.
use serde::{Deserialize, Serialize};

use super::sockets::SocketCode;

/// Options that a guest has not set have Linux's defaults.
const KEEP_ALIVE_IDLE_NANOS: u64 = 7_200_000_000_000;
const KEEP_ALIVE_INTERVAL_NANOS: u64 = 75_000_000_000;
const KEEP_ALIVE_COUNT: u32 = 9;
const HOP_LIMIT: u8 = 64;
const BUFFER_BYTES: u64 = 212_992;

/// The options that a guest has set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// True if probes are sent on an idle connection.
    pub keep_alive: Option<bool>,
    /// Idle time before the first probe.
    pub keep_alive_idle_nanos: Option<u64>,
    /// Time between two probes.
    pub keep_alive_interval_nanos: Option<u64>,
    /// Unanswered probes that end the connection.
    pub keep_alive_count: Option<u32>,
    /// The hop limit of a packet.
    pub hop_limit: Option<u8>,
    /// Bytes of the receive buffer.
    pub receive_bytes: Option<u64>,
    /// Bytes of the send buffer.
    pub send_bytes: Option<u64>,
}

/// Each option: its type, how it is read and set, and its initial value.
macro_rules! options {
    ($($field:ident: $type:ty = $before:expr, $set:ident;)*) => {
        impl SocketOptions {
            $(
                #[doc = concat!("`", stringify!($field), "`, or its default.")]
                #[must_use]
                pub fn $field(&self) -> $type {
                    self.$field.unwrap_or($before)
                }

                #[doc = concat!("Sets `", stringify!($field), "`.")]
                ///
                /// # Errors
                /// 0 is not a valid value.
                pub fn $set(&mut self, value: $type) -> Result<(), SocketCode> {
                    if value == <$type>::default() {
                        return Err(SocketCode::InvalidArgument);
                    }
                    self.$field = Some(value);
                    Ok(())
                }
            )*
        }
    };
}

options! {
    keep_alive_idle_nanos: u64 = KEEP_ALIVE_IDLE_NANOS, set_keep_alive_idle_nanos;
    keep_alive_interval_nanos: u64 = KEEP_ALIVE_INTERVAL_NANOS, set_keep_alive_interval_nanos;
    keep_alive_count: u32 = KEEP_ALIVE_COUNT, set_keep_alive_count;
    hop_limit: u8 = HOP_LIMIT, set_hop_limit;
    receive_bytes: u64 = BUFFER_BYTES, set_receive_bytes;
    send_bytes: u64 = BUFFER_BYTES, set_send_bytes;
}
