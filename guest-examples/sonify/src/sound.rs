//! Turning numbers into tones. Holds no file formats.

use crate::wav::SAMPLES_PER_SECOND;
use serde::Deserialize;
use std::f64::consts::TAU;

/// How numbers follow each other.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// One tone for each number.
    #[default]
    Notes,
    /// One tone that follows the numbers.
    Glide,
}

/// The tone of the least number, in hertz: the A below middle C.
const LOWEST_HZ: f64 = 220.0;
/// How far above it the greatest sounds.
const OCTAVES: f64 = 2.0;
/// How loud it is, of what the file can hold.
const LOUDNESS: f64 = 0.5;
/// A tone fades in and out over this many seconds at most: without it, it clicks.
const FADE_SECONDS: f64 = 0.01;

/// The samples of a row of numbers, each from -1 to 1.
pub fn samples(values: &[Option<f64>], seconds: f64, style: Style) -> Vec<f64> {
    let pitches = pitches(values);
    let rate = f64::from(SAMPLES_PER_SECOND);
    let each = seconds / values.len().max(1) as f64;
    // The phase is carried on, so that a tone that changes its pitch does not jump.
    let mut phase = 0.0;
    (0..(seconds * rate) as u32)
        .map(|sample| {
            let at = f64::from(sample) / rate / each;
            let Some((pitch, loudness)) = tone(&pitches, at, each, style) else { return 0.0 };
            phase = (phase + pitch / rate).fract();
            // A little of the octave above makes a small loudspeaker carry the tone.
            let wave = (phase * TAU).sin() + 0.3 * (2.0 * phase * TAU).sin();
            wave / 1.3 * LOUDNESS * loudness
        })
        .collect()
}

/// The pitch of each number in hertz, even steps of numbers being even steps to the ear.
fn pitches(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let numbers = || values.iter().copied().flatten();
    let least = numbers().fold(f64::INFINITY, f64::min);
    let most = numbers().fold(f64::NEG_INFINITY, f64::max);
    let part = |value: f64| if most > least { (value - least) / (most - least) } else { 0.5 };
    values.iter().map(|value| value.map(|value| LOWEST_HZ * (part(value) * OCTAVES).exp2())).collect()
}

/// Pitch and loudness at a time counted in values; nothing in a rest.
fn tone(pitches: &[Option<f64>], at: f64, each_seconds: f64, style: Style) -> Option<(f64, f64)> {
    let pitch_of = |index: usize| pitches.get(index).copied().flatten();
    let index = at.floor() as usize;
    let within = at.fract();
    let here = pitch_of(index)?;
    let before = index.checked_sub(1).and_then(pitch_of);
    let after = pitch_of(index + 1);
    let fade = (FADE_SECONDS / each_seconds).min(0.4);
    let (joined_before, joined_after) =
        if style == Style::Glide { (before.is_some(), after.is_some()) } else { (false, false) };
    let rise = if joined_before { 1.0 } else { (within / fade).min(1.0) };
    let fall = if joined_after { 1.0 } else { ((1.0 - within) / fade).min(1.0) };
    let pitch = match (style, after) {
        (Style::Glide, Some(after)) => here * (after / here).powf(within),
        _ => here,
    };
    Some((pitch, rise * fall))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    /// Waves in a part of a sound, by its upward passages through zero.
    fn waves(samples: &[f64]) -> usize {
        samples.windows(2).filter(|pair| pair[0] <= 0.0 && pair[1] > 0.0).count()
    }

    #[test]
    fn the_greatest_sounds_two_octaves_above_the_least() {
        let sound = samples(&[Some(-1.0), Some(5.0)], 2.0, Style::Notes);
        let (low, high) = sound.split_at(SAMPLES_PER_SECOND as usize);
        assert!(waves(low).abs_diff(220) <= 2, "{}", waves(low));
        assert!(waves(high).abs_diff(880) <= 2, "{}", waves(high));
    }

    #[test]
    fn a_rest_is_silent_and_nothing_is_too_loud() {
        for style in [Style::Notes, Style::Glide] {
            let sound = samples(&[Some(1.0), None, Some(2.0)], 3.0, style);
            let third = SAMPLES_PER_SECOND as usize;
            assert!(sound[third..2 * third].iter().all(|sample| *sample == 0.0), "{style:?}");
            assert!(sound[..third].iter().any(|sample| *sample > 0.2), "{style:?}");
            assert!(sound.iter().all(|sample| sample.abs() <= LOUDNESS), "{style:?}");
        }
    }

    #[test]
    fn a_glide_does_not_jump() {
        let sound = samples(&[Some(0.0), Some(9.0), Some(3.0)], 1.0, Style::Glide);
        let largest = sound.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f64::max);
        assert!(largest < 0.3, "{largest}");
    }

    #[test]
    fn equal_numbers_sound_alike() {
        assert_eq!(pitches(&[Some(4.0), Some(4.0)]), [Some(440.0), Some(440.0)]);
    }
}
