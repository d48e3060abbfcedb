//! Answers: documents, which are read whole, and layers, which are read in pieces at a minimum
//! rate.
use std::time::Duration;

use ::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use ::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::Instant;
use toolcell_outbound::{AnswerBody, shown};
use url::Url;

use crate::error::PullError;
use crate::settings::Bounds;

/// Most bytes of an error's body: registries send some hundreds.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Longest code of an error; those of the specification have up to 21 characters.
const CODE_CHARS_MAX: usize = 64;

/// The head of an answer, and its body while it arrives.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The address that answered, after all redirects.
    pub(crate) url: Url,
    body: AnswerBody,
    /// Deadline of a document.
    deadline: Instant,
    /// Time limit of a document.
    within: Duration,
}

impl Answer {
    pub(super) fn new(response: Response<AnswerBody>, url: Url, deadline: Instant, within: Duration) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, url, body, deadline, within }
    }

    /// The body's length, if the head states one.
    pub(crate) fn length(&self) -> Option<u64> {
        self.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// True if the body has a content coding, which was not requested.
    pub(crate) fn is_coded(&self) -> bool {
        self.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
    }

    /// The whole body of a document.
    ///
    /// # Errors
    /// [`PullError::TooLarge`] as soon as it exceeds the bound, [`PullError::Late`] and
    /// [`PullError::Broken`].
    pub(crate) async fn document(self, what: &'static str, bytes_max: usize) -> Result<Vec<u8>, PullError> {
        let max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        let too_large = PullError::TooLarge { host: shown(&self.url), what, max };
        if self.length().is_some_and(|length| length > max) {
            return Err(too_large);
        }
        match self.beginning(bytes_max).await? {
            (bytes, true) => Ok(bytes),
            (_, false) => Err(too_large),
        }
    }

    /// At most this many bytes from the beginning of a body, and whether that is all of it.
    ///
    /// # Errors
    ///
    /// [`PullError::Late`] and [`PullError::Broken`].
    pub(crate) async fn beginning(mut self, bytes_max: usize) -> Result<(Vec<u8>, bool), PullError> {
        let Self { deadline, within, .. } = self;
        let late = |_| PullError::Late { host: shown(&self.url), step: "send a document", within };
        let read = tokio::time::timeout_at(deadline, self.body.beginning(bytes_max)).await.map_err(late)?;
        read.map_err(|error| PullError::outbound(&self.url, error))
    }

    /// The error for this answer's status.
    pub(crate) async fn into_status_error(self) -> PullError {
        let host = shown(&self.url);
        let status = self.status.as_u16();
        let document = self.document("an error", ERROR_BYTES_MAX).await;
        PullError::Status { host, status, code: document.ok().as_deref().and_then(code) }
    }

    /// The next piece of a layer.
    pub(crate) async fn piece(&mut self, rate: &mut Rate) -> Result<Option<Bytes>, PullError> {
        loop {
            match tokio::time::timeout_at(rate.window_ends, self.body.piece()).await {
                Ok(Ok(Some(piece))) => {
                    rate.add(piece.len());
                    // With many small pieces, the timeout above never expires.
                    if Instant::now() >= rate.window_ends {
                        rate.end_of_window(&self.url)?;
                    }
                    return Ok(Some(piece));
                }
                Ok(end) => return end.map_err(|error| PullError::outbound(&self.url, error)),
                Err(_) => rate.end_of_window(&self.url)?,
            }
        }
    }
}

/// Measures the rate of a layer in windows of time. The caller bounds the total time.
pub(crate) struct Rate {
    bounds: Bounds,
    window_ends: Instant,
    bytes: u64,
}

impl Rate {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, window_ends: Instant::now() + bounds.rate_window, bytes: 0 }
    }

    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn end_of_window(&mut self, url: &Url) -> Result<(), PullError> {
        let Bounds { rate_window: within, rate_bytes: bytes, .. } = self.bounds;
        if self.bytes < bytes {
            return Err(PullError::Slow { host: shown(url), bytes, within });
        }
        self.bytes = 0;
        self.window_ends = Instant::now() + within;
        Ok(())
    }
}

/// The first error code of a registry (distribution specification, "Error Codes"). Its messages are
/// not shown: they could mislead.
fn code(document: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<OneError>,
    }
    #[derive(Deserialize)]
    struct OneError {
        code: String,
    }
    let errors: Errors = serde_json::from_slice(document).ok()?;
    let code = errors.errors.into_iter().next()?.code;
    let is_code = code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') && code.len() <= CODE_CHARS_MAX;
    (is_code && !code.is_empty()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_of_errors_are_shown() {
        let errors = |code: &str| format!(r#"{{"errors":[{{"code":"{code}","message":"m"}}]}}"#).into_bytes();
        assert_eq!(code(&errors("MANIFEST_INVALID")).as_deref(), Some("MANIFEST_INVALID"));
        assert_eq!(code(&errors("run this: sudo")), None);
        assert_eq!(code(&errors("")), None);
        assert_eq!(code(b"<html>"), None);
    }
}
