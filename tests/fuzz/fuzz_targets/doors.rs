//! Bytes that come through a door: frames, however they are cut, and the message that opens it.
//! Native code may send any bytes, so that they are frames or are refused. A message that is read
//! means the same once it is written and read again.
//!
//! Frames, their lists and the message are included by their files, without the crate that runs
//! guests. Types that these name stand here with their fields.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use std::os::unix::net::UnixStream;

use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Builder, Runtime};

use frame::{Door, Frame};
use opening::Opening;

#[path = "../../../host/sandbox/src/wasi/doors/bounded.rs"]
mod bounded;
#[path = "../../../host/sandbox/src/wasi/doors/frame.rs"]
mod frame;
#[path = "../../../host/sandbox/src/wasi/doors/opening.rs"]
mod opening;
#[path = "../../../host/sandbox/src/caller/outside.rs"]
mod outside;

mod caller {
    pub(crate) use crate::outside;

    pub(crate) mod consent {
        use std::net::SocketAddr;

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Wish {
            Request(WishedRequest),
            Connect(SocketAddr),
            Send(SocketAddr),
        }

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct WishedRequest {
            method: String,
            scheme: String,
            authority: String,
            target: String,
        }
    }
}

mod wasi {
    pub(crate) mod http {
        pub(crate) mod outside {
            use std::time::Duration;

            use crate::bounded::{Blob, List};

            #[derive(Debug, serde::Serialize, serde::Deserialize)]
            pub(crate) struct RequestHead {
                method: String,
                scheme: String,
                authority: String,
                target: Option<String>,
                fields: List<(Blob, Blob), 20_000>,
                waits: [Option<Duration>; 3],
                body_bytes: Option<u64>,
            }
        }
    }

    pub(crate) mod sockets {
        use std::net::SocketAddr;

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct TcpWanted {
            to: SocketAddr,
            six: bool,
            options: Options,
        }

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct UdpWanted {
            six: bool,
            options: Options,
        }

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        struct Options {
            keep_alive: Option<bool>,
            keep_alive_idle_nanos: Option<u64>,
            keep_alive_interval_nanos: Option<u64>,
            keep_alive_count: Option<u32>,
            hop_limit: Option<u8>,
            receive_bytes: Option<u64>,
            send_bytes: Option<u64>,
        }
    }
}

/// Bytes of a frame: less than an input may have.
const FRAME_BYTES_MAX: usize = 1_000;

/// Bytes that are sent at once where frames are cut: no length of anything.
const PIECE_BYTES: usize = 61;

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
}

/// The frames that came, and the error behind them.
type Heard = (Vec<Frame>, Option<String>);

fuzz_target!(|data: &[u8]| {
    let expected = cut(data);
    assert_eq!(heard(data, data.len().max(1)), expected, "sent at once");
    assert_eq!(heard(data, PIECE_BYTES), expected, "sent in pieces");
    let Some(Frame::Message(first)) = expected.0.first() else { return };
    let Ok(opening) = frame::decoded::<Opening>(first) else { return };
    let written = postcard::to_stdvec(&opening).expect("a message that was read is written");
    let again: Opening = frame::decoded(&written).expect("a message that was written is read");
    assert_eq!(format!("{opening:?}"), format!("{again:?}"));
});

/// The frames of these bytes, by the table in `frame.rs`.
fn cut(mut data: &[u8]) -> Heard {
    let mut frames = Vec::new();
    loop {
        let Some((length, rest)) = data.split_first_chunk() else {
            let error = (!data.is_empty()).then_some("the other side closed it");
            return (frames, error.map(str::to_owned));
        };
        let bytes = u32::from_le_bytes(*length) as usize;
        let error = match (bytes, rest.get(..bytes)) {
            (0, _) => "a frame of no known kind came".to_owned(),
            (bytes, _) if bytes - 1 > FRAME_BYTES_MAX => {
                format!("a frame of {} bytes came, and {FRAME_BYTES_MAX} are the most", bytes - 1)
            }
            (_, None) => "the other side closed it".to_owned(),
            (_, Some([0, content @ ..])) => {
                frames.push(Frame::Message(content.to_vec().into()));
                data = &rest[bytes..];
                continue;
            }
            (_, Some([1, content @ ..])) => {
                frames.push(Frame::Data(content.to_vec().into()));
                data = &rest[bytes..];
                continue;
            }
            _ => "a frame of no known kind came".to_owned(),
        };
        return (frames, Some(error));
    }
}

/// The frames that the host reads where these bytes come in pieces.
fn heard(data: &[u8], piece: usize) -> Heard {
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            theirs.set_nonblocking(true).expect("a socket");
            let mut peer = tokio::net::UnixStream::from_std(theirs).expect("a socket");
            let (mut reader, _writer) = Door::of(ours.into()).expect("a door").split();
            let sends = async {
                for piece in data.chunks(piece) {
                    if peer.write_all(piece).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                drop(peer);
            };
            let reads = async move {
                let mut frames = Vec::new();
                loop {
                    match reader.frame(FRAME_BYTES_MAX).await {
                        Ok(Some(frame)) => frames.push(frame),
                        Ok(None) => return (frames, None),
                        Err(error) => return (frames, Some(error.to_string())),
                    }
                }
            };
            tokio::join!(reads, sends).0
        })
    })
}
