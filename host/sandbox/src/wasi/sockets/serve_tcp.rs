//! The host's side of a TCP connection.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use toolcell_policy::{Capability, Limit};
use toolcell_wall::doors::decode;
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{SendsNoMore, SocketCode, TcpReply, TcpWanted, can_connect};
use toolcell_walls::door::{DATA_BYTES_MAX, DoorError, DoorFrame, FrameReader, FrameWriter};

use super::Deciding;
use super::applied::apply;
use super::code::code_of;
use crate::wasi::net::{CallNet, MeteredStream, OverDirection};

/// Time for sending the last bytes of a call that has ended.
const LAST_BYTES_WAIT: Duration = Duration::from_secs(1);

/// Connects to where the guest may, and forwards what both sides send, charged to the call.
pub(crate) async fn serve(
    deciding: Deciding<'_>,
    TcpWanted { to, six, options }: TcpWanted,
    reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    if !deciding.net.socket() {
        return writer.message(&TcpReply::Refused(SocketCode::NewSocketLimit)).await;
    }
    if !deciding.permits(Capability::Tcp, to) {
        return writer.message(&TcpReply::Refused(SocketCode::AccessDenied)).await;
    }
    if !can_connect(to, six) {
        return writer.message(&TcpReply::Refused(SocketCode::InvalidArgument)).await;
    }
    let connected = connect(to, &options).await.and_then(|stream| Ok((stream.local_addr()?, stream)));
    let (local, stream) = match connected {
        Ok(connected) => connected,
        Err(error) => return writer.message(&TcpReply::Refused(code_of(&error))).await,
    };
    writer.message(&TcpReply::Connected(local)).await?;
    let (from_server, to_server) = tokio::io::split(MeteredStream::new(stream, Arc::clone(deciding.net)));
    let writer = Arc::new(Mutex::new(writer));
    // What the guest sent last is still sent after its call has ended. The kernel would do the same
    // for a socket of its own.
    let up = tokio::spawn(up(Arc::clone(deciding.net), reader, to_server, Arc::clone(&writer)));
    let up = async { up.await.unwrap_or(Err(DoorError::Closed)) };
    tokio::try_join!(up, down(deciding.net, from_server, &writer))?;
    Ok(())
}

/// Connects to exactly the address that was decided on.
async fn connect(to: SocketAddr, options: &SocketOptions) -> io::Result<TcpStream> {
    let socket = if to.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    apply(options, &socket, to.is_ipv6());
    socket.connect(to).await
}

/// From the guest to the server, until the guest or its call ends.
async fn up(
    net: Arc<CallNet>,
    mut reader: FrameReader,
    mut server: impl AsyncWrite + Unpin,
    writer: Arc<Mutex<FrameWriter>>,
) -> Result<(), DoorError> {
    let mut sending = std::pin::pin!(send(&net, &mut reader, &mut server, &writer));
    tokio::select! {
        biased;
        sent = &mut sending => sent,
        () = net.ended() => tokio::time::timeout(LAST_BYTES_WAIT, sending).await.unwrap_or(Ok(())),
    }
}

async fn send(
    net: &CallNet,
    reader: &mut FrameReader,
    server: &mut (impl AsyncWrite + Unpin),
    writer: &Mutex<FrameWriter>,
) -> Result<(), DoorError> {
    loop {
        match reader.frame(DATA_BYTES_MAX).await? {
            Some(DoorFrame::Data(data)) => {
                if let Err(error) = server.write_all(&data).await {
                    return broken(net, &error, writer).await;
                }
            }
            Some(DoorFrame::Message(message)) => {
                let SendsNoMore = decode(&message)?;
                // A connection that is already gone needs no end.
                let _ = server.shutdown().await;
                return Ok(());
            }
            None => return Err(DoorError::Closed),
        }
    }
}

/// From the server to the guest.
async fn down(net: &CallNet, mut server: impl AsyncRead + Unpin, writer: &Mutex<FrameWriter>) -> Result<(), DoorError> {
    loop {
        let mut data = BytesMut::with_capacity(DATA_BYTES_MAX);
        match server.read_buf(&mut data).await {
            Ok(0) => return writer.lock().await.message(&TcpReply::Ended).await,
            Ok(_) => writer.lock().await.data(data.freeze()).await?,
            Err(error) => return broken(net, &error, writer).await,
        }
    }
}

/// Sends the guest the reason for the end, and ends both directions.
async fn broken(net: &CallNet, error: &io::Error, writer: &Mutex<FrameWriter>) -> Result<(), DoorError> {
    let over = (error.kind() == io::ErrorKind::QuotaExceeded).then(|| net.over()).flatten();
    let said = match over {
        Some(OverDirection::Egress) => TcpReply::Over(Limit::Egress.spec().key.to_owned()),
        Some(OverDirection::Ingress) => TcpReply::Over(Limit::Ingress.spec().key.to_owned()),
        None => TcpReply::Broken(code_of(error)),
    };
    writer.lock().await.message(&said).await?;
    Err(DoorError::Closed)
}
