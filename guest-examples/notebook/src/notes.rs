//! The notes, and what each is called. To keep notes of your own, replace the files below `notes/` and this list.
//! Holds no searching.

/// A note of the runbook.
#[derive(Debug)]
pub struct Note {
    /// The last part of its URI.
    pub slug: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// One sentence on when to read it, also searched.
    pub summary: &'static str,
    /// When it was last changed, in ISO 8601.
    pub modified: &'static str,
    /// The note, in Markdown.
    pub text: &'static str,
    /// Files that belong to it.
    pub attachments: &'static [Attachment],
}

/// A file that belongs to a note.
#[derive(Debug)]
pub struct Attachment {
    /// Its name, the last part of its URI.
    pub name: &'static str,
    /// Such as `image/png`.
    pub mime_type: &'static str,
    /// The file.
    pub data: &'static [u8],
}

/// What every note's URI begins with.
const URI_BASE: &str = "note://runbook/";

/// All notes, by name.
pub const NOTES: &[Note] = &[
    Note {
        slug: "certificate-expired",
        title: "A certificate has expired",
        summary: "Browsers warn or TLS handshakes fail: expired, not yet valid, unknown issuer, wrong host name.",
        modified: "2026-01-19T14:05:00Z",
        text: include_str!("../notes/certificate-expired.md"),
        attachments: &[],
    },
    Note {
        slug: "database-connections",
        title: "The database has no connections left",
        summary: "Programs wait for or are refused a connection: too many clients, pool exhausted, Postgres slots.",
        modified: "2026-04-27T08:12:00Z",
        text: include_str!("../notes/database-connections.md"),
        attachments: &[Attachment {
            name: "connections.png",
            mime_type: "image/png",
            data: include_bytes!("../notes/database-connections.png"),
        }],
    },
    Note {
        slug: "disk-full",
        title: "A disk is full",
        summary: "Writes fail: no space left on device, out of inodes, quota exceeded.",
        modified: "2026-03-02T09:30:00Z",
        text: include_str!("../notes/disk-full.md"),
        attachments: &[],
    },
    Note {
        slug: "everything-slow",
        title: "Everything is slow and nothing is broken",
        summary: "Latency is up without errors: slow requests, timeouts, retries, high load.",
        modified: "2026-02-11T16:40:00Z",
        text: include_str!("../notes/everything-slow.md"),
        attachments: &[],
    },
    Note {
        slug: "incident-review",
        title: "Writing the review of an incident",
        summary: "After the incident: postmortem, timeline, causes, actions.",
        modified: "2025-11-24T10:00:00Z",
        text: include_str!("../notes/incident-review.md"),
        attachments: &[],
    },
    Note {
        slug: "roll-back",
        title: "Rolling back a release",
        summary: "A deploy made things worse: bad release, rollback, revert, error rate up since the deployment.",
        modified: "2026-05-06T12:20:00Z",
        text: include_str!("../notes/roll-back.md"),
        attachments: &[],
    },
];

impl Note {
    /// Its URI.
    pub fn uri(&self) -> String {
        format!("{URI_BASE}{}", self.slug)
    }

    /// Whether a caller who says this means this note: its URI or the last part of it.
    pub fn is_meant_by(&self, said: &str) -> bool {
        let said = said.trim();
        said.strip_prefix(URI_BASE).unwrap_or(said).eq_ignore_ascii_case(self.slug)
    }
}
