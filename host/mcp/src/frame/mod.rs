//! Frames of JSON-RPC 2.0, read strictly and written compactly. A request's method is parsed once,
//! here. Must not hold: eras, revisions, or answers.

mod arguments;
mod base64;
mod error;
mod id;
mod members;
mod message;
mod overlong;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
mod write;

pub use arguments::{ArgumentsRefusal, parse_arguments};
pub(crate) use base64::{base64, decode_base64, push_base64};
pub(crate) use error::echo;
pub use error::{ErrorCode, RpcError};
pub use id::RequestId;
pub(crate) use id::integer;
pub(crate) use members::RawMembers;
pub(crate) use message::{
    BYTE_ORDER_MARK, BatchEntry, FrameContent, McpMessage, McpRequest, Params, RefusedFrame, decode,
};
pub use overlong::OverlongFrame;
pub(crate) use write::{
    ErrorId, Object, batch, error_frame, json_text, notification_frame, push_error, push_json, push_list, push_number,
    push_string, result_frame,
};
