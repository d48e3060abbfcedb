//! Connecting to permitted addresses.
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use toolcell_policy::AddressPermit;

/// Time for which one address is tried alone before the next is tried as well (RFC 8305, section
/// 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Connects to one of the permitted addresses: the first that answers, tried in order. The
/// permitted address is the one that is connected: no name is looked up here.
///
/// Dropping the future abandons every attempt.
///
/// # Errors
/// The last address's error; `AddrNotAvailable` without an address.
pub(crate) async fn dial(permits: Vec<AddressPermit>) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut attempts = JoinSet::new();
    let mut waiting = permits.into_iter();
    loop {
        match waiting.next() {
            // The only one needs no task of its own.
            Some(permit) if attempts.is_empty() && waiting.len() == 0 => match connect(permit.address()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            },
            Some(permit) => {
                attempts.spawn(connect(permit.address()));
            }
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        if attempts.is_empty() {
            continue;
        }
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = io::Error::other(error),
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => {}
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Requests are written at once: waiting to fill a segment would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}
