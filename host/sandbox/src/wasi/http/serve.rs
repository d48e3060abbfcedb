//! The host's side of requests from a sandbox process. From here on they are like any other.
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http_body::{Body, Frame as BodyFrame, SizeHint};
use http_body_util::BodyExt as _;
use toolcell_wall::doors::decode;
use toolcell_wall::doors::http::{BodyEnd, DoorUse, HeaderFields, HttpReply, RequestHead, ResponseHead};
use toolcell_wall::doors::http_fault::HttpFault;
use toolcell_walls::door::{DoorError, DoorFrame, FrameReader, FrameWriter};

use super::exchange::BodyTask;
use super::requests::{CallRequests, HttpBody};
use crate::wasi::doors::Misuse;
use crate::wasi::net::CallNet;

/// Makes the request that a door was opened for, and sends its response back. The door may then
/// carry the call's next request, which is decided on and counted like the first.
pub(crate) async fn serve(
    requests: &CallRequests,
    net: &CallNet,
    misuse: &Misuse,
    mut head: RequestHead,
    mut reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    let message_bytes_max = net.limits().head_bytes_max();
    loop {
        let taken = TakenBody::default();
        let body = GuestBody::new(reader, head.body_bytes, message_bytes_max, &taken, misuse);
        let request = head.into_request(body.boxed_unsync());
        let (request, waits) = request.ok_or(DoorError::Wrong("a request's head is malformed"))?;
        let (response, worker) = match requests.send(request, waits).await {
            Ok(answered) => answered,
            Err(error) => return writer.message(&HttpReply::Failed(error)).await,
        };
        let (parts, mut body) = response.into_parts();
        answer(&mut writer, parts, &mut body, worker, &taken).await?;
        // Its turn is taken until the guest closes the door or begins the next request.
        let _turn = body;
        let Some(left) = taken.reader() else { return std::future::pending().await };
        reader = left;
        head = match reader.frame(message_bytes_max).await? {
            Some(DoorFrame::Message(message)) => decode(&message)?,
            Some(DoorFrame::Data(_)) => return Err(DoorError::Wrong("data arrived before its request")),
            None => return Ok(()),
        };
    }
}

/// Sends a response, and runs its task. What is there at once goes out at once.
async fn answer(
    writer: &mut FrameWriter,
    parts: Parts,
    body: &mut HttpBody,
    worker: BodyTask,
    taken: &TakenBody,
) -> Result<(), DoorError> {
    let mut sending = pin!(async {
        let whole = body.is_end_stream().then(|| taken.door_use());
        let head = ResponseHead { status: parts.status.as_u16(), fields: HeaderFields::from(&parts.headers), whole };
        writer.queue(&HttpReply::Head(head))?;
        if whole.is_none() {
            let end = rest(writer, body, taken).await?;
            writer.queue(&end)?;
        }
        writer.flush().await
    });
    tokio::select! {
        biased;
        sent = &mut sending => sent,
        () = worker => sending.await,
    }
}

/// Sends a response's body, and returns its end.
async fn rest(writer: &mut FrameWriter, body: &mut HttpBody, taken: &TakenBody) -> Result<HttpReply, DoorError> {
    loop {
        match writer.ready(body.frame()).await? {
            Some(Ok(frame)) => match frame.into_data().map_err(BodyFrame::into_trailers) {
                Ok(data) => writer.queue_data(data).await?,
                Err(Ok(trailers)) => return Ok(HttpReply::Trailers(HeaderFields::from(&trailers))),
                Err(Err(_)) => {}
            },
            Some(Err(error)) => return Ok(HttpReply::Failed(error)),
            None => return Ok(HttpReply::Whole(taken.door_use())),
        }
    }
}

/// The door's reader, once the guest's body was taken from it completely.
#[derive(Clone, Default)]
struct TakenBody(Arc<Mutex<Option<FrameReader>>>);

impl TakenBody {
    fn lock(&self) -> MutexGuard<'_, Option<FrameReader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> Option<FrameReader> {
        self.lock().take()
    }

    /// What the door is good for. If that is the next request, the reader stays here until it is
    /// taken.
    fn door_use(&self) -> DoorUse {
        if self.lock().is_some() { DoorUse::Next } else { DoorUse::Spent }
    }
}

/// A guest's body, as it comes through the door.
struct GuestBody {
    /// `None` once the body has ended.
    reader: Option<FrameReader>,
    message_bytes_max: usize,
    /// Bytes that are missing, if the length is known.
    left_bytes: Option<u64>,
    taken: TakenBody,
    misuse: Misuse,
}

impl GuestBody {
    fn new(
        reader: FrameReader,
        left_bytes: Option<u64>,
        message_bytes_max: usize,
        taken: &TakenBody,
        misuse: &Misuse,
    ) -> Self {
        let mut body =
            Self { reader: Some(reader), message_bytes_max, left_bytes, taken: taken.clone(), misuse: misuse.clone() };
        body.end_if_whole();
        body
    }

    fn end_if_whole(&mut self) {
        if self.left_bytes == Some(0) {
            self.end();
        }
    }

    fn end(&mut self) {
        *self.taken.lock() = self.reader.take();
    }

    fn received(&mut self, frame: Option<DoorFrame>) -> Result<Option<BodyFrame<Bytes>>, DoorError> {
        const LENGTH: DoorError = DoorError::Wrong("a request's body does not have the announced length");
        let end = match frame {
            Some(DoorFrame::Data(data)) => {
                if let Some(left) = &mut self.left_bytes {
                    *left = u64::try_from(data.len()).ok().and_then(|bytes| left.checked_sub(bytes)).ok_or(LENGTH)?;
                }
                self.end_if_whole();
                return Ok(Some(BodyFrame::data(data)));
            }
            Some(DoorFrame::Message(message)) => decode(&message)?,
            None => return Err(DoorError::Closed),
        };
        match end {
            BodyEnd::Aborted => Err(DoorError::Closed),
            _ if self.left_bytes.is_some() => Err(LENGTH),
            BodyEnd::Whole => {
                self.end();
                Ok(None)
            }
            BodyEnd::Trailers(trailers) => {
                let trailers = trailers.into_map().ok_or(DoorError::Wrong("a request's trailers are malformed"))?;
                self.end();
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
        let bytes_max = self.message_bytes_max;
        let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
        let frame = ready!(reader.poll_frame(context, bytes_max));
        Poll::Ready(match frame.and_then(|frame| self.received(frame)) {
            Ok(frame) => frame.map(Ok),
            Err(error) => {
                self.reader = None;
                self.misuse.found(&error);
                Some(Err(HttpFault::HttpProtocolError))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.reader.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left_bytes.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
