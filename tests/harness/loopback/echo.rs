//! TCP and UDP servers that echo their input and count it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The state that a server shares with its handle.
#[derive(Debug, Clone)]
struct Serving {
    address: SocketAddr,
    count: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

/// A TCP server that echoes its input.
#[derive(Debug)]
pub struct TcpEcho(Serving);

/// A UDP server that echoes each datagram.
#[derive(Debug)]
pub struct UdpEcho(Serving);

impl Serving {
    fn at(address: SocketAddr) -> Self {
        Self { address, count: Arc::default(), is_over: Arc::default() }
    }

    /// Counts one more connection or datagram. False once the server has ended.
    fn counts(&self) -> bool {
        if self.is_over.load(Ordering::SeqCst) {
            return false;
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// The functions that start each of the two servers and read its state.
macro_rules! server {
    ($name:ident, $counted:ident, $what:literal) => {
        impl $name {
            /// A server on 127.0.0.1.
            ///
            /// # Panics
            /// If it cannot listen.
            #[must_use]
            pub fn start() -> Self {
                Self::at(([127, 0, 0, 1], 0))
            }

            /// The address it listens on.
            #[must_use]
            pub fn address(&self) -> SocketAddr {
                self.0.address
            }

            #[doc = $what]
            #[must_use]
            pub fn $counted(&self) -> usize {
                self.0.count.load(Ordering::SeqCst)
            }
        }
    };
}

server!(TcpEcho, connections, "How many connections were made to it so far.");
server!(UdpEcho, datagrams, "How many datagrams came so far.");

impl TcpEcho {
    /// A server at this address.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        let listener = TcpListener::bind(address.into()).unwrap();
        let serving = Serving::at(listener.local_addr().unwrap());
        let own = serving.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !own.counts() {
                    return;
                }
                if let Ok(stream) = stream {
                    std::thread::spawn(move || send_back(stream));
                }
            }
        });
        Self(serving)
    }
}

fn send_back(mut stream: TcpStream) {
    let mut block = [0_u8; 4096];
    while let Ok(bytes @ 1..) = stream.read(&mut block) {
        if stream.write_all(&block[..bytes]).is_err() {
            return;
        }
    }
}

impl Drop for TcpEcho {
    fn drop(&mut self) {
        self.0.end();
        let _ = TcpStream::connect(self.0.address);
    }
}

impl UdpEcho {
    /// A server at this address.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        let socket = UdpSocket::bind(address.into()).unwrap();
        let serving = Serving::at(socket.local_addr().unwrap());
        let own = serving.clone();
        std::thread::spawn(move || {
            let mut block = [0_u8; 65536];
            while let Ok((bytes, from)) = socket.recv_from(&mut block) {
                if !own.counts() {
                    return;
                }
                let _ = socket.send_to(&block[..bytes], from);
            }
        });
        Self(serving)
    }
}

impl Drop for UdpEcho {
    fn drop(&mut self) {
        self.0.end();
        let woken = UdpSocket::bind(("127.0.0.1", 0)).and_then(|socket| socket.send_to(b"", self.0.address));
        let _ = woken;
    }
}
