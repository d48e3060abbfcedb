//! The definitions in this component's memory. The only unsafe code: it reads where the host put
//! them, behind everything that the linker and the allocator know.
#![allow(unsafe_code)]

/// Where the definitions are. `toolcell add` looks for the first bytes of this in the component, and
/// writes the two numbers behind them.
#[repr(C)]
struct Place {
    magic: [u8; 16],
    address: u32,
    length: u32,
}

/// The number that stands there until then.
const NOWHERE: u32 = u32::MAX;

#[used]
static PLACE: Place = Place { magic: *b"toolcell.bridge\x01", address: NOWHERE, length: NOWHERE };

/// The definitions; empty in a component that has none.
pub fn embedded() -> &'static [u8] {
    // SAFETY: both are initialized members of a static. They are read as they stand in memory,
    // because the compiler only knows what they were before `toolcell add`.
    let (address, length) = unsafe {
        (std::ptr::read_volatile(&raw const PLACE.address), std::ptr::read_volatile(&raw const PLACE.length))
    };
    if address == NOWHERE || length == NOWHERE {
        return &[];
    }
    let (Ok(address), Ok(length)) = (usize::try_from(address), usize::try_from(length)) else { return &[] };
    // SAFETY: `toolcell add` made the memory larger by these pages, and initialized them by a data
    // segment of the module. The allocator begins behind them: it grows the memory from its size at
    // the start. So nothing writes there while the component runs.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), length) }
}
