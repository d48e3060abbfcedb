//! Small frames passed through shared memory, without a system call.
//!
//! Each direction has a ring. Its numbers are written by one side and read by the other:
//!
//! | number | writes | is |
//! |---|---|---|
//! | `TAIL` | the sender | the end of what was put in, in words since the beginning |
//! | `HEAD` | the receiver | the end of what was taken out |
//! | `ASLEEP` | both | 1 while the receiver wants to be woken over the socket |
//! | `TAKEN` | the receiver | frames that it took from the *socket* |
//!
//! A frame is one word with its length in bytes, and its bytes in whole words. The other side may
//! write anything anywhere at any time. So each side keeps its own position to itself, reads a
//! number of the other only once, checks it against the size of the ring, and copies bytes out
//! before anything uses them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering, fence},
};

use super::{LinkError, memory::Memory};

/// Words of one ring: 32 KiB, about 250 frames of 100 bytes. More goes over the socket.
const RING_WORDS: usize = 4096;

/// Bytes of a frame in a ring: an eighth of it, so that a few large frames do not fill it.
pub(super) const RING_FRAME_BYTES_MAX: usize = 4096;

/// The numbers before each ring, each on a cache line of its own.
const LINE_WORDS: usize = 8;
const TAIL: usize = 0;
const HEAD: usize = LINE_WORDS;
const ASLEEP: usize = 2 * LINE_WORDS;
const TAKEN: usize = 3 * LINE_WORDS;
const BEGIN: usize = 4 * LINE_WORDS;

const DIRECTION_WORDS: usize = BEGIN + RING_WORDS;

/// Words of both directions.
pub(super) const MEMORY_WORDS: usize = 2 * DIRECTION_WORDS;

const WORD_BYTES: usize = size_of::<u64>();

/// One direction.
#[derive(Debug)]
struct Direction {
    memory: Arc<Memory>,
    first: usize,
}

/// The end of a ring that puts frames in.
#[derive(Debug)]
pub(super) struct Outlet {
    direction: Direction,
    tail: u64,
}

/// The end of a ring that takes frames out.
#[derive(Debug)]
pub(super) struct Inlet {
    direction: Direction,
    head: u64,
    taken: u64,
    /// Frames that were taken out of the ring.
    popped: u64,
    /// Number of wake-ups by the other side.
    woken: u64,
    armed: bool,
}

/// The rings of one side. The process that made the memory sends in the first direction.
pub(super) fn ends(memory: Memory, made: bool) -> (Outlet, Inlet) {
    let memory = Arc::new(memory);
    let direction =
        |second: bool| Direction { memory: memory.clone(), first: if second { DIRECTION_WORDS } else { 0 } };
    (Outlet { direction: direction(!made), tail: 0 }, Inlet::new(direction(made)))
}

impl Direction {
    fn number(&self, at: usize) -> Result<&AtomicU64, LinkError> {
        self.memory.words().get(self.first + at).ok_or(LinkError::Memory)
    }

    /// The words of the ring from a position on, wrapping around at its end.
    fn words(&self, at: u64) -> Result<impl Iterator<Item = &AtomicU64>, LinkError> {
        let begin = self.first + BEGIN;
        let ring = self.memory.words().get(begin..begin + RING_WORDS);
        let offset = usize::try_from(at % RING_WORDS as u64).unwrap_or(0);
        let (front, back) = ring.and_then(|ring| ring.split_at_checked(offset)).ok_or(LinkError::Memory)?;
        Ok(back.iter().chain(front))
    }
}

impl Outlet {
    /// Words that were put in so far.
    pub(super) fn position(&self) -> u64 {
        self.tail
    }

    /// True if the receiver took this many frames from the socket. Then no frame on the socket can
    /// be overtaken.
    pub(super) fn socket_is_taken(&self, sent: u64) -> bool {
        self.direction.number(TAKEN).is_ok_and(|taken| taken.load(Ordering::Acquire) == sent)
    }

    /// Puts a frame in. False if there is no room now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, LinkError> {
        let head = self.direction.number(HEAD)?.load(Ordering::Acquire);
        let used = self.tail.checked_sub(head).and_then(|used| usize::try_from(used).ok());
        let free = used.and_then(|used| RING_WORDS.checked_sub(used)).ok_or(LinkError::Memory)?;
        let needed = 1 + bytes.len().div_ceil(WORD_BYTES);
        if needed > free || bytes.len() > RING_FRAME_BYTES_MAX {
            return Ok(false);
        }
        let length = std::iter::once(bytes.len() as u64);
        let body = bytes.chunks(WORD_BYTES).map(word);
        let words = self.direction.words(self.tail)?;
        for (to, from) in words.zip(length.chain(body)) {
            to.store(from, Ordering::Relaxed);
        }
        self.tail += needed as u64;
        self.direction.number(TAIL)?.store(self.tail, Ordering::Release);
        Ok(true)
    }

    /// After a push: true if the receiver must be woken. It is true once for each time that the
    /// receiver goes to sleep.
    pub(super) fn must_wake(&self) -> Result<bool, LinkError> {
        // Either this side sees that the receiver goes to sleep, or the receiver sees the frame.
        fence(Ordering::SeqCst);
        let asleep = self.direction.number(ASLEEP)?;
        Ok(asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0)
    }
}

impl Inlet {
    fn new(direction: Direction) -> Self {
        Self { direction, head: 0, taken: 0, popped: 0, woken: 0, armed: false }
    }

    /// Words that were taken out so far.
    pub(super) fn position(&self) -> u64 {
        self.head
    }

    /// Takes the next frame out.
    pub(super) fn pop(&mut self) -> Result<Option<Vec<u8>>, LinkError> {
        let tail = self.direction.number(TAIL)?.load(Ordering::Acquire);
        let there = tail.wrapping_sub(self.head);
        if there == 0 {
            return Ok(None);
        }
        let mut words = self.direction.words(self.head)?;
        let length = words.next().ok_or(LinkError::Memory)?.load(Ordering::Relaxed);
        let length = usize::try_from(length).map_err(|_| LinkError::Memory)?;
        let needed = 1 + length.min(RING_FRAME_BYTES_MAX).div_ceil(WORD_BYTES) as u64;
        if length > RING_FRAME_BYTES_MAX || there > RING_WORDS as u64 || needed > there {
            return Err(LinkError::Memory);
        }
        let mut bytes = Vec::with_capacity(length.next_multiple_of(WORD_BYTES));
        for word in words.take(length.div_ceil(WORD_BYTES)) {
            bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes.truncate(length);
        self.head += needed;
        self.popped += 1;
        self.direction.number(HEAD)?.store(self.head, Ordering::Release);
        self.disarm()?;
        Ok(Some(bytes))
    }

    /// True if there is something to take out.
    pub(super) fn has_more(&mut self) -> Result<bool, LinkError> {
        Ok(self.direction.number(TAIL)?.load(Ordering::Acquire) != self.head)
    }

    /// Asks to be woken for the next frame. The caller must [`pop`](Self::pop) again after this
    /// before it sleeps.
    pub(super) fn arm(&mut self) -> Result<(), LinkError> {
        self.armed = true;
        self.direction.number(ASLEEP)?.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Asks not to be woken, while polling.
    pub(super) fn disarm(&mut self) -> Result<(), LinkError> {
        if std::mem::replace(&mut self.armed, false) {
            self.direction.number(ASLEEP)?.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// After a wake-up over the socket. There are at most as many as frames.
    pub(super) fn was_woken(&mut self) -> Result<(), LinkError> {
        self.woken += 1;
        let put_in = self.popped + RING_WORDS as u64;
        if self.woken > put_in { Err(LinkError::Memory) } else { Ok(()) }
    }

    /// After a frame was taken from the socket.
    pub(super) fn took_from_socket(&mut self) -> Result<(), LinkError> {
        self.taken += 1;
        self.direction.number(TAKEN)?.store(self.taken, Ordering::Release);
        Ok(())
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    struct RingPair {
        out: Outlet,
        into: Inlet,
    }

    fn pair() -> RingPair {
        let (memory, file) = Memory::new(MEMORY_WORDS).unwrap();
        let (out, _) = ends(memory, true);
        let (_, into) = ends(Memory::of(&file, MEMORY_WORDS).unwrap(), false);
        RingPair { out, into }
    }

    fn frame(number: usize) -> Vec<u8> {
        (0..number * 37 % 300).map(|at| (at + number) as u8).collect()
    }

    #[test]
    fn frames_come_out_as_they_went_in_many_times_around() {
        let RingPair { mut out, mut into } = pair();
        let mut sent = 0;
        let mut came = 0;
        while came < 20_000 {
            while out.push(&frame(sent)).unwrap() {
                sent += 1;
            }
            while let Some(bytes) = into.pop().unwrap() {
                assert_eq!(bytes, frame(came));
                came += 1;
            }
            assert_eq!(came, sent);
        }
        assert_eq!(out.position(), into.position());
    }

    #[test]
    fn the_largest_frame_fits_and_one_byte_more_does_not() {
        let RingPair { mut out, mut into } = pair();
        assert!(!out.push(&[1; RING_FRAME_BYTES_MAX + 1]).unwrap());
        assert!(out.push(&[1; RING_FRAME_BYTES_MAX]).unwrap());
        assert_eq!(into.pop().unwrap().unwrap(), [1; RING_FRAME_BYTES_MAX]);
    }

    #[test]
    fn two_threads_lose_nothing() {
        const FRAMES: usize = 50_000;
        let RingPair { mut out, mut into } = pair();
        let sender = std::thread::spawn(move || {
            for number in 0..FRAMES {
                while !out.push(&frame(number)).unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..FRAMES {
            let bytes = loop {
                match into.pop().unwrap() {
                    Some(bytes) => break bytes,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(bytes, frame(number));
        }
        sender.join().unwrap();
    }

    #[test]
    fn a_receiver_that_sleeps_is_woken_once() {
        let RingPair { mut out, mut into } = pair();
        out.push(b"a").unwrap();
        assert!(!out.must_wake().unwrap());
        into.arm().unwrap();
        out.push(b"b").unwrap();
        assert_eq!((out.must_wake(), out.must_wake()), (Ok(true), Ok(false)));
        into.arm().unwrap();
        into.pop().unwrap();
        out.push(b"c").unwrap();
        assert_eq!(out.must_wake(), Ok(false), "it is awake");
    }

    #[test]
    fn wakes_for_nothing_are_counted() {
        let mut into = pair().into;
        assert!((0..RING_WORDS).all(|_| into.was_woken().is_ok()));
        assert_eq!(into.was_woken(), Err(LinkError::Memory));
    }

    /// The other side writes any number in any place.
    #[test]
    fn a_lying_sender_is_found_out() {
        let far = RING_WORDS as u64 + 1;
        for (tail, length) in [
            (far, 8),
            (u64::MAX, 8),
            (1 << 63, 0),
            (1, 1),
            (2, 9),
            (512, RING_FRAME_BYTES_MAX as u64),
            (far - 1, RING_FRAME_BYTES_MAX as u64 + 1),
            (far - 1, u64::MAX),
        ] {
            let RingPair { out, mut into } = pair();
            out.direction.number(BEGIN).unwrap().store(length, Ordering::Relaxed);
            out.direction.number(TAIL).unwrap().store(tail, Ordering::Relaxed);
            assert_eq!(into.pop(), Err(LinkError::Memory), "tail {tail}, length {length}");
        }
    }

    #[test]
    fn a_sender_that_goes_back_is_found_out() {
        let RingPair { mut out, mut into } = pair();
        out.push(b"a frame of some words").unwrap();
        into.pop().unwrap().unwrap();
        out.direction.number(TAIL).unwrap().store(1, Ordering::Relaxed);
        assert_eq!(into.pop(), Err(LinkError::Memory));
    }

    #[test]
    fn a_lying_receiver_is_found_out() {
        for head in [2, u64::MAX, 1 << 63] {
            let RingPair { mut out, into } = pair();
            into.direction.number(HEAD).unwrap().store(head, Ordering::Relaxed);
            assert_eq!(out.push(b"a"), Err(LinkError::Memory), "head {head}");
        }
        let RingPair { mut out, into } = pair();
        while out.push(&[0; 1000]).unwrap() {}
        into.direction.number(HEAD).unwrap().store(0, Ordering::Relaxed);
        assert_eq!(out.push(&[0; 1000]), Ok(false), "what nobody took stays");
    }

    #[test]
    fn bytes_that_change_meanwhile_are_copied_once() {
        let RingPair { mut out, mut into } = pair();
        out.push(&[1; 64]).unwrap();
        let bytes = into.pop().unwrap().unwrap();
        for word in out.direction.words(0).unwrap() {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(bytes, [1; 64]);
    }

    #[test]
    fn memory_that_can_shrink_or_has_another_size_is_refused() {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, (MEMORY_WORDS * WORD_BYTES) as u64).unwrap();
        assert!(Memory::of(&file, MEMORY_WORDS).is_err());
        let (_memory, file) = Memory::new(MEMORY_WORDS).unwrap();
        assert!(Memory::of(&file, MEMORY_WORDS + 1).is_err());
        assert!(ftruncate(&file, 0).is_err(), "the size is sealed");
    }
}
