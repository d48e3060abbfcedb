//! The walls by name.

use std::fmt;

/// A wall that the kernel can put around a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wall {
    /// Nothing that the process starts gains rights.
    NoNewPrivileges,
    /// The process is killed when the host ends.
    DiesWithHost,
    /// A user namespace of its own.
    UserNamespace,
    /// A mount namespace of its own, whose root is empty.
    MountNamespace,
    /// A network namespace of its own, without an interface that is up.
    NetworkNamespace,
    /// A namespace of its own for shared memory and message queues.
    IpcNamespace,
    /// A namespace of its own for process ids.
    PidNamespace,
    /// No capability, and no way to gain one.
    Capabilities,
    /// Landlock: files below granted folders, no TCP, no signal to others.
    Landlock,
    /// Neither traced nor dumped nor read by other processes of the user.
    NotDumpable,
    /// No more memory becomes executable.
    FixedCode,
    /// A short list of system calls; any other ends the process.
    SystemCalls,
    /// A bound on the memory that the process may write to.
    Memory,
    /// A bound on open descriptors, and on the length of files.
    Files,
    /// No further process.
    Processes,
    /// A bound on threads.
    Threads,
    /// No core dump.
    Core,
}

impl Wall {
    /// Every wall, in the order in which reports name them.
    pub const ALL: [Self; 17] = [
        Self::NoNewPrivileges,
        Self::DiesWithHost,
        Self::UserNamespace,
        Self::MountNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::PidNamespace,
        Self::Capabilities,
        Self::Landlock,
        Self::NotDumpable,
        Self::FixedCode,
        Self::SystemCalls,
        Self::Memory,
        Self::Files,
        Self::Processes,
        Self::Threads,
        Self::Core,
    ];

    /// The name in reports: lower case, words joined by hyphens.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// One sentence for people.
    pub const fn meaning(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::NoNewPrivileges => ("no-new-privileges", "nothing it starts gains rights"),
            Self::DiesWithHost => ("dies-with-host", "it is killed when the host ends"),
            Self::UserNamespace => ("user-namespace", "users and groups of its own"),
            Self::MountNamespace => ("mount-namespace", "an empty root folder"),
            Self::NetworkNamespace => ("network-namespace", "no network interface"),
            Self::IpcNamespace => ("ipc-namespace", "shared memory and message queues of its own"),
            Self::PidNamespace => ("pid-namespace", "process ids of its own"),
            Self::Capabilities => ("capabilities", "no capability, and no way to one"),
            Self::Landlock => ("landlock", "files of granted folders only, no TCP, no signals to others"),
            Self::NotDumpable => ("not-dumpable", "other processes of the user cannot trace or read it"),
            Self::FixedCode => ("fixed-code", "no memory becomes executable"),
            Self::SystemCalls => ("system-calls", "a short list of system calls, any other ends it"),
            Self::Memory => ("memory", "a bound on its memory"),
            Self::Files => ("files", "a bound on its open files and their size"),
            Self::Processes => ("processes", "it starts no process"),
            Self::Threads => ("threads", "a bound on its threads"),
            Self::Core => ("core", "no core dump"),
        }
    }

    /// The wall of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wall| wall.name() == name)
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
