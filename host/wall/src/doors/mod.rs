//! Messages through a door: one end of a stream socket, through which a sandbox process makes the
//! host do one operation. The first message names the operation ([`Opening`]).
//!
//! Must not hold: frames and sockets (`toolcell_walls::door`), or doing an operation.
//!
//! | file | holds |
//! |---|---|
//! | `blob.rs` | bytes in a message |
//! | `calling.rs` | calls of other tools |
//! | `consent.rs` | asking a person before an operation |
//! | `http.rs`, `http_fault.rs` | one HTTP request and its response |
//! | `net_limits.rs` | what a call may have of the network; both ends count |
//! | `sockets.rs`, `socket_options.rs` | TCP, UDP and name look-ups |
//! | `state.rs` | the state that a tool keeps |

pub mod blob;
pub mod calling;
pub mod consent;
pub mod http;
pub mod http_fault;
pub mod net_limits;
pub mod socket_options;
pub mod sockets;
pub mod state;

use serde::{Deserialize, Serialize};

use crate::encoding::{self, EncodingError};

/// The first message on a door: its operation.
#[derive(Debug, Serialize, Deserialize)]
pub enum Opening {
    /// One HTTP request.
    Http(Box<http::RequestHead>),
    /// The operations of the call on the state that it keeps.
    State,
    /// The addresses of a name.
    Lookup(String),
    /// A TCP connection.
    Tcp(sockets::TcpWanted),
    /// A socket for packets.
    Udp(sockets::UdpWanted),
    /// A permission request to a person, if no rule allows what the guest is about to do.
    Consent(consent::PermissionRequest),
    /// The calls of other tools that the call makes.
    Calling,
}

/// Bytes of memory that the items of a message's lists may take. The longest list is a message's
/// header fields; a list of the state's keys takes a quarter of this.
const LIST_BYTES_MAX: usize = http::FIELDS_MAX * size_of::<(blob::Blob, blob::Blob)>();

/// The message with exactly these bytes.
///
/// # Errors
/// They are not a message of this version, or its lists are longer than an honest process's.
pub fn decode<'b, M: Deserialize<'b>>(bytes: &'b [u8]) -> Result<M, EncodingError> {
    encoding::decode_within(bytes, LIST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::blob::Blob;
    use super::calling::CallingRequest;
    use super::socket_options::SocketOptions;
    use super::*;
    use crate::nested::{ProgramPlace, WantedCall};
    use crate::seeds::are_seeds;

    /// A frame on a door, by the table of frames.
    fn framed(mark: &[u8; 3], content: &[u8]) -> Vec<u8> {
        let bytes = u32::try_from(content.len()).unwrap().to_le_bytes();
        [mark.as_slice(), &[0], &bytes, &[0; 8], content].concat()
    }

    #[test]
    fn the_seeds_of_the_fuzz_target_open_doors() {
        let request = ::http::Request::post("https://x.example/a?b").header("x-a", "b").body(()).unwrap();
        let head = http::RequestHead::new(&request, http::RequestWaits::default(), Some(2));
        let to = "192.0.2.1:443".parse().unwrap();
        let options = SocketOptions::default();
        let openings = [
            ("http", Opening::Http(Box::new(head))),
            ("state", Opening::State),
            ("lookup", Opening::Lookup("x.example".to_owned())),
            ("tcp", Opening::Tcp(sockets::TcpWanted { to, six: false, options: options.clone() })),
            ("udp", Opening::Udp(sockets::UdpWanted { six: false, options })),
            ("consent", Opening::Consent(consent::PermissionRequest::Connect(to))),
        ];
        let opened = |opening: &Opening| framed(b"tw\x01", &encoding::encode(opening).unwrap());
        let seeds = openings.map(|(name, opening)| (name, [opened(&opening), framed(b"tw=", b"ab")].concat()));
        let place = Some(ProgramPlace { line: 1, column: 300 });
        let wanted = WantedCall { tool: "a".to_owned(), arguments_json: "{}".to_owned(), place };
        let requests = [
            ("calling", CallingRequest::Call(vec![wanted.clone(), wanted])),
            ("finding", CallingRequest::Find("words".to_owned(), 5)),
            ("describing", CallingRequest::Describe("a".to_owned())),
            ("beginning", CallingRequest::Began),
        ];
        let calling = requests.map(|(name, request)| {
            let asked = framed(b"tw\x01", &encoding::encode(&request).unwrap());
            (name, [opened(&Opening::Calling), asked].concat())
        });
        are_seeds("doors", &[seeds.as_slice(), calling.as_slice()].concat());
    }

    #[test]
    fn a_list_ends_at_its_bound() {
        let fields = |count: usize| encoding::encode(&vec![(Blob::default(), Blob::default()); count]).unwrap();
        let read = |count: usize| decode::<Vec<(Blob, Blob)>>(&fields(count)).map(|fields| fields.len());
        assert_eq!(read(http::FIELDS_MAX).unwrap(), http::FIELDS_MAX);
        assert!(read(http::FIELDS_MAX + 1).is_err());
        // A length is only a claim.
        let version = fields(0)[0];
        assert!(decode::<Vec<String>>(&[version, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
    }
}
