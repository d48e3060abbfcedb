//! The view of what runs now.

use maud::{Markup, html};

use crate::chart;
use crate::figure::{amount, count, moment, or_none, time};
use crate::frame::form;
use crate::model::{Frame, Gauge, Now, Phase, RunningCall, Totals, Unit};
use crate::routes;
use crate::table::{Row, actions, column, figures, table};
use crate::text::name;

/// Ids of the parts that events replace.
const TOTALS: &str = "now-totals";
const CHART: &str = "now-chart";
const HISTORY: &str = "now-history";
const RUNNING: &str = "now-running";

pub fn view(frame: &Frame, now: &Now) -> Markup {
    html! {
        h1 { "Now" }
        (totals(now))
        div.charts { (chart(now)) (history(now)) }
        (running(frame, now))
    }
}

pub fn totals(now: &Now) -> Markup {
    let Totals { running, waiting, calls_per_second, p50, p99, errors, denials } = now.totals;
    html! {
        section #(TOTALS) aria-label="Figures of the last minute" {
            dl.tiles {
                (tile("Running", &count(running), ""))
                (tile("Waiting", &count(waiting), ""))
                (tile("Calls per second", &rate(calls_per_second), ""))
                (tile("Median", &or_dash(p50.map(time)), ""))
                (tile("99th percentile", &or_dash(p99.map(time)), ""))
                (tile("Errors", &count(errors), if errors > 0 { "bad" } else { "" }))
                (tile("Denials", &count(denials), if denials > 0 { "denied" } else { "" }))
            }
            p.dim {
                "The last minute, at " (moment(now.at)) " UTC. Generation " (now.generation)
                ", started " (moment(now.started)) "."
            }
        }
    }
}

pub fn chart(now: &Now) -> Markup {
    html! { section #(CHART) aria-label="Chart" { (chart::series(&now.series)) } }
}

pub fn history(now: &Now) -> Markup {
    html! { section #(HISTORY) aria-label="Charts of the last hour" { (chart::history(&now.history)) } }
}

pub fn running(frame: &Frame, now: &Now) -> Markup {
    let columns = [
        figures("Call"),
        column("Tool"),
        column("Caller"),
        column("State"),
        column("Time"),
        column("Fuel"),
        column("Memory"),
        actions("Stop"),
    ];
    let columns = if frame.decide { &columns[..] } else { columns.get(..7).unwrap_or(&[]) };
    html! {
        section #(RUNNING) aria-label="Calls" {
            (table("Calls that run or wait", columns, now.running.iter().map(|call| row(frame, call)), "No call runs."))
        }
    }
}

fn row(frame: &Frame, call: &RunningCall) -> Row {
    let elapsed = u64::try_from(call.elapsed.as_micros()).unwrap_or(u64::MAX);
    let deadline = call.deadline.map(|limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
    let used = deadline.map(|limit| Gauge { used: Some(elapsed), limit });
    let number = call.call.to_string();
    Row {
        id: format!("call-{number}"),
        cells: vec![
            html! { (number) },
            html! {
                @if call.depth > 0 { span.dim { "└ " } }
                a href=(routes::tool(&call.tool)) { (name(&call.tool)) } " " span.dim { (name(&call.component)) }
            },
            html! { (name(&call.caller)) },
            state(call.phase),
            used.map_or_else(|| html! { (time(call.elapsed)) }, |gauge| gauge_of(gauge, Unit::Microseconds)),
            call.fuel.map_or_else(|| or_none(None), |gauge| gauge_of(gauge, Unit::Fuel)),
            call.memory.map_or_else(|| or_none(None), |gauge| gauge_of(gauge, Unit::Bytes)),
            stop(frame, call, &number),
        ],
    }
}

fn stop(frame: &Frame, call: &RunningCall, number: &str) -> Markup {
    let button = html! { button.bad id=(format!("stop-{number}")) { "Stop" span.hidden { " call " (number) } } };
    html! { @if call.can_stop { (form(frame, routes::STOP, &[(routes::CALL, number)], &button)) } }
}

fn state(phase: Phase) -> Markup {
    let (class, name) = match phase {
        Phase::Waiting => ("off", "waits"),
        Phase::Starting => ("off", "starts"),
        Phase::Running => ("good", "runs"),
        Phase::Asking => ("ask", "asks"),
        Phase::Stopping => ("bad", "stops"),
    };
    html! { span class={ "chip " (class) } { (name) } }
}

fn gauge_of(gauge: Gauge, unit: Unit) -> Markup {
    let limit = amount(gauge.limit, unit);
    html! {
        div.gauge {
            span { (or_none(gauge.used.map(|used| amount(used, unit)))) span.dim { " of " (limit) } }
            @if let Some(used) = gauge.used { (chart::bar_of(used, gauge.limit)) }
        }
    }
}

fn tile(name: &str, value: &str, class: &str) -> Markup {
    html! { div class=[Some(class).filter(|class| !class.is_empty())] { dt { (name) } dd { (value) } } }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

fn rate(each_second: f64) -> String {
    if each_second >= 100.0 { format!("{each_second:.0}") } else { format!("{each_second:.1}") }
}
