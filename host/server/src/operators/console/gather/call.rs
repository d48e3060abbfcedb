//! The view of one call, from start to end.
use std::path::Path;

use serde_json::Value;
use toolcell_console::model::{
    CallLink, CallPage, CallRecordLine, CallSpan, CallUsage, ChainState, DenialGroup, Moment, Unit,
};
use toolcell_mcp::{ServedCatalog as _, TaskPlan};
use toolcell_policy::{Limit, Limits};

use super::records::{Reading, Run, SEARCHED_BYTES_MAX, at, caller, chains_to_read, each_line, number, row, text};
use super::{Sources, THIS_RUN};
use crate::observing::activity::{CallPart, RecentCall};

/// Most records of one call that its page shows: each denial and question is one.
const CALL_RECORDS_MAX: usize = 200;

/// Facts about a call at its start, and their names for people.
const FACTS: [(&str, &str); 7] = [
    ("component", "Component"),
    ("component_digest", "Digest of the component"),
    ("policy_digest", "Digest of its policy"),
    ("era", "Era"),
    ("revision", "Revision"),
    ("request", "Request"),
    ("trace", "Trace"),
];

/// Records of one call.
#[derive(Default)]
struct CallRecords {
    /// The run that they belong to.
    run: Run,
    records: Vec<Value>,
    /// Records that are left out because there are too many.
    left_out: u64,
    /// Its last record, if it is among those.
    end: Option<Value>,
}

impl CallRecords {
    fn add(&mut self, run: Run, record: Value) {
        if run != self.run {
            // An earlier run has another call with this number.
            *self = Self { run, ..Self::default() };
        }
        if self.records.len() < CALL_RECORDS_MAX {
            self.records.push(record);
        } else if text(&record, "event") == "call.finished" {
            self.end = Some(record);
        } else {
            self.left_out += 1;
        }
    }

    /// The first record of one of these events.
    fn of(&self, events: &[&str]) -> Option<&Value> {
        self.all().find(|record| events.contains(&text(record, "event")))
    }

    fn all(&self) -> impl Iterator<Item = &Value> {
        self.records.iter().chain(&self.end)
    }
}

impl Sources {
    /// The page of one call, with the last check of the chain; `None` if the call is not among the
    /// newest records.
    pub fn call(&self, id: &str, chain: ChainState) -> Option<CallPage> {
        let (run, call) = id.split_once('.')?;
        let call: u64 = call.parse().ok()?;
        let run: Option<Run> = if run == THIS_RUN { None } else { Some(run.parse().ok()?) };
        let own = self.services.sink.path()?;
        let chains = chains_to_read(self.services.sink.audit()?, u64::MAX).ok()?;
        let is_its = |number, path: &Path| run.map_or_else(|| path == own, |run| run.chain == number);
        let of_call = chains.into_iter().find(|chain| is_its(chain.number, &chain.path))?;
        let mut reading = Reading::of(of_call.number);
        let mut found = CallRecords::default();
        // Most lines belong to other calls, and are not decoded.
        let named = format!("\"id\":{call}");
        let read = each_line(&of_call.archive, SEARCHED_BYTES_MAX, |line| {
            let is_near = |line: &&str| line.contains(&named) || line.contains("host.started");
            let near = std::str::from_utf8(line).ok().filter(is_near);
            let Some(record) = near.and_then(|line| serde_json::from_str::<Value>(line).ok()) else { return };
            reading.take(&record, false);
            let is_it = number(&record, "id") == call && text(&record, "event").starts_with("call.");
            if is_it && run.is_none_or(|run| run == reading.run) {
                found.add(reading.run, record);
            }
        });
        // A call of an earlier run belongs to another process.
        let is_of_this_run = of_call.path == own && found.run == reading.run;
        if found.records.is_empty() || (run.is_none() && !is_of_this_run) {
            return None;
        }
        let recent = if is_of_this_run { self.activity.running.recent.find(call) } else { None };
        let link = CallLink { id: id.to_owned(), number: call };
        let mut page = CallPage { chain, ..self.call_page(link, &found, recent.as_deref()) };
        if let Err(problem) = read {
            page.facts.push(("Audit".to_owned(), format!("not all of it can be read: {problem}")));
        }
        Some(page)
    }

    fn call_page(&self, link: CallLink, found: &CallRecords, recent: Option<&RecentCall>) -> CallPage {
        let empty = Value::Null;
        let start = found.of(&["call.started", "call.refused"]).unwrap_or(&empty);
        let end = found.of(&["call.finished", "call.refused"]).unwrap_or(start);
        let mut call = row(end, caller(end, Some(start)), found.run);
        call.call = Some(link);
        let facts = FACTS.iter().filter(|(key, _)| start.get(*key).is_some());
        let limits = self.limits_of(start);
        CallPage {
            call,
            facts: facts.map(|(key, name)| ((*name).to_owned(), text(start, key).to_owned())).collect(),
            arguments: start.get("arguments").map(|arguments| match arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            records: found.all().map(as_shown).collect(),
            left_out: found.left_out,
            denials: denials(found, text(start, "caller")),
            is_served: limits.is_some(),
            usage: usage(end, limits.as_ref()),
            spans: recent.map(spans).unwrap_or_default(),
            log: recent.map(|recent| recent.printed.clone()),
            ..CallPage::default()
        }
    }

    /// The limits of a call, if what it ran is still served, according to the digests.
    fn limits_of(&self, start: &Value) -> Option<CallLimits> {
        let catalog = self.catalog();
        let tools = catalog.tools().tools();
        let index = tools.iter().position(|tool| tool.definition().name == text(start, "tool"))?;
        let (component, limits) = catalog.tool_source(index)?;
        let same = [
            (component.name(), "component"),
            (component.digest(), "component_digest"),
            (&component.policy_digest, "policy_digest"),
        ];
        let may_be_task = tools.get(index)?.task() != TaskPlan::Never;
        let is_it = same.iter().all(|(served, key)| *served == text(start, key));
        is_it.then_some(CallLimits { limits: *limits, may_be_task })
    }
}

struct CallLimits {
    limits: Limits,
    /// True if it may have been a task, which has another deadline. Records do not tell.
    may_be_task: bool,
}

impl CallLimits {
    fn get(&self, limit: Limit) -> Option<u64> {
        let value = self.limits.get(limit);
        match limit {
            Limit::Deadline if self.may_be_task => None,
            Limit::Deadline => Some(value.saturating_mul(1_000)),
            _ => Some(value),
        }
    }
}

/// What a call used, according to its end.
fn usage(end: &Value, limits: Option<&CallLimits>) -> Vec<CallUsage> {
    let fields = [
        (Limit::Fuel, "fuel", Unit::Fuel),
        (Limit::Memory, "memory_peak_bytes", Unit::Bytes),
        (Limit::Deadline, "duration_us", Unit::Microseconds),
        (Limit::Log, "log_bytes", Unit::Bytes),
        (Limit::Output, "output_bytes", Unit::Bytes),
        (Limit::Egress, "egress_bytes", Unit::Bytes),
        (Limit::Ingress, "ingress_bytes", Unit::Bytes),
    ];
    let used = end.get("usage");
    let usage = fields.into_iter().filter_map(|(limit, field, unit)| {
        let used = used?.get(field)?.as_u64()?;
        let most = limits.and_then(|limits| limits.get(limit));
        Some(CallUsage { key: limit.spec().key.to_owned(), unit, used, limit: most })
    });
    usage.collect()
}

/// Denials in the records of this caller's call, grouped by capability.
fn denials(found: &CallRecords, caller: &str) -> Vec<DenialGroup> {
    let mut groups: Vec<DenialGroup> = Vec::new();
    for record in found.all().filter(|record| text(record, "event") == "call.denied") {
        let [component, capability, asked] = ["component", "capability", "asked"].map(|key| text(record, key));
        let is_it = |group: &&mut DenialGroup| {
            (group.component.as_str(), group.capability.as_str(), group.asked.as_str())
                == (component, capability, asked)
        };
        let time: Moment = at(record);
        if let Some(group) = groups.iter_mut().find(is_it) {
            group.count += 1;
            group.last = time;
            continue;
        }
        groups.push(DenialGroup {
            key: groups.len().to_string(),
            component: component.to_owned(),
            tools: vec![text(record, "tool").to_owned()],
            callers: Some(caller).filter(|caller| !caller.is_empty()).map(str::to_owned).into_iter().collect(),
            capability: capability.to_owned(),
            asked: asked.to_owned(),
            reason: text(record, "reason").to_owned(),
            count: 1,
            first: time,
            last: time,
            last_call: None,
            rule: None,
        });
    }
    groups
}

fn spans(recent: &RecentCall) -> Vec<CallSpan> {
    let span = |part: &CallPart| CallSpan {
        name: part.name.clone(),
        start: part.start,
        took: part.took,
        depth: u8::from(part.is_request),
        failed: part.failed,
    };
    recent.parts.iter().map(span).collect()
}

fn as_shown(record: &Value) -> CallRecordLine {
    CallRecordLine { at: at(record), record: text(record, "event").to_owned(), json: record.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(seq: u64) -> Run {
        Run { chain: 1, seq }
    }

    fn denied(asked: &str, time: &str) -> Value {
        json!({"event": "call.denied", "id": 1, "tool": "t", "component": "c", "capability": "http", "asked": asked,
            "reason": "no rule", "time": time})
    }

    #[test]
    fn the_end_of_a_call_with_too_many_records_is_kept_and_the_rest_counted() {
        let mut found = CallRecords::default();
        found.add(run(1), json!({"event": "call.started", "id": 1}));
        found.add(run(5), json!({"event": "call.started", "id": 1, "tool": "t"}));
        for number in 0..CALL_RECORDS_MAX + 10 {
            found.add(run(5), denied(&format!("GET /{number}"), ""));
        }
        found.add(run(5), json!({"event": "call.finished", "id": 1, "outcome": "ok"}));
        assert_eq!((found.all().count(), found.left_out, found.run), (CALL_RECORDS_MAX + 1, 11, run(5)));
        assert_eq!(text(found.of(&["call.started"]).unwrap(), "tool"), "t");
        assert_eq!(text(found.of(&["call.finished"]).unwrap(), "outcome"), "ok");
        assert_eq!(denials(&found, "ann").len(), CALL_RECORDS_MAX - 1);
    }

    #[test]
    fn denials_of_the_same_thing_are_counted_together() {
        let mut found = CallRecords::default();
        let [first, second] = ["2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z"];
        for record in [denied("GET /a", first), denied("GET /b", first), denied("GET /a", second)] {
            found.add(run(1), record);
        }
        assert_eq!(denials(&found, "")[0].callers, Vec::<String>::new(), "its start is not among the records");
        let groups = denials(&found, "ann");
        assert_eq!(groups[1].callers, ["ann"]);
        let counts: Vec<_> = groups.iter().map(|group| (group.asked.as_str(), group.count)).collect();
        assert_eq!(counts, [("GET /a", 2), ("GET /b", 1)]);
        let times = [first, second].map(|time| Moment::parse(time).unwrap());
        assert_eq!([groups[0].first, groups[0].last], times);
        assert_eq!((groups[0].reason.as_str(), groups[0].tools.as_slice()), ("no rule", &["t".to_owned()][..]));
    }

    #[test]
    fn usage_has_its_limits_where_they_are_known() {
        let end = json!({"usage": {"fuel": 5, "duration_us": 7, "other": 1}});
        let limits = |may_be_task| CallLimits { limits: Limits::default(), may_be_task };
        let row = |key: &str, unit, used, limit| CallUsage { key: key.to_owned(), unit, used, limit };
        let fuel = Limits::default().fuel();
        let time = Limits::default().deadline();
        let time = u64::try_from(time.as_micros()).ok();
        for (limits, fuel, time) in
            [(Some(limits(false)), Some(fuel), time), (Some(limits(true)), Some(fuel), None), (None, None, None)]
        {
            let expected = [row("fuel", Unit::Fuel, 5, fuel), row("deadline", Unit::Microseconds, 7, time)];
            assert_eq!(usage(&end, limits.as_ref()), expected);
        }
        assert_eq!(usage(&json!({}), None), []);
    }
}
