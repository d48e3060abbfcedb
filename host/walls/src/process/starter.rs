//! The thread that starts processes, reads their last words and reaps them.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        mpsc::{self, TryRecvError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionbio,
};
use tokio::sync::oneshot;

use super::{
    Command, Process, Program,
    handle::{Running, Runs},
    together::Together,
    words::Words,
};
use crate::link;

/// When the starter is dropped, killed processes have this long to end. One that the kernel itself
/// holds up is left to it.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// How often the thread polls for ended processes, on systems that do not notify.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Starts processes, all from one thread that lives as long as this value: the kernel ends a
/// process with the *thread* that started it, if the process asks for that.
///
/// Dropping it kills and reaps every process that it started.
#[derive(Debug)]
pub struct Starter {
    requests: Option<mpsc::Sender<StartRequest>>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct StartRequest {
    command: Command,
    reply: oneshot::Sender<io::Result<(Process, OwnedFd)>>,
}

impl Starter {
    /// Starts the thread.
    pub fn new() -> io::Result<Self> {
        Self::with(None)
    }

    /// Starts the thread. If all processes together use more memory than this, it ends the largest.
    pub fn bounded(memory_bytes_max: u64) -> io::Result<Self> {
        Self::with(Some(Together::new(memory_bytes_max)))
    }

    fn with(together: Option<Together>) -> io::Result<Self> {
        let (requests, asked) = mpsc::channel();
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let room = StarterState { asked, woken, children: Vec::new(), together };
        let thread = thread::Builder::new().name("toolcell-walls".into()).spawn(|| room.run())?;
        Ok(Self { requests: Some(requests), wake, thread: Some(thread) })
    }

    /// Starts a process, or a thread instead. Returns it with this end of its link; a process has
    /// the other end as standard input.
    pub async fn start(&self, program: impl Into<Program>) -> io::Result<(Process, OwnedFd)> {
        let command = match program.into() {
            Program::Process(command) => command,
            Program::Thread(threads) => {
                let (thread, socket) = threads.start()?;
                return Ok((Process(Runs::Thread(thread)), socket));
            }
        };
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts processes has ended");
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(StartRequest { command, reply }).map_err(|_| gone())?;
        self.wake();
        answer.await.map_err(|_| gone())?
    }

    /// An error means that the thread is already awake, or gone.
    fn wake(&self) {
        let _ = (&self.wake).write(&[0]);
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.requests = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // The thread reported its own panic.
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct StarterState {
    asked: mpsc::Receiver<StartRequest>,
    woken: UnixStream,
    children: Vec<WatchedChild>,
    together: Option<Together>,
}

/// A child that was not reaped yet.
struct WatchedChild {
    child: Arc<Running>,
    words: Words,
}

impl StarterState {
    fn run(mut self) {
        while self.start_asked() {
            self.wait(None);
            self.reap();
            if let Some(together) = &mut self.together {
                together.poll(Instant::now(), self.children.iter().map(|child| child.child.as_ref()));
            }
        }
        self.end();
    }

    /// Starts the requested processes. False once there can be no more requests.
    fn start_asked(&mut self) -> bool {
        let mut drained = [0; 64];
        while matches!((&self.woken).read(&mut drained), Ok(count) if count > 0) {}
        loop {
            match self.asked.try_recv() {
                Ok(request) => {
                    let started = self.start(request.command);
                    // The caller has stopped waiting; dropping the process kills it.
                    let _ = request.reply.send(started);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn start(&mut self, command: Command) -> io::Result<(Process, OwnedFd)> {
        let (ours, theirs) = link::pair()?;
        let mut child = command.spawn(theirs)?;
        let stderr = child.take_stderr().filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        let child = Arc::new(Running::new(child));
        let words = Words::new(stderr);
        self.children.push(WatchedChild { child: child.clone(), words });
        Ok((Process(Runs::Process(child)), ours))
    }

    /// Waits for a request, output or an end, and reads output.
    fn wait(&mut self, until: Option<Instant>) {
        let now = Instant::now();
        let news = self.poll(now, until);
        let now = Instant::now();
        for (child, told) in self.children.iter_mut().zip(news) {
            if told {
                child.words.read(now);
            }
        }
    }

    /// True for each child, in their order, whose descriptor has events.
    fn poll(&self, now: Instant, until: Option<Instant>) -> Vec<bool> {
        let mut polled = vec![PollFd::new(&self.woken, PollFlags::IN)];
        let pidfds = self.children.iter().filter_map(|child| child.child.pidfd());
        polled.extend(pidfds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let first = polled.len();
        let pipes = || self.children.iter().map(|child| child.words.pipe(now));
        polled.extend(pipes().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        let ends = self.children.iter().filter_map(|child| child.words.paused_until());
        let unwatched = self.children.iter().any(|child| child.child.pidfd().is_none());
        let look = unwatched.then(|| now + POLL_EVERY);
        let together = self.together.as_ref().filter(|_| !self.children.is_empty()).map(Together::next);
        let wait = ends.chain(until).chain(look).chain(together).min().map(|end| end.saturating_duration_since(now));
        // A failure is like a wake-up: the loop polls, and waits again.
        let _ = poll(&mut polled, wait.and_then(|wait| Timespec::try_from(wait).ok()).as_ref());
        let mut told = polled.iter().skip(first).map(|polled| !polled.revents().is_empty());
        pipes().map(|pipe| pipe.is_some() && told.next() == Some(true)).collect()
    }

    /// Reaps the children that have ended.
    fn reap(&mut self) {
        self.children.retain_mut(|child| {
            let status = match child.child.reap() {
                Ok(None) => return true,
                Ok(status) => status,
                Err(_) => None,
            };
            child.child.set_end(status, child.words.finish());
            false
        });
    }

    /// Kills and reaps every child.
    fn end(&mut self) {
        self.children.iter().for_each(|child| child.child.kill());
        let until = Instant::now() + END_TIME_MAX;
        while !self.children.is_empty() && Instant::now() < until {
            self.wait(Some(until));
            self.reap();
        }
    }
}
