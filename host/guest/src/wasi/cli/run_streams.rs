//! Standard input, output and error of one run.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcell_policy::{Invocation, Limit};

use crate::wasi::cli::capture::LogBudget;
use toolcell_wall::failure::LimitReached;

/// Bytes kept of the end of standard error. That is enough for a program's last message, and as
/// much as is useful to a model.
const LAST_WORDS_BYTES: usize = 4 << 10;

/// The standard streams, arguments and variables of one run.
pub(crate) struct RunStreams {
    pub(crate) invocation: Invocation,
    pub(crate) printed: Printed,
}

/// The output of a program.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    kept: Arc<Mutex<KeptOutput>>,
    log: LogBudget,
    /// Bytes that the answer may have if it is standard output; `None` if standard output is
    /// treated like standard error.
    stdout_bytes_max: Option<u64>,
    /// Standard error is part of the answer, too. Both share one bound.
    stderr_answers: bool,
}

#[derive(Debug, Default)]
struct KeptOutput {
    stdout: Vec<u8>,
    /// Standard error, if it is part of the answer.
    stderr: Vec<u8>,
    end: VecDeque<u8>,
}

impl Printed {
    pub(crate) fn new(log: LogBudget, stdout_bytes_max: Option<u64>) -> Self {
        Self { kept: Arc::default(), log, stdout_bytes_max, stderr_answers: false }
    }

    /// Makes standard error part of the answer, in addition to the log.
    pub(crate) fn with_stderr(self) -> Self {
        Self { stderr_answers: true, ..self }
    }

    /// Takes standard output, if it is the answer.
    pub(crate) fn stdout(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().stdout)
    }

    /// Takes standard error, if it is part of the answer.
    pub(crate) fn stderr(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().stderr)
    }

    /// The end of what was printed outside of the answer.
    pub(crate) fn last_words(&self) -> String {
        let mut kept = self.lock();
        let bytes = kept.end.make_contiguous();
        // Skip the rest of a character that was cut at the start.
        let start = bytes.iter().take(3).take_while(|byte| (**byte & 0xc0) == 0x80).count();
        String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).trim_end().to_owned()
    }

    /// The stream of standard output.
    pub(crate) fn out(&self) -> Stream {
        Stream { printed: self.clone(), is_stdout: true }
    }

    /// The stream of standard error.
    pub(crate) fn error(&self) -> Stream {
        Stream { printed: self.clone(), is_stdout: false }
    }

    fn answer(&self, bytes: &[u8], stream: fn(&mut KeptOutput) -> &mut Vec<u8>) -> Result<(), LimitReached> {
        let mut kept = self.lock();
        let length = kept.stdout.len().saturating_add(kept.stderr.len()).saturating_add(bytes.len()) as u64;
        if self.stdout_bytes_max.is_some_and(|max| length > max) {
            // Ends the run at once, since nothing that it prints after this can be used.
            return Err(LimitReached(Limit::Output));
        }
        stream(&mut kept).extend_from_slice(bytes);
        Ok(())
    }

    fn print(&self, bytes: &[u8]) {
        self.log.keep(bytes);
        let mut kept = self.lock();
        let new = bytes.get(bytes.len().saturating_sub(LAST_WORDS_BYTES)..).unwrap_or_default();
        let over = kept.end.len().saturating_add(new.len()).saturating_sub(LAST_WORDS_BYTES);
        kept.end.drain(..over);
        kept.end.extend(new);
    }

    /// A panic while printing leaves the kept bytes usable.
    fn lock(&self) -> MutexGuard<'_, KeptOutput> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Standard output or standard error.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    printed: Printed,
    is_stdout: bool,
}

impl Stream {
    pub(crate) fn print(&self, bytes: &[u8]) -> Result<(), LimitReached> {
        let printed = &self.printed;
        if self.is_stdout && printed.stdout_bytes_max.is_some() {
            return printed.answer(bytes, |kept| &mut kept.stdout);
        }
        printed.print(bytes);
        if !self.is_stdout && printed.stderr_answers {
            return printed.answer(bytes, |kept| &mut kept.stderr);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn printed(max: Option<u64>) -> Printed {
        Printed::new(LogBudget::new(8), max)
    }

    #[test]
    fn standard_output_is_the_answer_up_to_its_limit() {
        let printed = printed(Some(5));
        printed.out().print(b"abcde").unwrap();
        assert!(printed.out().print(b"f").is_err());
        printed.error().print(b"why").unwrap();
        assert_eq!((printed.stdout(), printed.last_words()), (b"abcde".to_vec(), "why".to_owned()));
        assert_eq!(printed.log.take().text, "why");
    }

    #[test]
    fn both_streams_have_the_bound_of_one_answer() {
        let printed = printed(Some(5)).with_stderr();
        printed.out().print(b"abc").unwrap();
        printed.error().print(b"no").unwrap();
        assert!(printed.error().print(b"!").is_err());
        assert_eq!((printed.stdout(), printed.stderr()), (b"abc".to_vec(), b"no".to_vec()));
        assert_eq!((printed.last_words(), printed.log.take().text), ("no!".to_owned(), "no!".to_owned()));
    }

    #[test]
    fn what_is_not_the_answer_goes_to_the_log_and_its_end_is_kept() {
        let printed = printed(None);
        printed.out().print(&[b'a'; LAST_WORDS_BYTES]).unwrap();
        printed.error().print("é and the end\n".as_bytes()).unwrap();
        let words = printed.last_words();
        assert!(words.starts_with("aaa") && words.ends_with("aé and the end"), "{words}");
        assert_eq!(words.len(), LAST_WORDS_BYTES - 1);
        printed.error().print(&"é".repeat(LAST_WORDS_BYTES).into_bytes()[1..]).unwrap();
        assert!(printed.last_words().chars().all(|c| c == 'é'), "no half characters");
        assert_eq!((printed.stdout(), printed.log.take().text), (Vec::new(), "a".repeat(8)));
    }
}
