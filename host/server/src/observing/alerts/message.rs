//! The message of an alert, signed according to Standard Webhooks 1.0.
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::json;
use toolcell_audit::timestamp;

use super::Alert;
use crate::replicas::random_name;

/// Beginning of a key that is written in base64 ("Signature scheme", "Symmetric").
const BASE64_KEY: &str = "whsec_";

/// Least bytes of a key, as the specification says.
const KEY_BYTES_MIN: usize = 24;

/// Longest key in bytes: the specification says 64; HMAC hashes longer keys itself.
const KEY_BYTES_MAX: usize = 1_024;

/// Characters of a subject that are sent.
const SUBJECT_CHARS_MAX: usize = 256;

/// The key that signs messages.
pub(super) struct Signer(hmac::Key);

/// A message, the same for each attempt to send it.
pub(super) struct AlertMessage {
    /// `webhook-id`.
    pub(super) id: String,
    pub(super) body: String,
}

impl Signer {
    /// The key of a secret. `Err` is one sentence.
    pub(super) fn new(secret: &str) -> Result<Self, String> {
        let secret = secret.trim();
        let decoded = match secret.strip_prefix(BASE64_KEY) {
            Some(text) => {
                STANDARD.decode(text).map_err(|_| "what follows whsec_ in secret is not base64".to_owned())?
            }
            None => secret.as_bytes().to_vec(),
        };
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&decoded.len()) {
            return Err(format!("secret has {} bytes, {KEY_BYTES_MIN} to {KEY_BYTES_MAX} are allowed", decoded.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &decoded)))
    }

    /// The value of `webhook-signature`: over id, time and body.
    pub(super) fn signature(&self, message: &AlertMessage, seconds: u64) -> String {
        let signed = format!("{}.{seconds}.{}", message.id, message.body);
        format!("v1,{}", STANDARD.encode(hmac::sign(&self.0, signed.as_bytes())))
    }
}

impl AlertMessage {
    /// The message of an alert. `None` if there are no random numbers for its id.
    pub(super) fn of(alert: &Alert<'_>) -> Option<Self> {
        let id = random_name()?;
        let subject: String = alert.subject.chars().take(SUBJECT_CHARS_MAX).collect();
        let body = json!({
            "type": "toolcell.alert.raised",
            "timestamp": timestamp(SystemTime::now()),
            "data": {
                "rule": alert.rule.name(), "subject": subject, "count": alert.count,
                "window_seconds": alert.window_seconds, "version": env!("CARGO_PKG_VERSION"),
            },
        });
        Some(Self { id: format!("msg_{id}"), body: body.to_string() })
    }
}

/// The value of `webhook-timestamp` now.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observing::alerts::AlertRule;

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example of the specification.
        let signer = Signer::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let message =
            AlertMessage { id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(), body: "{\"test\": 2432232314}".to_owned() };
        assert_eq!(signer.signature(&message, 1_614_265_330), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        for secret in ["short", "whsec_!", "whsec_AAAA", &"x".repeat(2_000)] {
            assert!(Signer::new(secret).is_err(), "{secret}");
        }
        assert!(Signer::new(&"x".repeat(24)).is_ok());
    }

    #[test]
    fn a_message_has_a_bound() {
        let subject = "\u{1}".repeat(10_000);
        let alert = Alert { rule: AlertRule::Refusals, subject: &subject, count: u64::MAX, window_seconds: u64::MAX };
        let message = AlertMessage::of(&alert).unwrap();
        assert!(message.body.len() < 2_048, "{}", message.body.len());
        let other = AlertMessage::of(&alert).unwrap();
        assert!(message.id.len() == 36 && message.id != other.id);
    }
}
