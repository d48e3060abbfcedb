//! Bytes through the stdio transport, cut into reads where the input says. The output must equal,
//! byte for byte, the answers of a connection without a transport to those lines. Run it with
//! SIGPIPE ignored, as every Rust program is.
#![no_main]

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use toolcell_fuzz::{AtOnce, Frames, MemoryHost, server, tools};
use toolcell_mcp::stdio::{StdioEnd, StdioOptions, StdioShutdown, serve};
use toolcell_mcp::{McpServer, Outbox, OverlongFrame};

/// Reads of one input at most, the number of packets that a pipe keeps apart.
const READS_MAX: usize = 16;

/// Bytes of one read at most, which a pipe keeps together.
const READ_BYTES_MAX: usize = 4_096;

static SERVER: LazyLock<Arc<McpServer<MemoryHost>>> = LazyLock::new(|| server(tools(&["echo", "structured"])));

fuzz_target!(|data: &[u8]| {
    let [line_max, cut, stream @ ..] = data else { return };
    let line_bytes_max = 8 + usize::from(*line_max) * 2;
    let read_bytes = (usize::from(*cut) + 1).max(stream.len().div_ceil(READS_MAX));
    if read_bytes > READ_BYTES_MAX {
        return;
    }
    let got = served(stream, line_bytes_max, read_bytes);
    let wanted = received(stream, line_bytes_max);
    assert!(got == wanted, "came:   {}\nwanted: {}", String::from_utf8_lossy(&got), String::from_utf8_lossy(&wanted));
});

/// The output of the transport.
fn served(stream: &[u8], line_bytes_max: usize, read_bytes: usize) -> Vec<u8> {
    // In this mode each write to a pipe is one read.
    let (input, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).expect("a pipe");
    let mut writer = File::from(writer);
    for read in stream.chunks(read_bytes) {
        writer.write_all(read).expect("the pipe has room");
    }
    drop(writer);
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC).expect("a file in memory"));
    let kept = OwnedFd::from(output.try_clone().expect("a second handle"));
    let options = StdioOptions { line_bytes_max, ..StdioOptions::over(input, kept) };
    let shutdown = StdioShutdown::new().expect("a shutdown");
    let ended = serve(&SERVER, options, AtOnce, &shutdown).expect("it serves");
    assert_eq!(ended, StdioEnd::Eof);
    let mut written = Vec::new();
    output.rewind().expect("a file goes back");
    output.read_to_end(&mut written).expect("a file is read");
    written
}

/// The answers of a connection to those lines.
fn received(stream: &[u8], line_bytes_max: usize) -> Vec<u8> {
    let frames = Arc::new(Frames::default());
    let outbox: Arc<dyn Outbox> = Arc::<Frames>::clone(&frames);
    let connection = SERVER.connect(outbox, Arc::new(AtOnce));
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match line.len() > line_bytes_max {
            true => {
                let mut overlong = OverlongFrame::default();
                overlong.read(line);
                connection.refuse_overlong(&overlong, line_bytes_max);
            }
            false => connection.receive(line),
        }
    }
    connection.end_subscriptions();
    frames.take().into_iter().flat_map(|frame| [frame, vec![b'\n']].concat()).collect()
}
