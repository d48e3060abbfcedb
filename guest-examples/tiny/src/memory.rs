//! Memory for what the host passes in, only ever handed out: an instance lives for one call, so nothing is given
//! back. Must hold nothing but that, and the panic and allocation hooks that every crate without the standard
//! library needs.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::Cell;

/// Bytes of one page of WebAssembly memory, by its specification.
const PAGE_BYTES: usize = 65_536;

struct Bump {
    /// Address of the first free byte; 0 before the first block.
    next: Cell<usize>,
}

// SAFETY: a component instance has one thread.
unsafe impl Sync for Bump {}

#[global_allocator]
static BUMP: Bump = Bump { next: Cell::new(0) };

unsafe extern "C" {
    /// The linker's mark for the first byte after static data and stack.
    static __heap_base: u8;
}

// SAFETY: every block is aligned as asked, lies in memory that is there, and is handed out once.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let first = match self.next.get() {
            0 => (&raw const __heap_base).addr(),
            next => next,
        };
        let align_mask = layout.align() - 1;
        let start = first.wrapping_add(align_mask) & !align_mask;
        let stop = start.wrapping_add(layout.size());
        let end = wasm32::memory_size::<0>().wrapping_mul(PAGE_BYTES);
        if stop < start || (stop > end && wasm32::memory_grow::<0>((stop - end).div_ceil(PAGE_BYTES)) == usize::MAX) {
            return core::ptr::null_mut();
        }
        self.next.set(stop);
        core::ptr::with_exposed_provenance_mut(start)
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

/// What the host calls to place arguments in this memory. It never makes a block larger or smaller, as the
/// contract passes only strings in UTF-8.
#[unsafe(no_mangle)]
extern "C" fn cabi_realloc(_old: *mut u8, _old_bytes: usize, align: usize, bytes: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(bytes, align) else { wasm32::unreachable() };
    // SAFETY: the layout is valid.
    let block = unsafe { BUMP.alloc(layout) };
    if block.is_null() {
        wasm32::unreachable()
    }
    block
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}
