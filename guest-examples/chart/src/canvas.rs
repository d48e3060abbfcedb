//! A picture in memory: filling, lines with soft edges, text, and the PNG file of it. Holds nothing about charts.

use embedded_graphics::Pixel;
use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};
use embedded_graphics::{Drawable, text};
use std::convert::Infallible;

/// Bytes of one pixel: red, green, blue.
const PIXEL_BYTES: usize = 3;

/// A picture, white at first.
pub struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

/// A point, in pixels from the upper left corner.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Area {
    /// How wide it is.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// How high it is.
    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

impl Canvas {
    /// A white picture of this many pixels.
    pub fn new(width: u32, height: u32) -> Self {
        let bytes = width as usize * height as usize * PIXEL_BYTES;
        Self { width, height, pixels: vec![u8::MAX; bytes] }
    }

    /// Fills a rectangle; edges between pixels are soft.
    pub fn fill(&mut self, area: Area, color: Rgb888) {
        let cover = |low: f64, high: f64, pixel: i32| {
            (high.min(f64::from(pixel) + 1.0) - low.max(f64::from(pixel))).clamp(0.0, 1.0)
        };
        for y in area.top.floor() as i32..area.bottom.ceil() as i32 {
            for x in area.left.floor() as i32..area.right.ceil() as i32 {
                self.blend(x, y, color, cover(area.left, area.right, x) * cover(area.top, area.bottom, y));
            }
        }
    }

    /// Draws a line with round ends.
    pub fn line(&mut self, from: Spot, to: Spot, thickness: f64, color: Rgb888) {
        let reach = thickness / 2.0 + 1.0;
        let along_x = to.x - from.x;
        let along_y = to.y - from.y;
        let squared = along_x * along_x + along_y * along_y;
        let inverse = if squared == 0.0 { 0.0 } else { 1.0 / squared };
        let left = from.x.min(to.x) - reach;
        let right = from.x.max(to.x) + reach;
        // Of each row only what lies within reach of the line, not all between its ends.
        let half_row = if along_y == 0.0 { right - left } else { reach * squared.sqrt() / along_y.abs() };
        for y in (from.y.min(to.y) - reach).floor() as i32..=(from.y.max(to.y) + reach).ceil() as i32 {
            let off_y = f64::from(y) + 0.5 - from.y;
            let middle = if along_y == 0.0 { from.x } else { from.x + off_y * along_x / along_y };
            let first = (middle - half_row).max(left);
            let last = (middle + half_row).min(right);
            for x in first.floor() as i32..=last.ceil() as i32 {
                let off_x = f64::from(x) + 0.5 - from.x;
                let along = off_x * along_x + off_y * along_y;
                let nearest = (along * inverse).clamp(0.0, 1.0);
                let away_x = off_x - nearest * along_x;
                let away_y = off_y - nearest * along_y;
                // A square root is one instruction here; `hypot` would be a hundred.
                let distance = (away_x * away_x + away_y * away_y).sqrt();
                self.blend(x, y, color, (thickness / 2.0 + 0.5 - distance).clamp(0.0, 1.0));
            }
        }
    }

    /// Draws a disc.
    pub fn disc(&mut self, center: Spot, diameter: f64, color: Rgb888) {
        self.line(center, center, diameter, color);
    }

    /// Writes one line of text; `at` is its upper left corner, upper middle or upper right corner.
    pub fn text(
        &mut self,
        content: &str,
        at: Spot,
        font: &'static MonoFont<'static>,
        color: Rgb888,
        alignment: Alignment,
    ) {
        let layout = TextStyleBuilder::new().baseline(Baseline::Top).alignment(alignment).build();
        let style = MonoTextStyle::new(font, color);
        let point = Point::new(at.x.round() as i32, at.y.round() as i32);
        let content = printable(content);
        let text: text::Text<'_, _> = Text::with_text_style(&content, point, style, layout);
        let Ok(_) = text.draw(self);
    }

    /// How wide a text is, in pixels.
    pub fn text_width(content: &str, font: &MonoFont<'_>) -> f64 {
        let letters = printable(content).chars().count();
        letters as f64 * f64::from(font.character_size.width + font.character_spacing)
    }

    /// The picture as a PNG file.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // Most rows of a chart are like the row above.
        encoder.set_filter(png::Filter::Up);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(file)
    }

    fn blend(&mut self, x: i32, y: i32, color: Rgb888, cover: f64) {
        let (Ok(column), Ok(row)) = (u32::try_from(x), u32::try_from(y)) else { return };
        // In 256ths, so that mixing is done in whole numbers: this runs for every pixel that is touched.
        let cover = (cover * 256.0) as u32;
        if cover == 0 || column >= self.width || row >= self.height {
            return;
        }
        let start = (row as usize * self.width as usize + column as usize) * PIXEL_BYTES;
        let Some(pixel) = self.pixels.get_mut(start..start + PIXEL_BYTES) else { return };
        for (byte, wanted) in pixel.iter_mut().zip([color.r(), color.g(), color.b()]) {
            let mixed = u32::from(*byte) * (256 - cover) + u32::from(wanted) * cover;
            *byte = (mixed / 256) as u8;
        }
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(point, color) in pixels {
            self.blend(point.x, point.y, color, 1.0);
        }
        Ok(())
    }
}

/// A text in the letters that the fonts have (Latin 9): typographic signs in their plain form, no line ends.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}'..='\u{201e}' => '"',
            '\u{2026}' => '.',
            control if control.is_control() => ' ',
            other => other,
        })
        .collect()
}
