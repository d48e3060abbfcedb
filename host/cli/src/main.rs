//! The toolcell binary.
fn main() {}
