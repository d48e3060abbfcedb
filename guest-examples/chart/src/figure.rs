//! What is to be drawn, as the caller says it. Holds no drawing.

use serde::Deserialize;
use std::fmt;

/// Pixels where the caller does not say; the schema says the same.
const WIDTH_DEFAULT: u32 = 800;
/// As [`WIDTH_DEFAULT`].
const HEIGHT_DEFAULT: u32 = 450;

/// A chart to be drawn.
#[derive(Deserialize)]
pub struct Figure {
    /// Lines or bars.
    pub kind: Kind,
    /// The numbers.
    pub series: Vec<Series>,
    /// What stands below the values.
    pub labels: Option<Vec<String>>,
    /// Above the chart.
    #[serde(default)]
    pub title: String,
    /// Below the horizontal axis.
    #[serde(default)]
    pub x_label: String,
    /// Above the vertical axis.
    #[serde(default)]
    pub y_label: String,
    /// In pixels.
    #[serde(default = "width_default")]
    pub width: u32,
    /// In pixels.
    #[serde(default = "height_default")]
    pub height: u32,
}

/// How numbers are shown.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Points joined by a line.
    Line,
    /// Bars from zero.
    Bar,
}

/// One row of numbers.
#[derive(Deserialize)]
pub struct Series {
    /// For the legend.
    #[serde(default)]
    pub name: String,
    /// From left to right; `None` without one.
    pub values: Vec<Option<f64>>,
}

/// A chart that cannot be drawn.
#[derive(Debug, PartialEq)]
pub enum Mistake {
    /// There is no number in it.
    Empty,
    /// A series is shorter than another.
    Ragged {
        /// Which, from 1.
        series: usize,
        /// How many values it has.
        values: usize,
        /// How many the longest has.
        longest: usize,
    },
    /// Labels and values are not the same number.
    Labels {
        /// How many values there are.
        values: usize,
        /// How many labels there are.
        labels: usize,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(formatter, "there is nothing to draw: every value is null"),
            Self::Ragged { series, values, longest } => write!(
                formatter,
                "series {series} has {values} values and the longest has {longest}; fill the gaps with null"
            ),
            Self::Labels { values, labels } => {
                write!(formatter, "there are {values} values and {labels} labels; each value needs one")
            }
        }
    }
}

impl Figure {
    /// How many values stand side by side.
    pub fn columns(&self) -> usize {
        self.series.iter().map(|series| series.values.len()).max().unwrap_or(0)
    }

    /// The least and the greatest of all numbers.
    pub fn extent(&self) -> Option<(f64, f64)> {
        extent(self.series.iter().flat_map(Series::numbers))
    }

    /// Checks what a schema cannot say.
    pub fn check(&self) -> Result<(), Mistake> {
        let longest = self.columns();
        for (series, number) in self.series.iter().zip(1..) {
            if series.values.len() != longest {
                return Err(Mistake::Ragged { series: number, values: series.values.len(), longest });
            }
        }
        match &self.labels {
            Some(labels) if labels.len() != longest => Err(Mistake::Labels { values: longest, labels: labels.len() }),
            _ if self.extent().is_none() => Err(Mistake::Empty),
            _ => Ok(()),
        }
    }

    /// What a series is called: its name, else its number, from 1.
    pub fn name(&self, index: usize) -> String {
        match self.series.get(index) {
            Some(series) if !series.name.is_empty() => series.name.clone(),
            _ => format!("series {}", index + 1),
        }
    }

    /// The chart in words, for who does not see it.
    pub fn summary(&self) -> String {
        let kind = if self.kind == Kind::Line { "Line" } else { "Bar" };
        let title = if self.title.is_empty() { String::new() } else { format!(" {:?}", self.title) };
        let series: Vec<String> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| {
                let count = series.numbers().count();
                let range = extent(series.numbers())
                    .map(|(least, most)| format!(" from {least} to {most}"))
                    .unwrap_or_default();
                format!("{}: {count} values{range}", self.name(index))
            })
            .collect();
        format!("{kind} chart{title}, {}x{} pixels: {}.", self.width, self.height, series.join("; "))
    }
}

impl Series {
    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.values.iter().copied().flatten()
    }
}

fn extent(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.map(|number| (number, number)).reduce(|(least, most), (number, _)| (least.min(number), most.max(number)))
}

fn width_default() -> u32 {
    WIDTH_DEFAULT
}

fn height_default() -> u32 {
    HEIGHT_DEFAULT
}
