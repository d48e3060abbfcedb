//! Pictures of figures, as SVG without a style or a script of its own. Must not hold: texts of
//! others.

use maud::{Markup, html};

use crate::bounds::SERIES_POINTS;
use crate::figure::{count, permille};
use crate::model::SeriesPoint;

/// Width of the chart in its own units: five for each point.
const WIDTH: u64 = 600;
const HEIGHT: u64 = 100;

/// Calls, errors and denials of the last seconds as bars.
pub fn series(points: &[SeriesPoint]) -> Markup {
    let points = points.get(points.len().saturating_sub(SERIES_POINTS)..).unwrap_or(points);
    let most = points.iter().map(|point| point.calls.max(point.denials)).max().unwrap_or(0);
    let scale = nice(most);
    let step = WIDTH / SERIES_POINTS as u64;
    let first = WIDTH.saturating_sub(step * points.len() as u64);
    html! {
        figure.chart {
            figcaption {
                "Calls that ended, each second"
                span.key { i.k-ok {} " ok " i.k-bad {} " errors " i.k-denied {} " denials" }
            }
            div.plot {
                span.top aria-hidden="true" { (count(scale)) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(spoken(points)) {
                    line.grid x1="0" y1="0.5" x2=(WIDTH) y2="0.5" {}
                    line.grid x1="0" y1=(HEIGHT / 2) x2=(WIDTH) y2=(HEIGHT / 2) {}
                    line.axis x1="0" y1=(HEIGHT) x2=(WIDTH) y2=(HEIGHT) {}
                    @for (x, point) in (first..).step_by(5).zip(points) { (bar(x, point, scale)) }
                }
            }
            div.ends aria-hidden="true" { span { (points.len()) " s ago" } span { "now" } }
        }
    }
}

fn bar(x: u64, point: &SeriesPoint, scale: u64) -> Markup {
    let tall = |number: u64| permille(number, scale) * HEIGHT / 1_000;
    let (calls, errors) = (tall(point.calls).max(u64::from(point.calls > 0)), tall(point.errors));
    let errors = errors.max(u64::from(point.errors > 0) * 2).min(HEIGHT);
    html! {
        @if calls > 0 { rect.ok x=(x) y=(HEIGHT - calls) width="4" height=(calls) {} }
        @if errors > 0 { rect.bad x=(x) y=(HEIGHT - errors) width="4" height=(errors) {} }
        @if point.denials > 0 { rect.denied x=(x) y=(HEIGHT - tall(point.denials).max(3)) width="4" height="3" {} }
    }
}

fn spoken(points: &[SeriesPoint]) -> String {
    let sum = |of: fn(&SeriesPoint) -> u64| points.iter().map(of).fold(0, u64::saturating_add);
    let most = points.iter().map(|point| point.calls).max().unwrap_or(0);
    format!(
        "In {} seconds: {} calls, at most {} in one second, {} errors, {} denials",
        points.len(),
        count(sum(|point| point.calls)),
        count(most),
        count(sum(|point| point.errors)),
        count(sum(|point| point.denials))
    )
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

/// A bar of a use against its limit. It stands beside figures and says nothing by itself.
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
        assert!(chart.contains("In 120 seconds"));
        assert!(series(&[]).0.contains("In 0 seconds: 0 calls"));
    }

    #[test]
    fn a_scale_ends_at_a_round_number() {
        assert_eq!([nice(0), nice(5), nice(6), nice(21), nice(100), nice(101)], [5, 5, 10, 50, 100, 200]);
        assert_eq!(nice(u64::MAX), u64::MAX);
    }
}
