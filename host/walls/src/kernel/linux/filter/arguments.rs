//! Checks of arguments.

use seccompiler::{BackendError, SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition, SeccompRule};

/// A check of one argument.
pub(super) type Check = Result<SeccompCondition, BackendError>;

/// The argument, an `int`, is this number.
pub(super) fn int(argument: u8, number: i32) -> Check {
    SeccompCondition::new(argument, Width::Dword, Op::Eq, number.cast_unsigned().into())
}

/// The argument, an `int`, is any number but this one.
pub(super) fn int_not(argument: u8, number: i32) -> Check {
    SeccompCondition::new(argument, Width::Dword, Op::Ne, number.cast_unsigned().into())
}

/// The argument, a long or a pointer, is this number.
pub(super) fn word(argument: u8, number: u64) -> Check {
    SeccompCondition::new(argument, Width::Qword, Op::Eq, number)
}

/// The argument, a long, has the bits of `value`. Those of `free` may also be set, but no others.
pub(super) fn bits(argument: u8, value: u64, free: u64) -> Check {
    SeccompCondition::new(argument, Width::Qword, Op::MaskedEq(!free), value)
}

/// The argument, an `int`, has the bits of `value`. Those of `free` may also be set, but no others.
pub(super) fn int_bits(argument: u8, value: u32, free: u32) -> Check {
    SeccompCondition::new(argument, Width::Dword, Op::MaskedEq((!free).into()), value.into())
}

/// All checks hold.
pub(super) fn all<const N: usize>(checks: [Check; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(checks.into_iter().collect::<Result<_, _>>()?)
}

/// The argument, an `int`, is one of these numbers.
pub(super) fn one_of(argument: u8, numbers: &[i32]) -> Result<Vec<SeccompRule>, BackendError> {
    numbers.iter().map(|number| all([int(argument, *number)])).collect()
}
