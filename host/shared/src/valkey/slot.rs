//! The slot of a key in a cluster.

/// Slots of a cluster.
pub const SLOTS: usize = 16_384;

/// The slot of a key: a checksum of its part in braces, or of all of it if it has none.
pub fn slot_of(key: &[u8]) -> u16 {
    let braced = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|part| !part.is_empty())
    });
    checksum(braced.unwrap_or(key)) & 0x3fff
}

/// CRC-16/XMODEM, which the cluster's specification names. Keys hold 64 bytes in braces: a table
/// would save half a microsecond.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` of Valkey 9.1 computes them.
    #[test]
    fn slots_are_those_of_the_server() {
        for (key, slot) in [
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("a{foo}{bar}", 12_182),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("", 0),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }
}
