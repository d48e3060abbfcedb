//! State that is one for all replicas of a server: rates, approvals that were used, approvals that
//! are remembered. [`SharedState`] says what can be asked; [`Embedded`] answers for one process,
//! [`Valkey`] for all that name the same server. [`Kept`] has what tools keep there. Must not hold:
//! MCP, the manifest, or guests.
//!
//! Keys on the server. `PREFIX` is the manifest's, `1` the version of this table. `H` is the
//! SHA-256 of a name in hexadecimal digits, so that no name makes a key longer than 220 bytes. The
//! part in braces decides the slot of a cluster.
//!
//! | key | type | value | time to live |
//! |---|---|---|---|
//! | `PREFIX:1:rate:{H(caller)}:H(scope)` | string | seconds and microseconds of the server's clock when it was written, and the nanoseconds that were spent ahead of it then; ≤ 40 bytes | until the allowance is whole |
//! | `PREFIX:1:run:{H(name)}` | sorted set | random names of calls that run or ran a moment ago, by the milliseconds of the server's clock at which each is forgotten; each call is 40 bytes | 10 s, again every 3 s |
//! | `PREFIX:1:run:{H(name)}:wait` | hash | random name of a replica that waits for one → the microseconds since when, and at which it asked last; ≤ 60 bytes each | 1 s |
//! | `PREFIX:1:used:{H(name)}` | string | random name of who used it, 32 bytes | given with the use |
//! | `PREFIX:1:noted:{H(name)}` | string | `1` | given with the note |
//! | `PREFIX:1:set:{H(name)}` | sorted set | entries of a replicated set, ≤ 128 bytes each and ≤ 4,096, by the milliseconds of the server's clock at which each ends | until the last ends |
//! | `PREFIX:1:asked:{H(caller)}:H(name)` | string | `r` or `d`, the SHA-256 of the request, and who runs it (32 bytes) or its answer, ≤ 256 KiB | given with the beginning, or the answer |
//! | `PREFIX:1:asked:{H(caller)}` | sorted set | H(name) and the bytes of the answer, by the milliseconds of the server's clock at which each ends; ≤ 4,096, each ≤ 72 bytes | that of the last |
//! | `PREFIX:1:asked:{H(caller)}:bytes` | string | bytes of all these answers; none begins past 16 MiB | that of the last |
//! | `PREFIX:1:res:{all}:number` | string | number of the last resource that was kept | 31 min after the last |
//! | `PREFIX:1:res:{all}:one:NUMBER` | hash | a resource's `label` and `body`, ≤ 8 MiB | 31 min |
//! | `PREFIX:1:res:{all}:about` | hash | number → H(holder), H(origin), H(caller), H(address) and bytes of each resource; ≤ 300 bytes | 31 min after the last |
//! | `PREFIX:1:res:{all}:all` | sorted set | numbers by the milliseconds at which each ends; ≤ 16,384 | 31 min after the last |
//! | `PREFIX:1:res:{all}:holder:H(holder)`, `…:origin:H(holder):H(origin)`, `…:caller:H(caller)` | sorted set | numbers of theirs; ≤ 1,024, 256, 1,024 | 31 min after the last |
//! | `PREFIX:1:res:{all}:uri:H(holder)` | sorted set | H(address), H(origin) and number of each | 31 min after the last |
//! | `PREFIX:1:res:{all}:bytes:all`, `…:origin:H(holder):H(origin)`, `…:caller:H(caller)` | string | bytes of these; ≤ 256 MiB, 8 MiB, 16 MiB | 31 min after the last |
//! | `PREFIX:1:task:{all}:number` | string | number of the last task | time of the longest task, and a minute |
//! | `PREFIX:1:task:{all}:one:ID` | hash | a task's status, sentence, times, process, questions, answers, and result of ≤ 64 MiB | its time, and a minute |
//! | `PREFIX:1:task:{all}:about` | hash | ID → H(caller), number and bytes of each task; ≤ 120 bytes | that of the last, and a minute |
//! | `PREFIX:1:task:{all}:all`, `…:caller:H(caller)` | sorted set | IDs by the milliseconds at which each ends, or by number; bounds in the manifest | that of the last, and a minute |
//! | `PREFIX:1:task:{all}:bytes:all`, `…:bytes:caller:H(caller)` | string | bytes of arguments of running tasks and of results; bounds in the manifest | that of the last, and a minute |
//! | `PREFIX:1:task:{all}:process:NAME` | string | `1` while a process runs that has tasks, `0` once it has ended | 30 s, again every 3 s |
//! | `PREFIX:1:task:{all}:heard` | string | milliseconds of the server's clock at which one of them was heard | a day |
//! | `PREFIX:1:task:{all}:grace` | string | the last silence, by `heard`, and the milliseconds up to which none counts as ended that is not heard | a day |
//! | `PREFIX:1:paused:{all}:…` | | runs that wait for a person between two rounds, in the form of tasks that have ended; bounds in the manifest | `ask_wait`, and a minute |
//! | `PREFIX:1:kv:{H(component)}:entries:H(namespace/bucket)` | hash | a bucket's entries: key → value | none |
//! | `PREFIX:1:kv:{H(component)}:order:H(namespace/bucket)` | sorted set | its keys by the serial with which each was first set | none |
//! | `PREFIX:1:kv:{H(component)}:accounts` | hash | H(namespace) → bytes and number of its entries; ≤ 1,000 namespaces | none |
//! | `PREFIX:1:kv:{H(component)}:serial` | string | last serial given | none |
//! | `PREFIX:1:kv:{H(component)}:change:REQUEST` | string | answer to a request that was done, ≤ 20 bytes | twice the request's time |
//!
//! Channels on the server, over which [`Bus`] sends. They have no database: one server's databases
//! share them, so replicas in different databases need different prefixes.
//!
//! | channel | message |
//! |---|---|
//! | `PREFIX:1:bus:CHANNEL` | `1`, the version of this form, in one byte; a random number of 16 bytes, unlike any other message's; then ≤ 2 MiB |
//!
//! Each operation is one command or one script, so it is atomic, and one round trip. What tools
//! keep ([`Kept`]) is the only thing that does not end by itself.
#![forbid(unsafe_code)]

mod allowances;
mod away;
mod bus;
mod digest;
mod embedded;
mod local_replicated_sets;
mod local_tasks;
mod pace;
mod places;
mod requests;
mod state;
mod task_files;
mod task_form;
mod tasks;
mod valkey;

pub use allowances::Allowances;
pub use away::Away;
pub use bus::{Bus, EmbeddedBus, MESSAGE_BYTES_MAX, News, PublishError, Subscription};
pub use embedded::Embedded;
pub use local_tasks::LocalTasks;
pub use pace::{Allowance, Pace};
pub use places::Place;
pub use requests::{REQUEST_ANSWER_BYTES_MAX, Request};
pub use state::{
    AllowanceName, Begun, Claim, Claimed, Posted, REPLICATED_SET_ENTRIES_MAX, REPLICATED_SET_ENTRY_BYTES_MAX,
    SharedState, Taken,
};
pub use tasks::{
    Changed, Creation, LostTask, NewTask, SMALL_RESULT_BYTES, TaskBounds, TaskChange, TaskRecord, TaskStatus, Tasks,
};
pub use valkey::{
    Arrangement, BadAddress, Bucket, Kept, LABELS_BYTES_MAX, NotKept, OPERATION_WITHIN, Quota, SharedTasks, Shelf,
    Shelved, Valkey, ValkeyOptions,
};
