//! Random bytes. Holds nothing of what they are for.

#[cfg(target_arch = "wasm32")]
#[allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: r"
            package example:mail;
            world random {
                import wasi:random/random@0.2.12;
            }
        ",
        path: "../../wit",
        world: "example:mail/random",
        generate_all,
    });
}

/// Fills this with random bytes of the host; false where there are none.
#[cfg(target_arch = "wasm32")]
pub fn fill(bytes: &mut [u8]) -> bool {
    let count = u64::try_from(bytes.len()).unwrap_or(0);
    let random = bindings::wasi::random::random::get_random_bytes(count);
    let is_whole = random.len() == bytes.len();
    bytes.iter_mut().zip(random).for_each(|(to, from)| *to = from);
    is_whole
}

/// The system's, for tests outside a component.
#[cfg(not(target_arch = "wasm32"))]
pub fn fill(bytes: &mut [u8]) -> bool {
    use std::io::Read as _;
    std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes)).is_ok()
}
