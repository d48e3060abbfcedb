//! Components of any size: a working component, and next to it a core module of many functions.
//! Compiling it takes as long as compiling a program of that size. Nothing calls the functions.

/// Approximate bytes of one function's body: the average that a compiler emits for a large program.
const FUNCTION_BYTES: usize = 400;

/// Locals of a function, its two parameters among them.
const LOCALS: u64 = 8;

/// The id of a component's section with a core module, by the component model's binary format.
const CORE_MODULE: u8 = 1;

/// The component with that many further bytes of code.
#[must_use]
pub fn with_code(component: &[u8], code_bytes: usize) -> Vec<u8> {
    let mut grown = component.to_vec();
    push_section(&mut grown, CORE_MODULE, &module((code_bytes / FUNCTION_BYTES).max(1)));
    grown
}

/// A core module of this many functions.
fn module(functions: usize) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    // One type, (i32, i32) -> i32, which every function has; one memory of one page.
    push_section(&mut module, 1, &[1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f]);
    let mut types = leb(functions as u64);
    types.extend(std::iter::repeat_n(0, functions));
    push_section(&mut module, 3, &types);
    push_section(&mut module, 5, &[1, 0, 1]);
    let mut code = leb(functions as u64);
    let mut random = Random(1);
    for _ in 0..functions {
        let body = body(functions as u64, &mut random);
        code.extend(leb(body.len() as u64));
        code.extend(body);
    }
    push_section(&mut module, 10, &code);
    module
}

/// A function's locals and instructions.
fn body(functions: u64, random: &mut Random) -> Vec<u8> {
    let mut body = vec![1];
    body.extend(leb(LOCALS - 2));
    body.push(0x7f);
    while body.len() < FUNCTION_BYTES {
        push_step(&mut body, functions, random);
    }
    body.extend([0x20, 2, 0x0b]);
    body
}

/// One step as programs have them: compute, load, store, branch or call. Leaves nothing on the
/// stack.
fn push_step(body: &mut Vec<u8>, functions: u64, random: &mut Random) {
    let [one, other, to] = [0; 3].map(|_: u8| random.byte_below(LOCALS));
    match random.below(10) {
        // i32.load of a masked address
        0 => body.extend([0x20, one, 0x41, 0xff, 0x01, 0x71, 0x28, 2, 0, 0x21, to]),
        // i32.store
        1 => body.extend([0x20, one, 0x41, 0xff, 0x01, 0x71, 0x20, other, 0x36, 2, 0]),
        // block … br_if … end
        2 => body.extend([0x02, 0x40, 0x20, one, 0x0d, 0, 0x20, other, 0x45, 0x21, to, 0x0b]),
        3 => {
            body.extend([0x20, one, 0x20, other, 0x10]);
            body.extend(leb(random.below(functions)));
            body.extend([0x21, to]);
        }
        // add, sub, mul, and, or, xor
        _ => {
            let operation = [0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73];
            let chosen = operation.get(usize::from(random.byte_below(6))).copied().unwrap_or(0x6a);
            body.extend([0x20, one, 0x20, other, chosen, 0x21, to]);
        }
    }
}

fn push_section(binary: &mut Vec<u8>, id: u8, content: &[u8]) {
    binary.push(id);
    binary.extend(leb(content.len() as u64));
    binary.extend(content);
}

/// An unsigned number in LEB128.
fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A pseudorandom sequence (xorshift64), equal in every run.
struct Random(u64);

impl Random {
    const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn byte_below(&mut self, bound: u64) -> u8 {
        u8::try_from(self.below(bound)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION_BYTES, leb, with_code};

    #[test]
    fn numbers_are_written_seven_bits_at_a_time() {
        assert_eq!([leb(0), leb(127), leb(128), leb(624_485)].concat(), [0, 127, 128, 1, 0xe5, 0x8e, 0x26]);
    }

    #[test]
    fn a_component_grows_by_what_is_asked_for() {
        for asked in [50_000, 1_000_000] {
            let grown = with_code(b"component", asked).len();
            assert!(grown.abs_diff(asked) < asked / 10 + FUNCTION_BYTES, "{grown} for {asked}");
        }
    }
}
