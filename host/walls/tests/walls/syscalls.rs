//! Any system call.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_long};
use std::io;

/// A system call with numbers or addresses as arguments.
pub(crate) fn call(number: c_long, arguments: [usize; 6]) -> io::Result<usize> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: an attempt is what an attacker with native code does: nothing is sound by intent. It
    // runs in a process that holds nothing else and ends after it.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The address of a text, as an argument.
pub(crate) fn text(text: &CStr) -> usize {
    text.as_ptr().addr()
}

/// Writes to every page of memory that a call has given.
pub(crate) fn fill(address: usize, bytes: usize) {
    for page in (0..bytes).step_by(4096) {
        // SAFETY: the caller has just been given these bytes by the kernel, writable.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address + page).write_volatile(1) };
    }
}

/// A call by the table of 32-bit programs, which has other numbers: 11 is `execve` there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_of_32_bits(number: u32) -> io::Result<()> {
    // SAFETY: as in `call`. The instruction changes `rax` and, by old kernels, `r8` to `r11`.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("eax") number => _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    Ok(())
}

/// Reads from an address that nothing is mapped at.
pub(crate) fn fault() -> io::Result<()> {
    // SAFETY: the fault is the point. The kernel ends the process here.
    unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() };
    Ok(())
}
