//! One operation: a command or a script, and its key.
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, ScriptInvocation, Value,
};

use super::options::Copies;

/// One operation.
#[derive(Clone, Copy)]
pub enum Operation<'a> {
    /// A command of the server.
    Command(&'a Cmd),
    /// A script. Its text is sent the first time, and again if the server has lost it.
    Script(&'a ScriptInvocation<'a>),
}

impl Operation<'_> {
    /// Runs it on this connection.
    pub async fn on<T: FromRedisValue>(self, connection: &mut (impl ConnectionLike + Send)) -> RedisResult<T> {
        match self {
            Self::Command(command) => command.query_async(connection).await,
            Self::Script(script) => script.invoke_async(connection).await,
        }
    }

    /// Its key; `None` if it has none.
    pub async fn key(self) -> Vec<u8> {
        match self {
            Self::Command(command) => key_of(command),
            Self::Script(script) => {
                // The client reveals the keys of a script only to a connection.
                let mut key = KeyOf(Vec::new());
                let _: RedisResult<Value> = script.invoke_async(&mut key).await;
                key.0
            }
        }
    }
}

/// The first word of a command.
fn name_of(command: &Cmd) -> &[u8] {
    match command.args_iter().next() {
        Some(Arg::Simple(bytes)) => bytes,
        _ => &[],
    }
}

/// The first key of a command: its first argument, or the first after the number of keys.
fn key_of(command: &Cmd) -> Vec<u8> {
    let mut arguments = command.args_iter().map(|argument| match argument {
        Arg::Simple(bytes) => bytes,
        _ => &[],
    });
    let is_script = arguments.next().is_some_and(|name| name.eq_ignore_ascii_case(b"EVALSHA"));
    arguments.nth(if is_script { 2 } else { 0 }).unwrap_or_default().to_vec()
}

/// A connection that records the first key of a command, and sends nothing.
struct KeyOf(Vec<u8>);

impl ConnectionLike for KeyOf {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0 = key_of(command);
        Box::pin(async { Err(unsent()) })
    }

    fn req_packed_commands<'a>(&'a mut self, _: &'a Pipeline, _: usize, _: usize) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async { Err(unsent()) })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

fn unsent() -> RedisError {
    RedisError::from((ErrorKind::Client, "nothing is sent"))
}

/// A connection that sends each command together with others.
pub struct Beside {
    pub connection: MultiplexedConnection,
    /// Before it, `ASKING`: its slot is moving to this node.
    pub is_asking: bool,
    /// After it, `WAIT` for these replicas.
    pub copies: Option<Copies>,
}

/// The prefix of the error if too few replicas have a write.
const TOO_FEW: &str = "too few copies have it in time";

/// True if an operation was done, and too few replicas have it.
pub fn is_of_too_few_copies(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Client && error.to_string().starts_with(TOO_FEW)
}

impl Beside {
    async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut all = redis::pipe();
        let mut count = 1;
        if self.is_asking {
            all.cmd("ASKING");
            count += 1;
        }
        all.add_command(command.clone());
        // Neither loading a script nor reading the slot table is a write.
        let copies = self.copies.filter(|_| !matches!(name_of(command), b"SCRIPT" | b"CLUSTER"));
        if let Some(Copies { count: copies, within }) = copies {
            all.cmd("WAIT").arg(copies).arg(u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
            count += 1;
        }
        let mut answers = self.connection.req_packed_commands(&all, 0, count).await?.into_iter();
        if self.is_asking {
            answers.next();
        }
        let answer = answers.next().unwrap_or(Value::Nil);
        match (copies, answers.next()) {
            // It was rejected, so there is nothing to replicate.
            _ if matches!(answer, Value::ServerError(_)) => Ok(answer),
            (None, _) => Ok(answer),
            (Some(copies), Some(Value::Int(have))) if have >= i64::from(copies.count) => Ok(answer),
            (Some(copies), Some(Value::Int(have))) => {
                Err(RedisError::from((ErrorKind::Client, TOO_FEW, format!("{have} of {}", copies.count))))
            }
            (Some(_), other) => other.unwrap_or(Value::Nil).extract_error(),
        }
    }
}

impl ConnectionLike for Beside {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.run(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}
