//! The answer to one request while it comes: one JSON text, or a stream of events with one in each.

/// Bounds of one answer.
#[derive(Clone, Copy, Debug)]
pub struct AnswerBounds {
    /// Most bytes of one message.
    pub message_bytes: usize,
    /// Most bytes of the whole answer.
    pub whole_bytes: usize,
}

/// Why an answer is not read on. It shows as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// Neither JSON nor events: the media type that came.
    Media(String),
    /// A message, or the whole, is longer than this many bytes.
    TooLong(usize),
}

/// Takes the bytes of an answer, and gives the messages in it.
#[derive(Debug)]
pub struct Answers {
    bounds: AnswerBounds,
    /// False: the whole body is one message.
    has_events: bool,
    taken_bytes: usize,
    /// The line or the body that is being read.
    line: Vec<u8>,
    /// The data of the event that is being read.
    data: Vec<u8>,
    has_data: bool,
    /// True unless the event has another type.
    is_message: bool,
    is_after_return: bool,
}

impl std::fmt::Display for NotAnswered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Media(media) => write!(formatter, "answers with {media:?}, and not with JSON or events"),
            Self::TooLong(bytes) => write!(formatter, "answers with more than {bytes} bytes"),
        }
    }
}

impl Answers {
    /// An answer of this `Content-Type`.
    ///
    /// # Errors
    /// [`NotAnswered::Media`].
    pub fn of(content_type: &str, bounds: AnswerBounds) -> Result<Self, NotAnswered> {
        let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let has_events = match media.as_str() {
            "application/json" => false,
            "text/event-stream" => true,
            _ => return Err(NotAnswered::Media(media.chars().take(80).collect())),
        };
        Ok(Self {
            bounds,
            has_events,
            taken_bytes: 0,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_message: true,
            is_after_return: false,
        })
    }

    /// Takes the next bytes, and gives the messages that are whole now.
    ///
    /// # Errors
    /// [`NotAnswered::TooLong`].
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<String>, NotAnswered> {
        self.taken_bytes = self.taken_bytes.saturating_add(bytes.len());
        if self.taken_bytes > self.bounds.whole_bytes {
            return Err(NotAnswered::TooLong(self.bounds.whole_bytes));
        }
        let mut messages = Vec::new();
        if self.has_events {
            for byte in bytes {
                self.byte(*byte, &mut messages);
                self.check_length()?;
            }
        } else {
            self.line.extend_from_slice(bytes);
            self.check_length()?;
        }
        Ok(messages)
    }

    /// The message of a body that is one, once it has ended. An event that is cut off is dropped.
    #[must_use]
    pub fn end(self) -> Option<String> {
        (!self.has_events).then(|| String::from_utf8_lossy(&self.line).into_owned())
    }

    fn check_length(&self) -> Result<(), NotAnswered> {
        let bytes_max = self.bounds.message_bytes;
        if self.line.len() > bytes_max || self.data.len() > bytes_max {
            return Err(NotAnswered::TooLong(bytes_max));
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8, messages: &mut Vec<String>) {
        let is_second_of_pair = std::mem::replace(&mut self.is_after_return, byte == b'\r') && byte == b'\n';
        match byte {
            b'\n' if is_second_of_pair => {}
            b'\n' | b'\r' => self.line(messages),
            _ => self.line.push(byte),
        }
    }

    fn line(&mut self, messages: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let has_data = std::mem::take(&mut self.has_data);
            if std::mem::replace(&mut self.is_message, true) && has_data && !data.is_empty() {
                messages.push(String::from_utf8_lossy(&data).into_owned());
            }
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let name = line.get(..colon).unwrap_or_default();
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.is_message = value == b"message",
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BOUNDS: AnswerBounds = AnswerBounds { message_bytes: 20, whole_bytes: 200 };

    #[test]
    fn events_are_messages_however_their_bytes_come() {
        let text = "\u{feff}: ping\nid: 1\ndata:\n\ndata: {\"a\":\ndata:1}\r\n\r\nevent: other\ndata: no\n\nevent: message\rdata: {}\r\rdata: cut";
        for size in 1..text.len() {
            let mut answers = Answers::of("Text/Event-Stream; charset=utf-8", BOUNDS).unwrap();
            let messages: Vec<String> =
                text.as_bytes().chunks(size).flat_map(|bytes| answers.take(bytes).unwrap()).collect();
            assert_eq!(messages, ["{\"a\":\n1}", "{}"], "{size}");
            assert_eq!(answers.end(), None);
        }
    }

    #[test]
    fn a_body_of_json_is_one_message() {
        let mut answers = Answers::of("application/json", BOUNDS).unwrap();
        assert_eq!(answers.take(b"{\"a\"").unwrap(), Vec::<String>::new());
        answers.take(b":1}").unwrap();
        assert_eq!(answers.end().as_deref(), Some("{\"a\":1}"));
        assert_eq!(Answers::of("text/html", BOUNDS).unwrap_err(), NotAnswered::Media("text/html".to_owned()));
    }

    #[test]
    fn no_message_and_no_answer_grows_without_end() {
        for media in ["application/json", "text/event-stream"] {
            let mut answers = Answers::of(media, BOUNDS).unwrap();
            assert_eq!(answers.take(&[b'a'; 21]), Err(NotAnswered::TooLong(20)), "{media}");
        }
        let mut answers = Answers::of("text/event-stream", BOUNDS).unwrap();
        assert_eq!(answers.take(b"data: 0123456789\ndata: 0123456789\n"), Err(NotAnswered::TooLong(20)));
        let mut answers = Answers::of("text/event-stream", BOUNDS).unwrap();
        let comments = ": and so on\n".repeat(20);
        assert_eq!(answers.take(comments.as_bytes()), Err(NotAnswered::TooLong(200)));
    }
}
