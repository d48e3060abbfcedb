//! A WAV file: one channel of 16-bit samples. Holds nothing about tones.

/// Samples in a second: enough for tones up to 8 kHz, half the bytes of what music needs.
pub const SAMPLES_PER_SECOND: u32 = 16_000;

/// Bytes of one sample.
const SAMPLE_BYTES: u16 = 2;

/// The file of these samples, each from -1 to 1.
pub fn file(samples: &[f64]) -> Vec<u8> {
    let data_bytes = u32::try_from(samples.len()).unwrap_or(0) * u32::from(SAMPLE_BYTES);
    let mut file = Vec::with_capacity(44 + data_bytes as usize);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + data_bytes).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes()); // bytes of this block
    file.extend_from_slice(&1_u16.to_le_bytes()); // plain samples
    file.extend_from_slice(&1_u16.to_le_bytes()); // channels
    file.extend_from_slice(&SAMPLES_PER_SECOND.to_le_bytes());
    file.extend_from_slice(&(SAMPLES_PER_SECOND * u32::from(SAMPLE_BYTES)).to_le_bytes());
    file.extend_from_slice(&SAMPLE_BYTES.to_le_bytes());
    file.extend_from_slice(&(SAMPLE_BYTES * 8).to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&data_bytes.to_le_bytes());
    for sample in samples {
        let loudness = (sample.clamp(-1.0, 1.0) * f64::from(i16::MAX)) as i16;
        file.extend_from_slice(&loudness.to_le_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_file_says_what_is_in_it() {
        let file = file(&[0.0, 1.0, -1.0, 7.0]);
        assert_eq!(&file[..4], b"RIFF");
        assert_eq!(file[4..8], 44_u32.to_le_bytes());
        assert_eq!(file[24..28], 16_000_u32.to_le_bytes());
        assert_eq!(file[28..32], 32_000_u32.to_le_bytes());
        assert_eq!(file[40..44], 8_u32.to_le_bytes());
        assert_eq!(file[44..], [0, 0, 0xFF, 0x7F, 0x01, 0x80, 0xFF, 0x7F]);
    }
}
