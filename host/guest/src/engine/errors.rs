//! Errors of the engine, and its panics, on one line.
use std::any::Any;

/// Characters of a panic's message that are shown.
const PANIC_CHARS_SHOWN: usize = 400;

/// The message of a panic, on one line.
pub(crate) fn panic_line(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    text.unwrap_or("it panicked without words").chars().take(PANIC_CHARS_SHOWN).map(plain).collect()
}

/// The error and its causes on one line, without the backtrace that `Debug` may append.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    let causes: Vec<String> = error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect();
    causes.join(": ")
}
