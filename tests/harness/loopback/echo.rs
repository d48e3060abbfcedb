//! TCP and UDP servers that send back what comes, and count it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A TCP server that sends back what comes.
#[derive(Debug)]
pub struct TcpEcho {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

/// A UDP server that sends each datagram back.
#[derive(Debug)]
pub struct UdpEcho {
    address: SocketAddr,
    datagrams: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl TcpEcho {
    /// A server at this address.
    ///
    /// # Panics
    /// Where it cannot listen.
    #[must_use]
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        let listener = TcpListener::bind(address.into()).unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over) = (Arc::clone(&connections), Arc::clone(&is_over));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                if let Ok(stream) = stream {
                    std::thread::spawn(move || send_back(stream));
                }
            }
        });
        Self { address, connections, is_over }
    }

    /// A server on 127.0.0.1.
    ///
    /// # Panics
    /// Where it cannot listen.
    #[must_use]
    pub fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were made to it so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
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
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

impl UdpEcho {
    /// A server at this address.
    ///
    /// # Panics
    /// Where it cannot listen.
    #[must_use]
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        let socket = UdpSocket::bind(address.into()).unwrap();
        let address = socket.local_addr().unwrap();
        let (datagrams, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over) = (Arc::clone(&datagrams), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut block = [0_u8; 65536];
            while let Ok((bytes, from)) = socket.recv_from(&mut block) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let _ = socket.send_to(&block[..bytes], from);
            }
        });
        Self { address, datagrams, is_over }
    }

    /// A server on 127.0.0.1.
    ///
    /// # Panics
    /// Where it cannot listen.
    #[must_use]
    pub fn start() -> Self {
        Self::at(([127, 0, 0, 1], 0))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many datagrams came so far.
    #[must_use]
    pub fn datagrams(&self) -> usize {
        self.datagrams.load(Ordering::SeqCst)
    }
}

impl Drop for UdpEcho {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let woken = UdpSocket::bind(("127.0.0.1", 0)).and_then(|socket| socket.send_to(b"", self.address));
        let _ = woken;
    }
}
