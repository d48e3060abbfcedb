//! Charts: bars as SVG without a style or a script, and lines that uPlot draws.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::bounds::{HISTORY_POINTS, SERIES_POINTS};
use crate::figure::{count, permille, time};
use crate::model::{History, HistoryPoint, SeriesPoint};

/// Width of the chart in its own units: ten for each point.
const WIDTH: u64 = 600;
const HEIGHT: u64 = 100;

/// Width of a point; a fifth of it stays free.
const BAR: usize = 10;

/// Calls, errors and denials of the last seconds as bars.
pub fn series(points: &[SeriesPoint]) -> Markup {
    let points = points.get(points.len().saturating_sub(SERIES_POINTS)..).unwrap_or(points);
    let most = points.iter().map(|point| point.calls.max(point.denials)).max().unwrap_or(0);
    let scale = nice(most);
    let first = WIDTH.saturating_sub((BAR * points.len()) as u64);
    html! {
        figure.chart {
            figcaption {
                "The last minute: calls each second"
                span.key { i.k-ok {} " ok " i.k-bad {} " errors " i.k-denied {} " denials" }
            }
            div.plot {
                span.top aria-hidden="true" { (count(scale)) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(spoken(points)) {
                    line.grid x1="0" y1="0.5" x2=(WIDTH) y2="0.5" {}
                    line.grid x1="0" y1=(HEIGHT / 2) x2=(WIDTH) y2=(HEIGHT / 2) {}
                    line.axis x1="0" y1=(HEIGHT) x2=(WIDTH) y2=(HEIGHT) {}
                    @for (x, point) in (first..).step_by(BAR).zip(points) { (bar(x, point, scale)) }
                }
            }
            div.ends aria-hidden="true" { span { (points.len()) " s ago" } span { "now" } }
        }
    }
}

fn bar(x: u64, point: &SeriesPoint, scale: u64) -> Markup {
    let tall = |number: u64| permille(number, scale) * HEIGHT / 1_000;
    let calls = tall(point.calls).max(u64::from(point.calls > 0));
    let errors = tall(point.errors);
    let errors = errors.max(u64::from(point.errors > 0) * 2).min(HEIGHT);
    html! {
        @if calls > 0 { rect.ok x=(x) y=(HEIGHT - calls) width="8" height=(calls) {} }
        @if errors > 0 { rect.bad x=(x) y=(HEIGHT - errors) width="8" height=(errors) {} }
        @if point.denials > 0 { rect.denied x=(x) y=(HEIGHT - tall(point.denials).max(3)) width="8" height="3" {} }
    }
}

fn spoken(points: &[SeriesPoint]) -> String {
    let most = points.iter().map(|point| point.calls).max().unwrap_or(0);
    let [calls, errors, denials] = sums(points.iter());
    format!(
        "In {} seconds: {calls} calls, at most {} in one second, {errors} errors, {denials} denials",
        points.len(),
        count(most)
    )
}

fn sums<'a>(points: impl Iterator<Item = &'a SeriesPoint> + Clone) -> [String; 3] {
    let sum = |of: fn(&SeriesPoint) -> u64| count(points.clone().map(of).fold(0, u64::saturating_add));
    [sum(|point| point.calls), sum(|point| point.errors), sum(|point| point.denials)]
}

/// The last hour as lines: calls per second, and their times.
pub fn history(history: &History) -> Markup {
    let History { end, part, points } = history;
    let points = points.get(points.len().saturating_sub(HISTORY_POINTS)..).unwrap_or(points);
    let rate = |of: fn(&SeriesPoint) -> u64| -> Vec<Value> {
        points.iter().map(|point| each_second(of(&point.counts), *part)).collect()
    };
    let times = |of: fn(&HistoryPoint) -> Option<Duration>| -> Vec<Value> {
        points.iter().map(|point| json!(of(point).map(micros))).collect()
    };
    let longest = |of: fn(&HistoryPoint) -> Option<Duration>| {
        points.iter().filter_map(of).max().map_or_else(|| "none".to_owned(), time)
    };
    let [calls, errors, denials] = sums(points.iter().map(|point| &point.counts));
    let hour = time(part.saturating_mul(u32::try_from(points.len()).unwrap_or(u32::MAX)));
    let lines = |unit: &str, lines: &Value| json!({ "end": end.unix_ms / 1_000, "part": part.as_secs(), "unit": unit, "lines": lines });
    html! {
        (figure_of(
            "now-rates",
            "The last hour: calls each second",
            &[("k-ok", "all"), ("k-bad", "errors"), ("k-denied", "denials")],
            &format!("In the last {hour}: {calls} calls, {errors} errors, {denials} denials"),
            &lines("calls", &json!([rate(|point| point.calls), rate(|point| point.errors), rate(|point| point.denials)])),
        ))
        (figure_of(
            "now-times",
            "The last hour: time of a call",
            &[("k-ok", "median"), ("k-ask", "99th percentile")],
            &format!("In the last {hour}: the median at most {}, the 99th percentile at most {}", longest(|point| point.p50), longest(|point| point.p99)),
            &lines("time", &json!([times(|point| point.p50), times(|point| point.p99)])),
        ))
    }
}

/// A line chart, in the colours of its key. The script draws it, and shows the values at the
/// pointer below it.
fn figure_of(id: &str, title: &str, key: &[(&str, &str)], spoken: &str, lines: &Value) -> Markup {
    html! {
        figure.chart {
            figcaption {
                (title)
                span.key { @for (class, name) in key { i class=(class) {} " " (name) " " } }
            }
            div.lines #(id) role="img" aria-label=(spoken) data-lines=(lines) {}
            div.ends aria-hidden="true" { span id=(format!("{id}-at")) data-drawn { } }
        }
    }
}

/// The rate per second, to two digits.
fn each_second(count: u64, part: Duration) -> Value {
    let hundredths = u128::from(count) * 100_000 / part.as_millis().max(1);
    #[expect(clippy::cast_precision_loss, reason = "a chart shows three digits")]
    let rate = hundredths as f64 / 100.0;
    json!(rate)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The end of a scale: 1, 2 or 5 times a power of ten.
fn nice(most: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let end = power.saturating_mul(factor);
            if end >= most.max(5) || end == u64::MAX {
                return end;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A use of a limit, in percent and as a bar.
pub fn gauge(used: u64, limit: u64) -> Markup {
    html! { div.gauge { span { (permille(used, limit) / 10) " %" } (bar_of(used, limit)) } }
}

/// A bar of a use and its limit. It is decorative: the figures are next to it.
pub fn bar_of(used: u64, limit: u64) -> Markup {
    let share = permille(used, limit);
    let class = match share {
        0..800 => "low",
        800..950 => "near",
        _ => "full",
    };
    html! {
        svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.rest x="0" y="0" width="1000" height="10" {}
            rect class=(class) x="0" y="0" width=(share) height="10" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{nice, series};
    use crate::model::SeriesPoint;

    #[test]
    fn a_chart_is_bounded_and_says_its_figures() {
        let points = vec![SeriesPoint { calls: u64::MAX, errors: u64::MAX, denials: u64::MAX }; 100_000];
        let chart = series(&points).0;
        assert!(chart.len() < 40_000, "{}", chart.len());
        assert!(chart.contains("In 60 seconds"));
        assert!(series(&[]).0.contains("In 0 seconds: 0 calls"));
    }

    #[test]
    fn a_minute_fills_the_chart_and_less_stands_at_its_right_end() {
        let point = SeriesPoint { calls: 1, errors: 0, denials: 0 };
        let places = |points: usize| -> Vec<u64> {
            let chart = series(&vec![point; points]).0;
            chart
                .split("class=\"ok\" x=\"")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
                .collect()
        };
        assert_eq!(places(60), (0..60).map(|number| number * 10).collect::<Vec<u64>>());
        assert_eq!(places(2), [580, 590]);
    }

    #[test]
    fn a_scale_ends_at_a_round_number() {
        assert_eq!([nice(0), nice(5), nice(6), nice(21), nice(100), nice(101)], [5, 5, 10, 50, 100, 200]);
        assert_eq!(nice(u64::MAX), u64::MAX);
    }
}
