//! A steady load of calls through the balancer, and what came of each.
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::modern_meta;
use toolcell_tests::web::Ask;

use crate::site::RATE_PER_MINUTE;
use crate::troubles::Trouble;

/// Time for an answer before it counts as lost: longer than the longest pause, and than nginx
/// waits.
const ANSWERED_WITHIN: Duration = Duration::from_secs(90);

/// Pause of a caller between two calls, so that the machine has time for the replicas too.
const BETWEEN_CALLS: Duration = Duration::from_millis(10);

/// Callers of each kind.
const PLAIN: usize = 4;
const RATED: usize = 3;
const APPROVING: usize = 2;

/// Submissions of one approval at the same time.
const SUBMISSIONS: usize = 3;

/// Most unexpected answers that are shown.
const SHOWN_MAX: u64 = 3;

const AWAY: &str = "the state that replicas share cannot be reached; try again";

/// The answers, by what came of them.
#[derive(Debug)]
pub struct Counts {
    pub calls: AtomicU64,
    pub good: AtomicU64,
    /// Refused as the state is away.
    pub away: AtomicU64,
    /// Refused by the rate, or as the approval was used.
    pub refused: AtomicU64,
    /// Ended by the balancer or the replica's end, as the client sees.
    pub cut: AtomicU64,
    pub lost: AtomicU64,
    /// Approvals that were used more than once.
    pub doubled: AtomicU64,
    pub wrong: AtomicU64,
    pub approvals: AtomicU64,
    /// Calls that the rate let through.
    rated: AtomicU64,
    longest_ms: AtomicU64,
    /// Longest time without a good answer to anybody.
    gap_ms: AtomicU64,
    last_good: Mutex<Instant>,
    began: Instant,
    took_ms: AtomicU64,
}

/// One answer.
enum Answer {
    Result(Value),
    Cut,
    Lost,
}

impl Counts {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let now = Instant::now();
        Self {
            calls: zero(),
            good: zero(),
            away: zero(),
            refused: zero(),
            cut: zero(),
            lost: zero(),
            doubled: zero(),
            wrong: zero(),
            approvals: zero(),
            rated: zero(),
            longest_ms: zero(),
            gap_ms: zero(),
            last_good: Mutex::new(now),
            began: now,
            took_ms: zero(),
        }
    }

    /// Calls through this balancer until `trouble` returns, and for a second after.
    pub fn during(balancer: SocketAddr, trouble: impl FnOnce()) -> Self {
        let counts = Self::new();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let kinds = [
                (PLAIN, Self::plain as fn(&Self, SocketAddr, u64)),
                (RATED, Self::rated),
                (APPROVING, Self::approving),
            ];
            for (number, kind) in
                kinds.into_iter().flat_map(|(count, kind)| std::iter::repeat_n(kind, count)).enumerate()
            {
                let counts = &counts;
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut call = (number as u64) << 32;
                    while !is_over.load(Ordering::Relaxed) {
                        kind(counts, balancer, call);
                        call += 1;
                        std::thread::sleep(BETWEEN_CALLS);
                    }
                });
            }
            trouble();
            is_over.store(true, Ordering::Relaxed);
        });
        counts.took_ms.store(millis(counts.began.elapsed()), Ordering::Relaxed);
        counts
    }

    fn plain(&self, balancer: SocketAddr, number: u64) {
        let text = format!("call {number}");
        let answer = self.ask(balancer, &Ask::call("echo", json!({"text": text})));
        self.count(answer, &text);
    }

    fn rated(&self, balancer: SocketAddr, number: u64) {
        let text = format!("rated {number}");
        let answer = self.ask(balancer, &Ask::call("rated_echo", json!({"text": text})));
        self.rated.fetch_add(u64::from(self.count(answer, &text)), Ordering::Relaxed);
    }

    /// Asks for an approval, and submits it several times at once.
    fn approving(&self, balancer: SocketAddr, number: u64) {
        let text = format!("asked {number}");
        let asked = self.ask(balancer, &approval(&text, None));
        let state = match &asked {
            Answer::Result(result) if result["resultType"] == "input_required" => result["requestState"].clone(),
            _ => {
                self.count(asked, &text);
                return;
            }
        };
        add(&self.good);
        add(&self.approvals);
        let again = approval(&text, Some(&state));
        let used: u64 = std::thread::scope(|scope| {
            let submit = || u64::from(self.count(self.ask(balancer, &again), &text));
            let submissions: Vec<_> = (0..SUBMISSIONS).map(|_| scope.spawn(submit)).collect();
            submissions.into_iter().map(|submission| submission.join().unwrap()).sum()
        });
        self.doubled.fetch_add(u64::from(used > 1), Ordering::Relaxed);
    }

    /// Counts an answer. True if it is a result with this text.
    fn count(&self, answer: Answer, expected: &str) -> bool {
        let result = match answer {
            Answer::Cut => return add(&self.cut),
            Answer::Lost => return add(&self.lost),
            Answer::Result(result) => result,
        };
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        match result["isError"] == true {
            false if text == expected => {
                add(&self.good);
                let mut last = self.last_good.lock().unwrap();
                self.gap_ms.fetch_max(millis(last.elapsed()), Ordering::Relaxed);
                *last = Instant::now();
                true
            }
            true if text == AWAY => add(&self.away),
            true if text.starts_with("too many calls") || text.contains("was used already") => add(&self.refused),
            _ => {
                if self.wrong.fetch_add(1, Ordering::Relaxed) < SHOWN_MAX {
                    let _ = writeln!(std::io::stderr(), "chaos: not {expected:?}: {result}");
                }
                false
            }
        }
    }

    fn ask(&self, balancer: SocketAddr, ask: &Ask) -> Answer {
        let began = Instant::now();
        add(&self.calls);
        let answer = answer(balancer, ask);
        self.longest_ms.fetch_max(millis(began.elapsed()), Ordering::Relaxed);
        answer
    }

    /// Most calls that the rate may have let through.
    fn rated_max(&self) -> u64 {
        let came_back = self.took_ms.load(Ordering::Relaxed) * RATE_PER_MINUTE / 60_000 + 1;
        (RATE_PER_MINUTE + came_back) * 101 / 100
    }

    /// True if nothing was lost, doubled or wrong, and nothing cut off but by a replica's end.
    pub fn is_good(&self, trouble: &Trouble) -> bool {
        let none = |count: &AtomicU64| count.load(Ordering::Relaxed) == 0;
        none(&self.lost)
            && none(&self.doubled)
            && none(&self.wrong)
            && (none(&self.cut) || trouble.stops_replicas())
            && !none(&self.approvals)
            && self.rated.load(Ordering::Relaxed) <= self.rated_max()
    }

    /// The head of the table.
    pub fn head() -> String {
        "| trouble | calls | good | refused: state away | refused: rate, used approval | cut off | lost | \
         approvals | used twice | wrong | passed the rate, at most | longest wait | longest gap |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned()
    }

    /// One row of it.
    pub fn row(&self, trouble: &Trouble) -> String {
        let counts = [&self.calls, &self.good, &self.away, &self.refused, &self.cut, &self.lost, &self.approvals];
        let counts = counts.into_iter().chain([&self.doubled, &self.wrong]);
        let counts: Vec<String> = counts.map(|count| count.load(Ordering::Relaxed).to_string()).collect();
        let seconds = |ms: &AtomicU64| Duration::from_millis(ms.load(Ordering::Relaxed));
        format!(
            "| {} | {} | {}, {} | {:.1?} | {:.1?} |\n",
            trouble.name(),
            counts.join(" | "),
            self.rated.load(Ordering::Relaxed),
            self.rated_max(),
            seconds(&self.longest_ms),
            seconds(&self.gap_ms)
        )
    }
}

/// A call that needs an approval, with the state of its first round if this is the second.
fn approval(text: &str, state: Option<&Value>) -> Ask {
    let mut params = json!({"name": "asked_echo", "arguments": {"text": text}, "_meta": modern_meta()});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    if let Some(state) = state {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"toolcell.approval": {"action": "accept"}});
    }
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
    Ask::call("asked_echo", json!({})).saying(&body)
}

/// Asks on a connection of its own.
fn answer(balancer: SocketAddr, ask: &Ask) -> Answer {
    let Ok(mut stream) = TcpStream::connect(balancer) else { return Answer::Cut };
    let began = Instant::now();
    let timely = stream.set_read_timeout(Some(ANSWERED_WITHIN));
    let ask = ask.clone().with("connection", "close");
    if timely.is_err() || stream.write_all(&ask.bytes()).is_err() {
        return Answer::Cut;
    }
    let mut bytes = Vec::new();
    let read = BufReader::new(stream).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    // A frame is one line, as the whole body, in a chunk, or as an event.
    let line = text.lines().find_map(|line| line.get(line.find('{')?..));
    let frame = line.and_then(|line| serde_json::from_str::<Value>(line.trim_end()).ok());
    match frame.map(|mut frame| frame["result"].take()) {
        Some(result) if !result.is_null() => Answer::Result(result),
        _ if read.is_err() && began.elapsed() >= ANSWERED_WITHIN => Answer::Lost,
        _ => {
            if text.starts_with("HTTP/1.1 5") || text.is_empty() || read.is_err() {
                return Answer::Cut;
            }
            Answer::Result(json!({"unexpected": text}))
        }
    }
}

/// Adds one. Always false: it is no good answer.
fn add(count: &AtomicU64) -> bool {
    count.fetch_add(1, Ordering::Relaxed);
    false
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
