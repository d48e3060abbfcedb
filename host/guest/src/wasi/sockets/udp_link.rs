//! The door of a UDP socket, and the packets that come through it.
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use toolcell_wall::caller::Outside;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::sockets::{self, PACKET_BYTES_MAX, UdpReply, UdpWanted, UdpWants};
use toolcell_wall::doors::{Opening, decode};
use toolcell_walls::door::{self, DoorError, DoorFrame, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};

use super::error_code;

/// Packets that arrived and are still unread. More are dropped, as UDP may.
const WAITING_MAX: usize = 64;

/// Those who wait for a message and are kept to be woken. Past it all are woken, and those that
/// still wait come again.
const WAITERS_MAX: usize = 64;

/// A socket that the host made, and the address that it has.
pub(super) struct Opened {
    pub(super) link: UdpLink,
    pub(super) local: SocketAddr,
}

/// The door of a socket that has streams, and where it sends.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) link: UdpLink,
    pub(super) route: Route,
}

/// Where a socket sends.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) remote: Option<SocketAddr>,
    pub(super) family: IpAddressFamily,
}

impl Route {
    /// Where a packet of this many bytes goes, if it may.
    pub(super) fn target(self, to: Option<SocketAddr>, bytes: usize) -> Result<SocketAddr, ErrorCode> {
        match to.or(self.remote) {
            _ if bytes > PACKET_BYTES_MAX => Err(ErrorCode::DatagramTooLarge),
            Some(to) if is_remote(to, self.family) && self.remote.is_none_or(|remote| remote == to) => Ok(to),
            _ => Err(ErrorCode::InvalidArgument),
        }
    }
}

/// The door of a socket, which its streams share. A guest of WASI 0.2 does one thing at a time; the
/// tasks of one of 0.3 wait for their turn to ask.
#[derive(Clone)]
pub(super) struct UdpLink(Arc<Mutex<Sides>>);

pub(super) struct Sides {
    reader: FrameReader,
    writer: Option<FrameWriter>,
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    answer: Option<Result<Option<SocketAddr>, ErrorCode>>,
    /// Why nothing more comes.
    end: Option<ErrorCode>,
    /// Those who wait for a message. The door wakes only the last who looked, who wakes the others.
    waiters: Vec<Waker>,
}

impl Sides {
    fn wait(&mut self, waker: &Waker) {
        if self.waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            return;
        }
        if self.waiters.len() >= WAITERS_MAX {
            self.wake();
        }
        self.waiters.push(waker.clone());
    }

    fn wake(&mut self) {
        self.waiters.drain(..).for_each(Waker::wake);
    }

    /// The next packet, if it is there.
    pub(super) fn take_packet(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let _ = self.poll_packet(&mut Context::from_waker(Waker::noop()));
        self.waiting.pop_front()
    }

    pub(super) fn end(&self) -> Option<ErrorCode> {
        self.end
    }

    /// Handles one message of the host.
    fn poll_said(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let frame = match self.reader.poll_frame(context, HOST_BYTES_MAX) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                self.wait(context.waker());
                return Poll::Pending;
            }
        };
        self.wake();
        let said = match frame {
            Ok(Some(DoorFrame::Message(message))) => decode(&message).map_err(DoorError::from),
            Ok(_) => Err(DoorError::Closed),
            Err(error) => Err(error),
        };
        match said {
            Ok(UdpReply::Done(done)) => self.answer = Some(done.map_err(error_code)),
            Ok(UdpReply::Received(from, Blob(data))) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back((from, data));
            }
            Ok(UdpReply::Received(..)) => {}
            Ok(UdpReply::Over) => self.end = Some(ErrorCode::OutOfMemory),
            Err(_) => self.end = Some(ErrorCode::ConnectionAborted),
        }
        Poll::Ready(())
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<SocketAddr>, ErrorCode>> {
        loop {
            match (self.answer.take(), self.end) {
                (Some(answer), _) => return Poll::Ready(answer),
                (None, Some(code)) if code != ErrorCode::OutOfMemory => return Poll::Ready(Err(code)),
                _ => ready!(self.poll_said(context)),
            }
        }
    }

    pub(super) fn poll_packet(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.waiting.is_empty() && self.end.is_none() {
            ready!(self.poll_said(context));
        }
        Poll::Ready(())
    }
}

/// One task that waits for a packet. The door may have only this one to wake.
struct Receiving<'l>(&'l UdpLink);

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.0.sides().wake();
    }
}

impl UdpLink {
    pub(super) async fn open(outside: &dyn Outside, wanted: UdpWanted) -> Result<(Self, SocketAddr), ErrorCode> {
        let opened = door::open(outside, &Opening::Udp(wanted)).await;
        let (reader, writer) = opened.map_err(|_| ErrorCode::NewSocketLimit)?;
        let sides = Sides {
            reader,
            writer: Some(writer),
            waiting: VecDeque::new(),
            answer: None,
            end: None,
            waiters: Vec::new(),
        };
        let link = Self(Arc::new(Mutex::new(sides)));
        match link.answer().await? {
            Some(local) => Ok((link, local)),
            None => Err(ErrorCode::Unknown),
        }
    }

    pub(super) fn sides(&self) -> MutexGuard<'_, Sides> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self) -> Result<Option<SocketAddr>, ErrorCode> {
        std::future::poll_fn(|context| self.sides().poll_answer(context)).await
    }

    /// Sends a packet.
    pub(super) async fn send(&self, to: SocketAddr, data: Vec<u8>) -> Result<(), ErrorCode> {
        self.ask(&UdpWants::Send(Some(to), Blob(data))).await.map(drop)
    }

    /// Waits for a packet. A task that gives up leaves it to the others.
    pub(super) async fn receive(&self) -> Result<(SocketAddr, Vec<u8>), ErrorCode> {
        let _waits = Receiving(self);
        std::future::poll_fn(|context| {
            let mut sides = self.sides();
            ready!(sides.poll_packet(context));
            Poll::Ready(match (sides.waiting.pop_front(), sides.end) {
                (Some(packet), _) => Ok(packet),
                (None, code) => Err(code.unwrap_or(ErrorCode::Unknown)),
            })
        })
        .await
    }

    /// Asks the host to do this.
    pub(super) async fn ask(&self, wants: &UdpWants) -> Result<Option<SocketAddr>, ErrorCode> {
        let taken = self.sides().writer.take();
        let Some(mut writer) = taken else { return Err(ErrorCode::ConnectionAborted) };
        let mut is_sent = false;
        let answer = {
            // The host may only read on once its packets are read, so this does both at once.
            let mut sending = std::pin::pin!(writer.message(wants));
            std::future::poll_fn(|context| {
                if !is_sent {
                    match sending.as_mut().poll(context) {
                        Poll::Ready(Ok(())) => is_sent = true,
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(ErrorCode::ConnectionAborted)),
                        Poll::Pending => {}
                    }
                }
                self.sides().poll_answer(context)
            })
            .await
        };
        if is_sent {
            self.sides().writer = Some(writer);
        }
        answer
    }
}

/// True for an address that a socket of this family sends to.
pub(super) fn is_remote(to: SocketAddr, family: IpAddressFamily) -> bool {
    sockets::is_remote(to, family == IpAddressFamily::Ipv6)
}
