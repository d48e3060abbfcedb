//! A thread that sends calls to sandbox processes and dispatches their replies itself while it
//! polls for other things, so that no other thread is woken for them.
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use toolcell_walls::link::{Attending, Pace, Wait};

use super::process::{Dispatch, SandboxProcess};

/// Processes that one thread attends to at most. Further ones have their own tasks.
const PROCESSES_MAX: usize = 8;

/// Time without a call after which a process's own task dispatches its replies again.
const ATTENDS_FOR: Duration = Duration::from_millis(50);

/// While a thread polls for replies, it polls the other things it waits for at this interval.
const POLLS_EVERY: Duration = Duration::from_micros(20);

/// The same interval while replies arrive.
const ALSO_POLLS_EVERY: Duration = Duration::from_micros(200);

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The processes that this thread attends to.
#[derive(Default)]
struct Attention {
    processes: Vec<Attended>,
    pace: Pace,
}

struct Attended {
    process: Weak<SandboxProcess>,
    link: Attending<Dispatch>,
}

thread_local! {
    /// `None` on threads that do not wait this way.
    static ATTENTION: RefCell<Option<Attention>> = const { RefCell::new(None) };
}

/// From now on this thread attends to the processes that it sends calls to. It must call
/// [`wait_attending`] repeatedly, until it calls [`leave_attending`].
pub fn begin_attending() {
    ATTENTION.with_borrow_mut(|attention| {
        attention.get_or_insert_default();
    });
}

/// Lets other threads dispatch the replies again.
pub fn leave_attending() {
    drop(ATTENTION.take());
}

/// Waits until one of these is readable or has failed, and returns the state of each. Meanwhile it
/// dispatches messages of sandbox processes, and then calls `work`, since tasks may be ready.
///
/// # Errors
/// An error of `poll`.
pub fn wait_attending(fds: &[BorrowedFd<'_>], mut work: impl FnMut()) -> Result<Vec<PollFlags>, Errno> {
    let mut wait: Option<Wait> = None;
    let mut polled = Instant::now();
    loop {
        match ATTENTION.with_borrow_mut(|attention| turn(attention.as_mut(), fds, &mut wait, &mut polled))? {
            AttentionTurn::Ready(flags) => return Ok(flags),
            AttentionTurn::HandedOut => work(),
            AttentionTurn::Nothing => {}
        }
    }
}

/// True if this thread will dispatch the replies of this process. It must wait for them later.
pub(super) fn attends(process: &Arc<SandboxProcess>) -> bool {
    ATTENTION.with_borrow_mut(|attention| {
        let Some(attention) = attention else { return false };
        let own = Arc::as_ptr(process);
        if attention.processes.iter().any(|attended| attended.process.as_ptr() == own) {
            return true;
        }
        if attention.processes.len() == PROCESSES_MAX {
            return false;
        }
        let Some(link) = process.dispatcher().and_then(Attending::begin) else { return false };
        attention.processes.push(Attended { process: Arc::downgrade(process), link });
        true
    })
}

/// One turn of waiting.
enum AttentionTurn {
    /// One of the descriptors is ready.
    Ready(Vec<PollFlags>),
    /// A message of a process was dispatched.
    HandedOut,
    /// Nothing yet.
    Nothing,
}

fn turn(
    attention: Option<&mut Attention>,
    fds: &[BorrowedFd<'_>],
    wait: &mut Option<Wait>,
    polled: &mut Instant,
) -> Result<AttentionTurn, Errno> {
    let Some(attention) = attention.filter(|attention| !attention.processes.is_empty()) else {
        let mut polls = watched(fds, &[]);
        poll(&mut polls, None)?;
        return Ok(AttentionTurn::Ready(polls.iter().map(PollFd::revents).collect()));
    };
    // A process that sends without end must not hold up anything else.
    if polled.elapsed() >= ALSO_POLLS_EVERY {
        *polled = Instant::now();
        let mut polls = watched(fds, &[]);
        if poll(&mut polls, Some(&NO_WAIT))? > 0 {
            return Ok(AttentionTurn::Ready(polls.iter().map(PollFd::revents).collect()));
        }
    }
    let turn = attention.turn(fds, wait, polled)?;
    if matches!(turn, AttentionTurn::HandedOut)
        && let Some(wait) = wait.take()
    {
        attention.pace.ended(&wait, Instant::now());
    }
    Ok(turn)
}

impl Attention {
    fn turn(
        &mut self,
        fds: &[BorrowedFd<'_>],
        wait: &mut Option<Wait>,
        polled: &mut Instant,
    ) -> Result<AttentionTurn, Errno> {
        if self.hand_out(Attending::poll) {
            return Ok(AttentionTurn::HandedOut);
        }
        let calls = self.processes.iter().any(Attended::has_calls);
        if calls {
            let wait = wait.get_or_insert_with(|| self.pace.wait(Instant::now()));
            if wait.polls() && self.pace.stays(wait) {
                let now = Instant::now();
                if now.saturating_duration_since(*polled) < POLLS_EVERY {
                    return Ok(AttentionTurn::Nothing);
                }
                *polled = now;
                return self.poll(fds, Some(&NO_WAIT));
            }
        }
        // Asks to be woken before the last poll, then sleeps.
        if self.hand_out(Attending::arm) {
            return Ok(AttentionTurn::HandedOut);
        }
        if calls {
            return self.poll(fds, None);
        }
        let timeout = Timespec::try_from(ATTENDS_FOR).ok();
        let turn = self.poll(fds, timeout.as_ref())?;
        if matches!(turn, AttentionTurn::Nothing) {
            self.processes.clear();
        }
        Ok(turn)
    }

    /// Dispatches the processes' messages. True if there was one.
    fn hand_out(
        &mut self,
        look: impl Fn(&Attending<Dispatch>) -> Result<bool, toolcell_walls::link::LinkError>,
    ) -> bool {
        let mut came = false;
        // The process's own task handles a link that ended.
        self.processes.retain(|attended| match look(&attended.link) {
            Ok(something) => {
                came |= something;
                true
            }
            Err(_) => {
                came = true;
                false
            }
        });
        came
    }

    /// Polls the descriptors and the links.
    fn poll(&mut self, fds: &[BorrowedFd<'_>], timeout: Option<&Timespec>) -> Result<AttentionTurn, Errno> {
        let mut polls = watched(fds, &self.processes);
        if poll(&mut polls, timeout)? == 0 {
            return Ok(AttentionTurn::Nothing);
        }
        let flags: Vec<_> = polls.iter().map(PollFd::revents).collect();
        drop(polls);
        let (awaited, links) = flags.split_at_checked(fds.len()).unwrap_or_default();
        let came = links.iter().any(|flags| !flags.is_empty()) && self.hand_out(Attending::read);
        // A descriptor is still ready in the next turn.
        if came { Ok(AttentionTurn::HandedOut) } else { Ok(Self::ready(awaited)) }
    }

    fn ready(awaited: &[PollFlags]) -> AttentionTurn {
        if awaited.iter().all(|flags| flags.is_empty()) {
            return AttentionTurn::Nothing;
        }
        AttentionTurn::Ready(awaited.to_vec())
    }
}

impl Attended {
    fn has_calls(&self) -> bool {
        self.process.upgrade().is_some_and(|process| process.load() > 0)
    }
}

fn watched<'fd>(fds: &[BorrowedFd<'fd>], processes: &'fd [Attended]) -> Vec<PollFd<'fd>> {
    let fds = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
    let links = processes.iter().map(|attended| PollFd::from_borrowed_fd(attended.link.socket(), PollFlags::IN));
    fds.chain(links).collect()
}
