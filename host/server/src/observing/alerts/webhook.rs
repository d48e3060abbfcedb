//! Sends the messages of alerts, one after the other, within bounds.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::Request;
use ::http::header::CONTENT_TYPE;
use hyper::body::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use toolcell_outbound::{OutboundBounds, OutboundClient, Reach};
use toolcell_policy::AdvisedFault;

use super::message::{self, AlertMessage, Signer};
use super::{Alert, AlertRule};
use crate::owned_task::OwnedTask;

/// Messages that wait to be sent; further ones are dropped. Each rule and subject has at most one
/// per cooldown.
const WAITING_MAX: usize = 64;

/// Messages about refusals that wait: those of a minute. They have their own bound, so that
/// strangers cannot displace a message about a tool.
const REFUSALS_WAITING_MAX: usize = 16;

/// Bounds of one attempt. Only the status of the answer matters.
const BOUNDS: OutboundBounds =
    OutboundBounds { connect: Duration::from_secs(5), whole: Duration::from_secs(10), body_bytes: 64 * 1024 };

/// Times between attempts: for a glitch, a restart, a deployment.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];

/// Sends messages until dropped.
pub(super) struct Webhook {
    waiting: Sender<AlertMessage>,
    refusals: Sender<AlertMessage>,
    ends: Arc<MessageCounts>,
    _task: OwnedTask,
}

#[derive(Default)]
struct MessageCounts {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

struct WebhookSending {
    url: String,
    client: OutboundClient,
    signer: Signer,
    ends: Arc<MessageCounts>,
}

impl Webhook {
    /// Starts sending. `Err` is a sentence and advice.
    pub(super) fn start(url: &str, secret: &str, private: bool, runtime: &Handle) -> Result<Self, AdvisedFault> {
        let signer = signer(secret)?;
        let client = OutboundClient::new([url], BOUNDS).map_err(|error| AdvisedFault::unadvised(error.to_string()))?;
        let client = client.reaching(if private { Reach::Private } else { Reach::Public });
        let (waiting, messages) = channel(WAITING_MAX);
        let (refusals, refused) = channel(REFUSALS_WAITING_MAX);
        let ends = Arc::<MessageCounts>::default();
        let sending = WebhookSending { url: url.to_owned(), client, signer, ends: Arc::clone(&ends) };
        let task = OwnedTask(runtime.spawn(sending.run(messages, refused)));
        Ok(Self { waiting, refusals, ends, _task: task })
    }

    /// Sends a message, unless too many wait.
    pub(super) fn send(&self, alert: &Alert<'_>) {
        let places = if alert.rule == AlertRule::Refusals { &self.refusals } else { &self.waiting };
        let sent = AlertMessage::of(alert).is_some_and(|message| places.try_send(message).is_ok());
        if !sent {
            self.ends.dropped.fetch_add(1, Ordering::Relaxed);
            let rule: AlertRule = alert.rule;
            tracing::warn!("the message of an alert ({}) is dropped: too many wait", rule.name());
        }
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        let MessageCounts { sent, failed, dropped } = &*self.ends;
        [("sent", sent), ("failed", failed), ("dropped", dropped)]
            .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }
}

/// The key of a secret. `Err` is a sentence and advice.
pub(super) fn signer(secret: &str) -> Result<Signer, AdvisedFault> {
    let hint = "write a key of at least 24 bytes, such as `openssl rand -base64 32` prints";
    Signer::new(secret).map_err(|problem| AdvisedFault::new(problem, hint))
}

impl WebhookSending {
    /// Sends all messages, those about refusals last.
    async fn run(self, mut messages: Receiver<AlertMessage>, mut refusals: Receiver<AlertMessage>) {
        loop {
            let message = tokio::select! {
                biased;
                Some(message) = messages.recv() => message,
                Some(message) = refusals.recv() => message,
                else => return,
            };
            match self.deliver(&message).await {
                Ok(()) => _ = self.ends.sent.fetch_add(1, Ordering::Relaxed),
                Err(problem) => {
                    self.ends.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!("an alert was not delivered: {problem}");
                }
            }
        }
    }

    /// Sends a message until it is accepted. `Err` is the last problem.
    async fn deliver(&self, message: &AlertMessage) -> Result<(), String> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let (problem, may_help) = match self.attempt(message).await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            match pauses.next().filter(|_| may_help) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(problem),
            }
        }
    }

    /// Sends it once. `Err` is the problem, and true if another attempt may help.
    async fn attempt(&self, message: &AlertMessage) -> Result<(), (String, bool)> {
        let seconds = message::now();
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", self.signer.signature(message, seconds))
            .body(Bytes::from(message.body.clone()));
        let request = request.map_err(|error| (error.to_string(), false))?;
        let answer = self.client.send(request).await.map_err(|error| {
            let may_help = !error.is_refused();
            (error.to_string(), may_help)
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let may_help = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        Err((format!("its status is {}", status.as_u16()), may_help))
    }
}
