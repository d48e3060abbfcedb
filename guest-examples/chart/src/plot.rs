//! Laying out a chart and drawing it. Holds no pixels and no arithmetic of axes.

use crate::canvas::{Area, Canvas, Spot};
use crate::figure::{Figure, Kind};
use crate::scale::Scale;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_15::{FONT_7X13, FONT_9X18_BOLD};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::text::Alignment;

const INK: Rgb888 = Rgb888::new(0x33, 0x33, 0x33);
const FAINT: Rgb888 = Rgb888::new(0xDD, 0xDD, 0xDD);

/// Colours that people with any colour vision tell apart (Okabe and Ito), the darkest first, so that lines stand out.
const PALETTE: [Rgb888; 8] = [
    Rgb888::new(0x00, 0x72, 0xB2),
    Rgb888::new(0xD5, 0x5E, 0x00),
    Rgb888::new(0x00, 0x9E, 0x73),
    Rgb888::new(0xCC, 0x79, 0xA7),
    Rgb888::new(0xE6, 0x9F, 0x00),
    Rgb888::new(0x56, 0xB4, 0xE9),
    Rgb888::new(0x55, 0x55, 0x55),
    Rgb888::new(0xB8, 0xA8, 0x00),
];

const TEXT: &MonoFont<'static> = &FONT_7X13;
const TITLE: &MonoFont<'static> = &FONT_9X18_BOLD;

/// Pixels around the whole, and between its parts.
const MARGIN: f64 = 12.0;
const GAP: f64 = 6.0;
/// Pixels of the line of text that names axes and series, with room around it.
const TEXT_LINE: f64 = 13.0 + GAP;
const TITLE_LINE: f64 = 18.0 + GAP;
/// Pixels between two marks of the vertical axis, about.
const MARK_DISTANCE: f64 = 55.0;
const LINE_THICKNESS: f64 = 2.2;
const POINT_DIAMETER: f64 = 7.0;
/// Lines of more values than this have no point at each.
const POINTS_MAX: usize = 40;
/// Part of its room that a group of bars takes up.
const GROUP_PART: f64 = 0.78;

/// Where everything is.
struct Layout<'figure> {
    figure: &'figure Figure,
    scale: Scale,
    /// The rectangle between the axes.
    plot: Area,
    columns: usize,
}

/// Draws a chart; says after each series which it was, from 1, and its name.
pub fn draw(figure: &Figure, mut drawn: impl FnMut(u32, &str)) -> Canvas {
    let mut canvas = Canvas::new(figure.width, figure.height);
    let layout = Layout::of(figure);
    layout.draw_texts(&mut canvas);
    layout.draw_vertical_axis(&mut canvas);
    layout.draw_horizontal_axis(&mut canvas);
    for (index, number) in (0..figure.series.len()).zip(1..) {
        match figure.kind {
            Kind::Line => layout.draw_line(&mut canvas, index),
            Kind::Bar => layout.draw_bars(&mut canvas, index),
        }
        drawn(number, &figure.name(index));
    }
    layout.draw_zero(&mut canvas);
    canvas
}

fn color(series: usize) -> Rgb888 {
    PALETTE.get(series % PALETTE.len()).copied().unwrap_or(INK)
}

impl<'figure> Layout<'figure> {
    fn of(figure: &'figure Figure) -> Self {
        let (least, most) = figure.extent().unwrap_or((0.0, 1.0));
        let mut top = MARGIN;
        top += if figure.title.is_empty() { 0.0 } else { TITLE_LINE };
        top += if has_legend(figure) { TEXT_LINE } else { 0.0 };
        top += if figure.y_label.is_empty() { GAP } else { TEXT_LINE + GAP };
        let mut bottom = f64::from(figure.height) - MARGIN - TEXT_LINE;
        bottom -= if figure.x_label.is_empty() { 0.0 } else { TEXT_LINE };
        let marks = ((bottom - top) / MARK_DISTANCE).clamp(2.0, 12.0) as u32;
        let scale = Scale::around(least, most, figure.kind == Kind::Bar, marks);
        let widest =
            scale.marks().into_iter().map(|mark| Canvas::text_width(&scale.written(mark), TEXT)).fold(0.0, f64::max);
        let plot = Area { left: MARGIN + widest + GAP, top, right: f64::from(figure.width) - 2.0 * MARGIN, bottom };
        Self { figure, scale, plot, columns: figure.columns() }
    }

    fn draw_texts(&self, canvas: &mut Canvas) {
        let figure = self.figure;
        let middle = f64::midpoint(self.plot.left, self.plot.right);
        let mut top = MARGIN;
        if !figure.title.is_empty() {
            let title = shortened(&figure.title, f64::from(figure.width) - 2.0 * MARGIN, TITLE);
            canvas.text(&title, Spot { x: f64::from(figure.width) / 2.0, y: top }, TITLE, INK, Alignment::Center);
            top += TITLE_LINE;
        }
        if has_legend(figure) {
            self.draw_legend(canvas, top);
        }
        if !figure.y_label.is_empty() {
            let y_label = shortened(&figure.y_label, f64::from(figure.width) - 2.0 * MARGIN, TEXT);
            canvas.text(&y_label, Spot { x: MARGIN, y: self.plot.top - TEXT_LINE - GAP }, TEXT, INK, Alignment::Left);
        }
        if !figure.x_label.is_empty() {
            let x_label = shortened(&figure.x_label, self.plot.width(), TEXT);
            let below = f64::from(figure.height) - MARGIN - TEXT_LINE + GAP;
            canvas.text(&x_label, Spot { x: middle, y: below }, TEXT, INK, Alignment::Center);
        }
    }

    fn draw_legend(&self, canvas: &mut Canvas, top: f64) {
        const SWATCH: f64 = 10.0;
        let room = f64::from(self.figure.width) - 2.0 * MARGIN;
        let each = room / self.figure.series.len() as f64 - SWATCH - 3.0 * GAP;
        let names: Vec<String> =
            (0..self.figure.series.len()).map(|index| shortened(&self.figure.name(index), each, TEXT)).collect();
        let width: f64 = names.iter().map(|name| Canvas::text_width(name, TEXT) + SWATCH + 3.0 * GAP).sum();
        let mut left = f64::midpoint(f64::from(self.figure.width), -width);
        for (index, name) in names.iter().enumerate() {
            let swatch = Area { left, top: top + 2.0, right: left + SWATCH, bottom: top + 2.0 + SWATCH };
            canvas.fill(swatch, color(index));
            left += SWATCH + GAP;
            canvas.text(name, Spot { x: left, y: top }, TEXT, INK, Alignment::Left);
            left += Canvas::text_width(name, TEXT) + 2.0 * GAP;
        }
    }

    fn draw_vertical_axis(&self, canvas: &mut Canvas) {
        for mark in self.scale.marks() {
            let y = self.y(mark).round();
            canvas.fill(Area { left: self.plot.left, top: y, right: self.plot.right, bottom: y + 1.0 }, FAINT);
            let at = Spot { x: self.plot.left - GAP, y: y - 6.0 };
            canvas.text(&self.scale.written(mark), at, TEXT, INK, Alignment::Right);
        }
    }

    fn draw_horizontal_axis(&self, canvas: &mut Canvas) {
        let labels: Vec<String> = match &self.figure.labels {
            Some(labels) => labels.clone(),
            None => (1..=self.columns).map(|column| column.to_string()).collect(),
        };
        let widest = labels.iter().map(|label| Canvas::text_width(label, TEXT)).fold(0.0, f64::max);
        let room = self.plot.width() / self.columns.max(1) as f64;
        // Every label if they fit, else every second, fifth, tenth …
        let every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
            .into_iter()
            .find(|every| *every as f64 * room >= widest + GAP)
            .unwrap_or(self.columns.max(1));
        let below = self.plot.bottom + GAP;
        for (column, label) in labels.iter().enumerate().step_by(every) {
            // One at the edge may stick out as far as the margin.
            let half = Canvas::text_width(label, TEXT) / 2.0;
            let x = self.x(column).min(f64::from(self.figure.width) - half - 2.0).max(half + 2.0);
            canvas.text(label, Spot { x, y: below }, TEXT, INK, Alignment::Center);
            let tick = self.x(column).round();
            canvas.fill(
                Area { left: tick, top: self.plot.bottom, right: tick + 1.0, bottom: self.plot.bottom + 4.0 },
                INK,
            );
        }
    }

    /// The line at zero, or at the lower end of the axis, over the bars.
    fn draw_zero(&self, canvas: &mut Canvas) {
        let part = self.scale.part(0.0);
        let y = if (0.0..=1.0).contains(&part) { self.y(0.0) } else { self.plot.bottom }.round();
        canvas.fill(Area { left: self.plot.left, top: y, right: self.plot.right, bottom: y + 1.0 }, INK);
    }

    fn draw_line(&self, canvas: &mut Canvas, index: usize) {
        let Some(series) = self.figure.series.get(index) else { return };
        let mut before: Option<Spot> = None;
        for (column, value) in series.values.iter().enumerate() {
            let here = value.map(|value| Spot { x: self.x(column), y: self.y(value) });
            if let (Some(from), Some(to)) = (before, here) {
                canvas.line(from, to, LINE_THICKNESS, color(index));
            }
            if let Some(spot) = here {
                // A value between two gaps would be invisible without a point.
                let alone = before.is_none() && !matches!(series.values.get(column + 1), Some(Some(_)));
                if self.columns <= POINTS_MAX || alone {
                    canvas.disc(spot, POINT_DIAMETER, color(index));
                }
            }
            before = here;
        }
    }

    fn draw_bars(&self, canvas: &mut Canvas, index: usize) {
        let Some(series) = self.figure.series.get(index) else { return };
        let group = self.plot.width() / self.columns.max(1) as f64 * GROUP_PART;
        let bar = group / self.figure.series.len() as f64;
        let zero = self.y(0.0);
        for (column, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let left = self.x(column) - group / 2.0 + bar * index as f64;
            let y = self.y(*value);
            // A pixel of room between neighbours, where they are wide enough to spare it.
            let right = left + if bar > 4.0 { bar - 1.0 } else { bar };
            canvas.fill(Area { left, top: y.min(zero), right, bottom: y.max(zero) }, color(index));
        }
    }

    /// The middle of a column.
    fn x(&self, column: usize) -> f64 {
        let columns = self.columns.max(1) as f64;
        self.plot.left + self.plot.width() * (column as f64 + 0.5) / columns
    }

    fn y(&self, value: f64) -> f64 {
        self.plot.bottom - self.plot.height() * self.scale.part(value)
    }
}

fn has_legend(figure: &Figure) -> bool {
    figure.series.len() > 1 || figure.series.iter().any(|series| !series.name.is_empty())
}

/// A text that fits into a width, with dots where it is cut.
fn shortened(text: &str, width: f64, font: &MonoFont<'_>) -> String {
    if Canvas::text_width(text, font) <= width {
        return text.to_owned();
    }
    let letters = (width / f64::from(font.character_size.width + font.character_spacing)).max(0.0) as usize;
    let mut cut: String = text.chars().take(letters.saturating_sub(2)).collect();
    cut.push_str("..");
    cut
}
