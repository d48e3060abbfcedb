//! The first message on a door. Must not hold: what comes after it.
use serde::{Deserialize, Serialize};

use crate::caller::consent::Wish;
use crate::wasi::http;
use crate::wasi::sockets::{TcpWanted, UdpWanted};

/// The first message on a door: the operation that it is for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Opening {
    /// One HTTP request.
    Http(Box<http::outside::RequestHead>),
    /// The operations of the call on the state that it keeps.
    State,
    /// The addresses of a name.
    Lookup(String),
    /// A TCP connection.
    Tcp(TcpWanted),
    /// A socket for packets.
    Udp(UdpWanted),
    /// A question to a person, should no rule allow what the guest is about to do.
    Consent(Wish),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wall::tests::are_seeds;

    fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 1).unwrap().to_le_bytes();
        [&length[..], &[kind], content].concat()
    }

    #[test]
    fn the_seeds_of_the_fuzz_target_open_doors() {
        let request = ::http::Request::post("https://x.example/a?b").header("x-a", "b").body(()).unwrap();
        let address = "192.0.2.1:443".parse().unwrap();
        let openings = [
            ("http", Opening::Http(Box::new(http::outside::RequestHead::new(&request, None, Some(2))))),
            ("state", Opening::State),
            ("lookup", Opening::Lookup("x.example".to_owned())),
            ("tcp", Opening::Tcp(TcpWanted::plain(address))),
            ("udp", Opening::Udp(UdpWanted::plain())),
            ("consent", Opening::Consent(Wish::Connect(address))),
        ];
        let seeds = openings.map(|(name, opening)| {
            let opened = framed(0, &postcard::to_stdvec(&opening).unwrap());
            (name, [opened, framed(1, b"ab")].concat())
        });
        are_seeds("doors", &seeds);
    }
}
