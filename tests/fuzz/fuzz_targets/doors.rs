//! Bytes that come through a door: frames, however they are cut, and the message that opens it.
//! Native code may send any bytes, so that they are frames or are refused. A message that is read
//! means the same once it is written and read again.
#![no_main]

use std::os::unix::net::UnixStream;

use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Builder, Runtime};
use toolcell_wall::doors::calling::CallingRequest;
use toolcell_wall::doors::{Opening, decode};
use toolcell_wall::encoding::encode;
use toolcell_walls::door::{Door, DoorFrame};

/// Bytes of a frame: less than an input may have.
const FRAME_BYTES_MAX: usize = 1_000;

/// Bytes that are sent at once where frames are cut: no length of anything.
const PIECE_BYTES: usize = 61;

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
}

/// The frames that came, and the error behind them.
type Heard = (Vec<DoorFrame>, Option<String>);

fuzz_target!(|data: &[u8]| {
    let expected = cut(data);
    assert_eq!(heard(data, data.len().max(1)), expected, "sent at once");
    assert_eq!(heard(data, PIECE_BYTES), expected, "sent in pieces");
    let Some(DoorFrame::Message(first)) = expected.0.first() else { return };
    let Ok(opening) = decode::<Opening>(first) else { return };
    let written = encode(&opening).expect("a message that was read is written");
    let again: Opening = decode(&written).expect("a message that was written is read");
    assert_eq!(format!("{opening:?}"), format!("{again:?}"));
    for frame in expected.0.iter().skip(1) {
        let DoorFrame::Message(message) = frame else { continue };
        let Ok(request) = decode::<CallingRequest>(message) else { continue };
        let written = encode(&request).expect("a request that was read is written");
        assert_eq!(decode::<CallingRequest>(&written).expect("a request that was written is read"), request);
    }
});

/// The frames of these bytes, by the table of frames on a link.
fn cut(mut data: &[u8]) -> Heard {
    let mut frames = Vec::new();
    loop {
        let Some((head, rest)) = data.split_first_chunk::<16>() else {
            let error = (!data.is_empty()).then_some("the other side closed it");
            return (frames, error.map(str::to_owned));
        };
        let [mark @ .., 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0] = *head else {
            return (frames, Some("a frame of an unknown kind came".to_owned()));
        };
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        let frame = match &mark {
            b"tw\x01" => DoorFrame::Message,
            b"tw=" => DoorFrame::Data,
            _ => return (frames, Some("a frame of an unknown kind came".to_owned())),
        };
        if bytes > FRAME_BYTES_MAX {
            return (frames, Some(format!("a frame of {bytes} bytes came, at most {FRAME_BYTES_MAX} are allowed")));
        }
        let Some((content, behind)) = rest.split_at_checked(bytes) else {
            return (frames, Some("the other side closed it".to_owned()));
        };
        frames.push(frame(content.to_vec().into()));
        data = behind;
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
