//! Signals to a host, and its end.
use std::process::ExitStatus;
use std::time::Instant;

use super::TestHost;
use crate::Folder;
use crate::command::Finished;
use crate::patience;

impl TestHost {
    /// Asks the host to end (SIGTERM).
    ///
    /// # Panics
    /// If the process is gone.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks the host to check its files (SIGHUP).
    ///
    /// # Panics
    /// If the process is gone.
    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    /// Stops the process until [`TestHost::resume`]. Events meanwhile look simultaneous to it.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Resumes the process.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        for replica in self.replicas() {
            rustix::process::kill_process(rustix::process::Pid::from_child(&replica.child), signal).unwrap();
        }
    }

    /// Closes the input, waits until the host has ended, and returns its folder. Another host can
    /// then start in it.
    ///
    /// # Panics
    /// If it does not end in time.
    #[must_use]
    pub fn ends_leaving_its_folder(mut self) -> Folder {
        self.close_input();
        while self.read_line(patience()).is_some() {}
        self.wait();
        std::mem::replace(&mut self.folder, Folder::with_manifest(""))
    }

    /// Kills the host, as the kernel does when memory runs out, and returns its folder.
    ///
    /// # Panics
    /// If that cannot be done.
    #[must_use]
    pub fn is_killed_leaving_its_folder(mut self) -> Folder {
        self.signal(rustix::process::Signal::KILL);
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder::with_manifest(""))
    }

    /// Waits until the host has ended by itself, and returns the output that was not received yet.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn ends(mut self) -> Finished {
        if self.is_bridged() {
            self.close_input();
        }
        let mut stdout: String = self.kept().iter().map(|frame| format!("{frame}\n")).collect();
        while let Some(line) = self.read_line(patience()) {
            stdout.push_str(&String::from_utf8(line).unwrap());
        }
        let status = self.wait();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        Finished { status, stdout, stderr: self.said() }
    }

    /// Waits until the process has ended, and all others behind its address. Returns the status of
    /// one that failed, if one did.
    fn wait(&mut self) -> ExitStatus {
        if self.is_bridged() {
            // Its clients have left. Replicas wait for others.
            self.terminate();
        }
        let others: Vec<ExitStatus> =
            self.balanced.iter_mut().flat_map(|balanced| &mut balanced.others).map(Self::wait_alone).collect();
        let own = self.wait_alone();
        others.into_iter().find(|status| !status.success()).unwrap_or(own)
    }

    fn wait_alone(&mut self) -> ExitStatus {
        let end = Instant::now() + patience();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "stdout is closed and the host does not end\n{}", self.said.text());
            std::thread::yield_now();
        }
    }
}
