//! A running subject and the client's end of its stdin and stdout: pipes, or socketpairs as Node
//! gives to its children.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::frame::{self, Ask, Era, Reply};
use crate::subject::Subject;

/// Bytes that the client reads at once. 64 KiB is the capacity of a pipe.
const BLOCK_BYTES: usize = 64 * 1024;

/// The id of requests that open a conversation. It is above those of calls, which count from 0.
const OPENING_ID: u64 = 1 << 50;

/// The kind of a subject's stdin and stdout.
#[derive(Clone, Copy)]
pub enum Wire {
    /// One pipe for each.
    Pipes,
    /// One Unix socketpair for each.
    Sockets,
}

/// A running subject. Dropping this ends it.
pub struct Link {
    name: &'static str,
    child: Child,
    input: File,
    output: BufReader<File>,
    stderr: File,
    line: Vec<u8>,
    server: String,
}

impl Link {
    /// Starts a subject.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(subject: &Subject, wire: Wire) -> anyhow::Result<Self> {
        let stderr = tempfile::tempfile()?;
        let ((child_input, input), (output, child_output)) = match wire {
            Wire::Pipes => (pipe()?, pipe()?),
            Wire::Sockets => (sockets()?, sockets()?),
        };
        let child = subject
            .command()
            .stdin(Stdio::from(child_input))
            .stdout(Stdio::from(child_output))
            .stderr(Stdio::from(stderr.try_clone()?))
            .spawn()
            .with_context(|| format!("{} does not start", subject.program.display()))?;
        let output = BufReader::with_capacity(BLOCK_BYTES, File::from(output));
        Ok(Self {
            name: subject.name,
            child,
            input: File::from(input),
            output,
            stderr,
            line: Vec::new(),
            server: String::new(),
        })
    }

    /// Starts a subject and opens a legacy conversation.
    ///
    /// # Errors
    /// It does not start, or does not agree.
    pub fn open(subject: &Subject, wire: Wire) -> anyhow::Result<Self> {
        let mut link = Self::start(subject, wire)?;
        link.send(&frame::initialize(OPENING_ID))?;
        let reply: serde_json::Value = serde_json::from_slice(link.wait_for(OPENING_ID)?)?;
        let of = |key: &str| reply.pointer(&format!("/result/serverInfo/{key}")).and_then(serde_json::Value::as_str);
        link.server = format!("{} {}", of("name").unwrap_or_default(), of("version").unwrap_or_default());
        link.send(&frame::initialized())?;
        Ok(link)
    }

    /// The server's name and version, as it gave them when the conversation was opened.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The process id of the subject.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends these bytes.
    ///
    /// # Errors
    /// The subject does not read any more.
    pub fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if let Err(error) = self.input.write_all(bytes) {
            let said = self.said();
            bail!("{} does not read: {error}\n{said}", self.name);
        }
        Ok(())
    }

    /// The next line, with its newline.
    ///
    /// # Errors
    /// The subject ended.
    pub fn receive(&mut self) -> anyhow::Result<&[u8]> {
        self.line.clear();
        if self.output.read_until(b'\n', &mut self.line)? == 0 {
            let said = self.said();
            bail!("{} ended\n{said}", self.name);
        }
        Ok(&self.line)
    }

    /// The line received last.
    pub fn last(&self) -> &[u8] {
        &self.line
    }

    /// Skips lines until the reply with this id.
    ///
    /// # Errors
    /// The subject ended, or it sends lines that are not MCP.
    pub fn wait_for(&mut self, id: u64) -> anyhow::Result<&[u8]> {
        while Reply::read(self.receive()?)?.id != Some(id) {}
        Ok(&self.line)
    }

    /// Makes a request and returns the time until the right answer.
    ///
    /// # Errors
    /// The answer is wrong, or none comes.
    pub fn ask(&mut self, ask: Ask, id: u64, request: &mut Vec<u8>) -> anyhow::Result<Duration> {
        request.clear();
        ask.write(id, request)?;
        let begun = Instant::now();
        self.send(request)?;
        loop {
            self.receive()?;
            let took = begun.elapsed();
            if !ask.passes_over(&self.line) {
                ask.check(id, &self.line)?;
                return Ok(took);
            }
        }
    }

    /// Both halves, so that two threads can use one each.
    pub fn halves(&mut self) -> (&mut File, &mut BufReader<File>) {
        (&mut self.input, &mut self.output)
    }

    /// Waits until the subject ends by itself. A subject of one request does.
    ///
    /// # Errors
    /// It failed.
    pub fn ends(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "{} failed: {status}", self.name);
        Ok(())
    }

    /// The text it wrote to stderr.
    pub fn said(&mut self) -> String {
        let mut said = Vec::new();
        // This text goes into an error that is being reported; a part that cannot be read is left
        // out.
        let _ = self.stderr.seek(SeekFrom::Start(0)).and_then(|_| self.stderr.read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Both fail only if the child has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pipe() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((reader.into(), writer.into()))
}

fn sockets() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    let (one, other) = UnixStream::pair()?;
    Ok((one.into(), other.into()))
}

/// Checks that a modern conversation needs no opening.
///
/// # Errors
/// No answer comes, or a wrong one.
pub fn first_call(link: &mut Link, tool: &str, text: &str) -> anyhow::Result<()> {
    let params = serde_json::json!({"name": tool, "arguments": {"text": text}});
    link.send(&frame::modern(OPENING_ID, "tools/call", params))?;
    let reply: serde_json::Value = serde_json::from_slice(link.wait_for(OPENING_ID)?)?;
    let answered = reply.pointer("/result/content/0/text").and_then(serde_json::Value::as_str);
    anyhow::ensure!(answered == Some(text), "{tool} answered {reply}\n{}", link.said());
    Ok(())
}

/// Makes calls that a server of both tools should answer before it is measured. After them nothing
/// happens for the first time.
///
/// # Errors
/// A call gets a wrong answer.
pub fn warm_up(link: &mut Link, tools: &[frame::Tool], calls: u64) -> anyhow::Result<()> {
    let mut request = Vec::new();
    for id in 0..calls {
        for (tool, era) in tools.iter().flat_map(|tool| [(*tool, Era::Legacy), (*tool, Era::Modern)]) {
            link.ask(Ask::Call(tool, era), id, &mut request)?;
        }
    }
    Ok(())
}
