//! The walls that the kernel puts around a process. Must not hold: links, or how processes start.
