//! Tasks as both eras write them.

use std::time::Duration;

use toolcell_shared::{TaskRecord, TaskStatus};

use super::RELATED_TASK;
use crate::frame::{Object, RawMembers, RpcError, push_error, push_number};
use crate::meta::SERVER_INFO;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The body of an ended task: its call's result or error, as one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskBody<'b> {
    /// A result, as JSON.
    Result(&'b str),
    /// A JSON-RPC error, as JSON.
    Error(&'b str),
}

impl<'b> TaskBody<'b> {
    /// Reads a text that [`of_result`](Self::of_result) or [`of_error`](Self::of_error) wrote.
    pub(crate) fn read(body: &'b str) -> Option<Self> {
        match body.split_at_checked(1)? {
            ("r", result) => Some(Self::Result(result)),
            ("e", error) => Some(Self::Error(error)),
            _ => None,
        }
    }

    /// The text of a result.
    pub(crate) fn of_result(json: &[u8]) -> String {
        format!("r{}", String::from_utf8_lossy(json))
    }

    /// The text of an error.
    pub(crate) fn of_error(error: &RpcError) -> String {
        let mut out = vec![b'e'];
        push_error(&mut out, error);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Appends the members of a task's creation (extension, "Task Creation").
pub(crate) fn push_created(object: &mut Object<'_>, task: &TaskRecord, poll: Duration) {
    push_members(object, task, modern_status(task), "ttlMs", "pollIntervalMs", poll);
}

/// Appends the members of a task, with those that depend on its status (extension, `DetailedTask`).
pub(crate) fn push_detailed(object: &mut Object<'_>, task: &TaskRecord, poll: Duration) {
    push_created(object, task, poll);
    if task.status == TaskStatus::InputRequired {
        let mut requests = Object::open(object.key("inputRequests"));
        task.questions.iter().for_each(|(key, question)| requests.raw(key, question));
    }
    match TaskBody::read(&task.body) {
        Some(TaskBody::Result(result)) => push_modern_result(object.key("result"), result),
        Some(TaskBody::Error(error)) => object.raw("error", error),
        None => {}
    }
}

/// The member of results that only 2026-07-28 has.
const RESULT_TYPE: &str = "resultType";

/// Appends the stored result of a task for a modern client: one that a legacy client began has no
/// type.
fn push_modern_result(out: &mut Vec<u8>, result: &str) {
    let members = RawMembers::of(result).unwrap_or_default();
    let mut object = Object::open(out);
    if members.get(RESULT_TYPE).is_none() {
        object.text(RESULT_TYPE, "complete");
    }
    members.iter().for_each(|(name, value)| object.raw(name, value));
    object.close();
}

/// Appends the stored result of a task for a legacy client: with the task's name, and without what
/// only 2026-07-28 has.
pub(crate) fn push_legacy_result(out: &mut Vec<u8>, result: &str, task: &str) {
    let members = RawMembers::of(result).unwrap_or_default();
    let mut object = Object::open(out);
    for (name, value) in members.iter().filter(|(name, _)| !matches!(*name, RESULT_TYPE | "_meta")) {
        object.raw(name, value);
    }
    push_related(&mut object, members.get("_meta").unwrap_or("{}"), task);
    object.close();
}

/// Appends a `_meta` that has these members, and names the task.
pub(crate) fn push_related(object: &mut Object<'_>, meta: &str, task: &str) {
    let members = RawMembers::of(meta).unwrap_or_default();
    let mut meta = Object::open(object.key("_meta"));
    for (name, value) in members.iter().filter(|(name, _)| !matches!(*name, SERVER_INFO | RELATED_TASK)) {
        meta.raw(name, value);
    }
    let mut related = Object::open(meta.key(RELATED_TASK));
    related.text("taskId", task);
    related.close();
    meta.close();
}

/// Appends the members of a task as 2025-11-25 has them.
pub(crate) fn push_legacy(object: &mut Object<'_>, task: &TaskRecord, poll: Duration) {
    push_members(object, task, task.status, "ttl", "pollInterval", poll);
}

/// A call with any result is completed, even if 2025-11-25 calls it failed.
fn modern_status(task: &TaskRecord) -> TaskStatus {
    match TaskBody::read(&task.body) {
        Some(TaskBody::Result(_)) if task.status == TaskStatus::Failed => TaskStatus::Completed,
        _ => task.status,
    }
}

fn push_members(
    object: &mut Object<'_>,
    task: &TaskRecord,
    status: TaskStatus,
    ttl_key: &str,
    poll_key: &str,
    poll: Duration,
) {
    object.text("taskId", &task.id);
    object.text("status", name_of(status));
    object.text_if("statusMessage", Some(task.message.as_str()).filter(|message| !message.is_empty()));
    object.text("createdAt", &timestamp(task.created_ms));
    object.text("lastUpdatedAt", &timestamp(task.changed_ms));
    push_number(object.key(ttl_key), task.ttl_ms);
    push_number(object.key(poll_key), poll.as_millis());
}

/// The name of a status on the wire (2025-11-25 and the extension, "Task Status").
pub(crate) const fn name_of(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "input_required",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

/// A time in RFC 3339 format, in UTC.
fn timestamp(since_1970_ms: u64) -> String {
    let days = since_1970_ms / DAY_MS;
    let of_day = since_1970_ms % DAY_MS;
    let seconds = of_day / 1_000;
    let millis = of_day % 1_000;
    let (year, month, day) = civil(days);
    let hour = seconds / 3_600;
    let minute = seconds / 60 % 60;
    let second = seconds % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970, after Howard Hinnant's `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day comes last. An era has 400 years.
    let shifted = days.saturating_add(719_468);
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_868_799_001, "2000-02-29T23:59:59.001Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599_000, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(millis), text);
        }
    }

    const BODY: &str = r#""content":[{"type":"text","text":"a","_meta":DEEP}],"structuredContent":{"b":12345678901234567890123,"a":[-0,1e-400,0.1234567890123456789]},"isError":false"#;

    fn body() -> String {
        BODY.replace("DEEP", &format!("{{\"d\":{}{}}}", "[".repeat(127), "]".repeat(127)))
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_stored_result_comes_back_as_it_was_with_the_name_of_its_task() {
        let body = body();
        let related = r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#;
        for (stored, expected) in [
            (format!("{{{body}}}"), format!("{{{body},\"_meta\":{{{related}}}}}")),
            (
                format!("{{{body},\"_meta\":{{\"own\":1e400}}}}"),
                format!("{{{body},\"_meta\":{{\"own\":1e400,{related}}}}}"),
            ),
            (
                format!("{{\"resultType\":\"complete\",{body},\"_meta\":{{\"own\":1,\"{SERVER_INFO}\":{{}}}}}}"),
                format!("{{{body},\"_meta\":{{\"own\":1,{related}}}}}"),
            ),
        ] {
            assert_eq!(written(|out| push_legacy_result(out, &stored, "t")), expected);
        }
    }

    #[test]
    fn a_stored_result_has_a_type_for_a_modern_client() {
        let body = body();
        let typed = format!("{{\"resultType\":\"complete\",{body}}}");
        for stored in [&typed, &format!("{{{body}}}")] {
            assert_eq!(written(|out| push_modern_result(out, stored)), typed);
        }
    }
}
