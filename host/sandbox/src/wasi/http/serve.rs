//! The host's side of a request from a sandbox process. From here on it is like any other.
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http_body::{Body, Frame as BodyFrame, SizeHint};
use http_body_util::BodyExt as _;
use toolcell_wall::doors::decode;
use toolcell_wall::doors::http::{BodyEnd, HeaderFields, HttpSaid, RequestHead, ResponseHead};
use toolcell_wall::doors::http_fault::HttpFault;
use toolcell_walls::door::{DoorError, DoorFrame, FrameReader, FrameWriter};

use super::exchange::BodyTask;
use super::requests::{CallRequests, HttpBody};
use crate::wasi::doors::Misuse;
use crate::wasi::net::CallNet;

/// Makes the request that a door was opened for, and sends its response back.
pub(crate) async fn serve(
    requests: &CallRequests,
    net: &CallNet,
    misuse: &Misuse,
    head: RequestHead,
    reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    let message_bytes_max = net.limits().head_bytes_max();
    let left_bytes = head.body_bytes;
    let ended = left_bytes == Some(0);
    let body = GuestBody { reader, message_bytes_max, left_bytes, ended, misuse: misuse.clone() };
    let request = head.into_request(body.boxed_unsync());
    let (request, waits) = request.ok_or(DoorError::Wrong("a request's head is malformed"))?;
    match requests.send(request, waits).await {
        Ok((response, worker)) => {
            let (parts, mut body) = response.into_parts();
            answer(&mut writer, parts, &mut body, worker).await?;
            drop(writer);
            // Its turn is taken until the guest is done with it and closes the door.
            let _turn = body;
            std::future::pending().await
        }
        Err(error) => writer.message(&HttpSaid::Failed(error)).await,
    }
}

/// Sends a response, and runs its task.
async fn answer(
    writer: &mut FrameWriter,
    parts: Parts,
    body: &mut HttpBody,
    worker: BodyTask,
) -> Result<(), DoorError> {
    let mut sending = pin!(async {
        let whole = body.is_end_stream();
        let head = ResponseHead { status: parts.status.as_u16(), fields: HeaderFields::from(&parts.headers), whole };
        writer.message(&HttpSaid::Head(head)).await?;
        if whole {
            return Ok(());
        }
        let end = rest(writer, body).await?;
        writer.message(&end).await
    });
    tokio::select! {
        biased;
        sent = &mut sending => sent,
        () = worker => sending.await,
    }
}

/// Sends a response's body, and returns its end.
async fn rest(writer: &mut FrameWriter, body: &mut HttpBody) -> Result<HttpSaid, DoorError> {
    loop {
        match body.frame().await {
            Some(Ok(frame)) => match frame.into_data().map_err(BodyFrame::into_trailers) {
                Ok(data) => writer.data(data).await?,
                Err(Ok(trailers)) => return Ok(HttpSaid::Trailers(HeaderFields::from(&trailers))),
                Err(Err(_)) => {}
            },
            Some(Err(error)) => return Ok(HttpSaid::Failed(error)),
            None => return Ok(HttpSaid::Whole),
        }
    }
}

/// A guest's body, as it comes through the door.
struct GuestBody {
    reader: FrameReader,
    message_bytes_max: usize,
    /// Bytes that are missing, if the length is known.
    left_bytes: Option<u64>,
    ended: bool,
    misuse: Misuse,
}

impl GuestBody {
    fn received(&mut self, frame: Option<DoorFrame>) -> Result<Option<BodyFrame<Bytes>>, DoorError> {
        const LENGTH: DoorError = DoorError::Wrong("a request's body has not the length that was told");
        let end = match frame {
            Some(DoorFrame::Data(data)) => {
                if let Some(left) = &mut self.left_bytes {
                    *left = u64::try_from(data.len()).ok().and_then(|bytes| left.checked_sub(bytes)).ok_or(LENGTH)?;
                }
                return Ok(Some(BodyFrame::data(data)));
            }
            Some(DoorFrame::Message(message)) => decode(&message)?,
            None => return Err(DoorError::Closed),
        };
        let is_whole = self.left_bytes.is_none_or(|left| left == 0);
        match end {
            BodyEnd::Aborted => Err(DoorError::Closed),
            _ if !is_whole => Err(LENGTH),
            BodyEnd::Whole => Ok(None),
            BodyEnd::Trailers(trailers) => {
                let trailers = trailers.into_map().ok_or(DoorError::Wrong("a request's trailers are malformed"))?;
                self.ended = true;
                Ok(Some(BodyFrame::trailers(trailers)))
            }
        }
    }
}

impl Body for GuestBody {
    type Data = Bytes;
    type Error = HttpFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, HttpFault>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let bytes_max = self.message_bytes_max;
        let frame = ready!(self.reader.poll_frame(context, bytes_max));
        Poll::Ready(match frame.and_then(|frame| self.received(frame)) {
            Ok(Some(frame)) => Some(Ok(frame)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                self.misuse.found(&error);
                Some(Err(HttpFault::HttpProtocolError))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.left_bytes == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left_bytes.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
