//! Addresses of the console, and the names of fields of its forms.
//!
//! | form | sent to | fields besides [`CSRF`] |
//! |---|---|---|
//! | stop a call | [`STOP`] | [`CALL`]: its number |
//! | try a tool | [`try_tool`] | those of [`form`](crate::form) |
//! | record the next calls of a tool | [`RECORD`] | [`TOOL`]: its name, [`CALLS`]: how many |
//! | end that | [`END_RECORDING`] | [`TOOL`] |
//! | allow what was denied | [`APPLY`] | [`KEY`]: the group |
//! | mute, unmute | [`MUTE`], [`UNMUTE`] | [`KEY`]: the group |
//! | read a component in quarantine | [`READ`] | [`COMPONENT`], [`DIGEST`] |
//! | run recorded calls with such a version | [`HOLD`] | [`COMPONENT`], [`DIGEST`] |
//! | approve a component | [`APPROVE`] | [`COMPONENT`], [`DIGEST`]; [`SIGNERS`]: `other`, where it is not signed as pinned |
//! | answer an approval | [`ANSWER_APPROVAL`] | [`KEY`]; [`ANSWER`]: `allow`, `run` with [`CALLS`], `remember` or `decline` |
//! | make a token | [`NEW_TOKEN`] | [`NAME`], [`SCOPES`]: words with spaces between, [`EXPIRES`]: a duration or empty |
//! | revoke a token | [`REVOKE_TOKEN`] | [`ID`] |
//! | revoke a caller's login | [`REVOKE_LOGIN`] | [`LOGIN`]; [`NAME`]: the caller |
//! | check the chain | [`CHECK_CHAIN`] | |
//! | sign in | [`SIGN_IN`] | [`TOKEN`]; not [`CSRF`], since there is no session yet |
//! | sign out | [`SIGN_OUT`] | |
//!
//! All forms that change something are sent with POST, and so is the one that checks the chain.
//! Searches are sent with GET.

use std::fmt::Write as _;

/// The view of what runs now.
pub const NOW: &str = "/";
/// The list of tools. Fields: [`QUERY`], [`PAGE`].
pub const TOOLS: &str = "/tools";
/// The view of denials. Field: [`COMPONENT`], where those of one are shown alone.
pub const DENIALS: &str = "/denials";
/// The view of changes.
pub const CHANGES: &str = "/changes";
/// The view of approvals.
pub const APPROVALS: &str = "/approvals";
/// The view of audit records. Fields: `tool`, `caller`, `outcome`, `since`, `until`, `text`,
/// [`BEFORE`].
pub const AUDIT: &str = "/audit";
/// Records as JSON Lines, with the fields of the search.
pub const EXPORT_JSONL: &str = "/audit/export.jsonl";
/// Records as CSV, with the fields of the search.
pub const EXPORT_CSV: &str = "/audit/export.csv";
/// The view of callers. Field: [`QUERY`], where those of some names are shown alone.
pub const CALLERS: &str = "/callers";
/// Events of a view, `text/event-stream`. Fields: [`VIEW`], and those of the view.
pub const EVENTS: &str = "/events";

/// Stops a call.
pub const STOP: &str = "/calls/stop";
/// Has the next calls of a tool recorded.
pub const RECORD: &str = "/recordings/begin";
/// Ends the recording of a tool's calls.
pub const END_RECORDING: &str = "/recordings/end";
/// Writes the rule into the manifest that allows what was denied.
pub const APPLY: &str = "/denials/apply";
/// Mutes a group of denials.
pub const MUTE: &str = "/denials/mute";
/// Unmutes a group of denials.
pub const UNMUTE: &str = "/denials/unmute";
/// Reads a component in quarantine, to show the differences.
pub const READ: &str = "/changes/read";
/// Runs recorded calls with the version of a component in quarantine.
pub const HOLD: &str = "/changes/hold";
/// Approves a component in quarantine.
pub const APPROVE: &str = "/changes/approve";
/// Answers a call that waits for a person.
pub const ANSWER_APPROVAL: &str = "/approvals/answer";
/// Makes a token.
pub const NEW_TOKEN: &str = "/callers/tokens/new";
/// Revokes a token.
pub const REVOKE_TOKEN: &str = "/callers/tokens/revoke";
/// Revokes a caller's login.
pub const REVOKE_LOGIN: &str = "/callers/logins/revoke";
/// Checks the chain of audit records.
pub const CHECK_CHAIN: &str = "/audit/verify";
/// The page where a person signs in, and where its form goes.
pub const SIGN_IN: &str = "/sign-in";
/// Signs out.
pub const SIGN_OUT: &str = "/sign-out";

/// The field with the token that proves that a form came from the console.
pub const CSRF: &str = "csrf";
/// The field with a call's number.
pub const CALL: &str = "call";
/// The field with the key of a group or of a waiting call.
pub const KEY: &str = "key";
/// The field with a component's name.
pub const COMPONENT: &str = "component";
/// The field with a digest.
pub const DIGEST: &str = "digest";
/// The field that approves other signers than the pinned ones, with the value [`OTHER_SIGNERS`].
pub const SIGNERS: &str = "signers";
/// The value of [`SIGNERS`].
pub const OTHER_SIGNERS: &str = "other";
/// The field with the name of a tool.
pub const TOOL: &str = "tool";
/// The field with a number of calls, which an answer allows or which are recorded.
pub const CALLS: &str = "calls";
/// The field with an answer: `allow`, `run`, `remember`, `decline`.
pub const ANSWER: &str = "answer";
/// The field with the name of a caller.
pub const NAME: &str = "name";
/// The field with the name of a login.
pub const LOGIN: &str = "login";
/// The field with scopes, spaces between.
pub const SCOPES: &str = "scopes";
/// The field with the lifetime of a token: `30d`, or empty.
pub const EXPIRES: &str = "expires";
/// The field with a token's id.
pub const ID: &str = "id";
/// The field with a token.
pub const TOKEN: &str = "token";
/// The field with a text that is searched for.
pub const QUERY: &str = "q";
/// The field with the number of a page.
pub const PAGE: &str = "page";
/// The field that says where a page of records begins.
pub const BEFORE: &str = "before";
/// The field with the name of a view.
pub const VIEW: &str = "view";

/// The page of a tool: `/tools/NAME`, the name as one segment.
#[must_use]
pub fn tool(name: &str) -> String {
    format!("{TOOLS}/{}", segment(name))
}

/// Where the form goes that tries a tool: `/tools/NAME/try`.
#[must_use]
pub fn try_tool(name: &str) -> String {
    format!("{}/try", tool(name))
}

/// The page of a call: `/audit/calls/ID`.
#[must_use]
pub fn call(id: &str) -> String {
    format!("{AUDIT}/calls/{}", segment(id))
}

/// An address with a query; fields without a value are left out.
#[must_use]
pub fn with_query(path: &str, fields: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let mut separator = '?';
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        address.push(separator);
        address.push_str(name);
        address.push('=');
        address.push_str(&segment(value));
        separator = '&';
    }
    address
}

/// A text percent-encoded, so that it is one segment of a path or one value of a query. Only the
/// unreserved characters of RFC 3986, section 2.3, stand for themselves. At most
/// [`SEGMENT_BYTES`] of the text are kept.
///
/// Browsers take `.` and `..` for folders, encoded or not: a tool of such a name has no page.
#[must_use]
pub fn segment(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes().take(SEGMENT_BYTES) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'.') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Bytes of a text that an address keeps: names of tools have at most 128.
pub const SEGMENT_BYTES: usize = 512;
