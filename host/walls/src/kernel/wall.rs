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
        match self {
            Self::NoNewPrivileges => "no-new-privileges",
            Self::DiesWithHost => "dies-with-host",
            Self::UserNamespace => "user-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::NotDumpable => "not-dumpable",
            Self::FixedCode => "fixed-code",
            Self::SystemCalls => "system-calls",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::Processes => "processes",
            Self::Threads => "threads",
            Self::Core => "core",
        }
    }

    /// One sentence for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NoNewPrivileges => "nothing it starts gains rights",
            Self::DiesWithHost => "it is killed when the host ends",
            Self::UserNamespace => "users and groups of its own",
            Self::MountNamespace => "an empty root folder",
            Self::NetworkNamespace => "no network interface",
            Self::IpcNamespace => "shared memory and message queues of its own",
            Self::PidNamespace => "process ids of its own",
            Self::Capabilities => "no capability, and no way to one",
            Self::Landlock => "files of granted folders only, no TCP, no signals to others",
            Self::NotDumpable => "other processes of the user cannot trace or read it",
            Self::FixedCode => "no memory becomes executable",
            Self::SystemCalls => "a short list of system calls, any other ends it",
            Self::Memory => "a bound on its memory",
            Self::Files => "a bound on its open files and their size",
            Self::Processes => "it starts no process",
            Self::Threads => "a bound on its threads",
            Self::Core => "no core dump",
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
