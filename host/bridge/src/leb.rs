//! Numbers of WebAssembly's binary format.

/// Appends an unsigned number.
pub(crate) fn push_unsigned(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// Appends a signed number of 32 bits.
pub(crate) fn push_signed(bytes: &mut Vec<u8>, value: i32) {
    let mut value = i64::from(value);
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        let is_last = (value == 0 && low & 0x40 == 0) || (value == -1 && low & 0x40 != 0);
        bytes.push(if is_last { low } else { low | 0x80 });
        if is_last {
            return;
        }
    }
}

/// Reads an unsigned number of 64 bits at most, and moves behind it.
pub(crate) fn take_unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads one byte, and moves behind it.
pub(crate) fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

/// Reads some bytes, and moves behind them.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_format_says() {
        for (value, expected) in
            [(0, &[0x00][..]), (127, &[0x7f]), (128, &[0x80, 0x01]), (624_485, &[0xe5, 0x8e, 0x26])]
        {
            let mut bytes = Vec::new();
            push_unsigned(&mut bytes, value);
            assert_eq!(bytes, expected, "{value}");
            let mut rest = bytes.as_slice();
            assert_eq!(take_unsigned(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
        for (value, expected) in [
            (0, &[0x00][..]),
            (63, &[0x3f]),
            (64, &[0xc0, 0x00]),
            (-1, &[0x7f]),
            (1_114_112, &[0x80, 0x80, 0xc4, 0x00]),
        ] {
            let mut bytes = Vec::new();
            push_signed(&mut bytes, value);
            assert_eq!(bytes, expected, "{value}");
        }
    }
}
