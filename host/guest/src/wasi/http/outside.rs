//! The sandbox's side of a request. Only the host decides on it. Limits are checked here, too, so
//! that a guest beyond one does not reach the host.
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame as BodyFrame};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_wall::doors::http::{BodyEnd, DoorUse, HeaderFields, HttpReply, RequestHead, RequestWaits, ResponseHead};
use toolcell_wall::doors::{Opening, decode};
use toolcell_walls::door::{self, DoorError, DoorFrame, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{fault, held};
use crate::wasi::net::OutsideNet;
use toolcell_wall::caller::Outside;

/// The task that runs along with a response until its body is dropped.
pub(crate) type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// A request under way.
pub(super) type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Worker), Error>> + Send>;

/// The requests of one call, made through its way out.
pub(crate) struct OutsideRequests {
    outside: Arc<dyn Outside>,
    net: Arc<OutsideNet>,
    /// As many permits as the host gives the call doors for requests.
    places: Arc<Semaphore>,
}

/// The parts of a request that is on its way.
struct Leaving {
    outside: Arc<dyn Outside>,
    net: Arc<OutsideNet>,
    places: Arc<Semaphore>,
    wait: Duration,
}

impl OutsideRequests {
    pub(crate) fn new(outside: Arc<dyn Outside>, net: Arc<OutsideNet>) -> Self {
        let places = Arc::new(Semaphore::new(net.limits().http_doors_max()));
        Self { outside, net, places }
    }

    /// Sends the request to the host.
    pub(crate) fn send(&self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Sending {
        if !self.net.request() {
            return Box::new(std::future::ready(Err(Error::ConnectionLimitReached)));
        }
        let longest = self.net.limits().connect;
        let wait = options.and_then(|options| options.connect_timeout).map_or(longest, |wait| wait.min(longest));
        let Self { outside, net, places } = self;
        let outside = Arc::clone(outside);
        let net = Arc::clone(net);
        let places = Arc::clone(places);
        Box::new(Leaving { outside, net, places, wait }.run(request, options))
    }
}

impl Leaving {
    async fn run(
        self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<(Response<WasiBody>, Worker), Error> {
        let ended = Arc::clone(&self.net);
        tokio::select! {
            biased;
            () = ended.ended() => Err(Error::ConnectionTerminated),
            answer = self.answer(request, options) => answer,
        }
    }

    async fn answer(
        self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<(Response<WasiBody>, Worker), Error> {
        let place = tokio::time::timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| Error::ConnectionLimitReached)?.map_err(|_| Error::ConnectionTerminated)?;
        let request = held::hold(request).await;
        let body_bytes = if request.body().is_end_stream() { Some(0) } else { request.body().size_hint().exact() };
        let head = RequestHead::new(&request, waits(options), body_bytes);
        let HttpDoor { mut reader, writer } = self.door(head).await.map_err(|_| Error::ConnectionTerminated)?;
        let mut sending = Box::pin(send(writer, request.into_body(), body_bytes));
        let mut writer = None;
        let mut wrong_length = None;
        let mut is_sent = false;
        let answer = {
            let mut answer = pin!(reader.message::<HttpReply>(HOST_BYTES_MAX));
            loop {
                tokio::select! {
                    biased;
                    sent = &mut sending, if !is_sent => {
                        is_sent = true;
                        match sent {
                            Sent::Whole(door) => writer = Some(door),
                            Sent::Abandoned(error) => wrong_length = error,
                        }
                    }
                    answer = &mut answer => break answer,
                }
            }
        };
        match answer {
            Ok(HttpReply::Head(head)) => {
                let ended = head.whole;
                let body = OutsideBody { reader: Some(reader), writer, ended, net: self.net, place };
                let response = response(head, body).ok_or(Error::HttpProtocolError)?;
                let ready: Worker = Box::new(std::future::ready(Ok(())));
                let rest = async move {
                    if let Sent::Whole(writer) = sending.await {
                        writer.forget();
                    }
                    Ok(())
                };
                Ok((response, if is_sent { ready } else { Box::new(rest) }))
            }
            // wasi:http knows how long a body of another length is. The host did not get all of it.
            Ok(HttpReply::Failed(fault)) => Err(wrong_length.unwrap_or_else(|| fault::error(fault))),
            // The host closes a door before the answer if it does not serve it.
            _ => Err(Error::ConnectionTerminated),
        }
    }

    /// A door with this head: that of the call's last request, or a new one.
    async fn door(&self, head: RequestHead) -> Result<HttpDoor, DoorError> {
        if let Some(mut door) = self.net.take_kept() {
            door.writer.queue(&head)?;
            return Ok(door);
        }
        let (reader, writer) = door::open(&*self.outside, &Opening::Http(Box::new(head))).await?;
        Ok(HttpDoor { reader, writer })
    }
}

fn waits(options: Option<RequestOptions>) -> RequestWaits {
    let RequestOptions { connect_timeout, first_byte_timeout, between_bytes_timeout } = options.unwrap_or_default();
    RequestWaits { connect: connect_timeout, first_byte: first_byte_timeout, between_bytes: between_bytes_timeout }
}

/// How sending a request ended.
enum Sent {
    /// The door may carry another request.
    Whole(FrameWriter),
    /// Not all was sent, perhaps because the guest's body is not as long as it said.
    Abandoned(Option<Error>),
}

/// Sends the queued head and the guest's body. If the host refuses the body, its answer has the
/// reason.
async fn send(mut writer: FrameWriter, mut body: WasiBody, body_bytes: Option<u64>) -> Sent {
    let mut wrong_length = None;
    if let Ok(true) = send_all(&mut writer, &mut body, body_bytes, &mut wrong_length).await {
        return Sent::Whole(writer);
    }
    // The side that reads closes the door.
    writer.forget();
    Sent::Abandoned(wrong_length)
}

/// Sends everything. True if the guest did not abandon its body.
async fn send_all(
    writer: &mut FrameWriter,
    body: &mut WasiBody,
    body_bytes: Option<u64>,
    wrong_length: &mut Option<Error>,
) -> Result<bool, DoorError> {
    let end = loop {
        match writer.ready(body.frame()).await? {
            Some(Ok(frame)) => match frame.into_data().map_err(BodyFrame::into_trailers) {
                Ok(data) => writer.queue_data(data).await?,
                Err(Ok(trailers)) => break BodyEnd::Trailers(HeaderFields::from(&trailers)),
                Err(Err(_)) => {}
            },
            Some(Err(error)) => {
                *wrong_length = matches!(error, Error::HttpRequestBodySize(_)).then_some(error);
                break BodyEnd::Aborted;
            }
            None => break BodyEnd::Whole,
        }
    };
    let is_whole = !matches!(end, BodyEnd::Aborted);
    if body_bytes.is_none() || !is_whole {
        writer.queue(&end)?;
    }
    writer.flush().await?;
    Ok(is_whole)
}

fn response(head: ResponseHead, body: OutsideBody) -> Option<Response<WasiBody>> {
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(head.status).ok()?;
    *response.headers_mut() = head.fields.into_map()?;
    Some(response)
}

/// Both directions of a door for requests.
pub(crate) struct HttpDoor {
    reader: FrameReader,
    writer: FrameWriter,
}

/// A server's body, as it comes through the door. It holds the door and a place among the call's
/// doors, and so the request's turn.
struct OutsideBody {
    /// Always there until it is dropped.
    reader: Option<FrameReader>,
    /// The other direction, if the guest's body was sent.
    writer: Option<FrameWriter>,
    /// What the door is good for, once the body has ended.
    ended: Option<DoorUse>,
    net: Arc<OutsideNet>,
    place: OwnedSemaphorePermit,
}

impl Drop for OutsideBody {
    /// Keeps the door for the call's next request. Its turn is taken until that begins, so other
    /// requests under way would wait for it: then it is closed.
    fn drop(&mut self) {
        let is_alone = self.place.semaphore().available_permits() + 1 >= self.net.limits().http_doors_max();
        let door = self.reader.take().zip(self.writer.take());
        if let Some((reader, writer)) = door
            && self.ended == Some(DoorUse::Next)
            && is_alone
        {
            self.net.keep(HttpDoor { reader, writer });
        }
    }
}

impl Body for OutsideBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Error>>> {
        let Self { reader: Some(reader), ended: None, .. } = &mut *self else { return Poll::Ready(None) };
        let message = match ready!(reader.poll_frame(context, HOST_BYTES_MAX)) {
            Ok(Some(DoorFrame::Data(data))) => return Poll::Ready(Some(Ok(BodyFrame::data(data)))),
            Ok(Some(DoorFrame::Message(message))) => decode(&message).map_err(DoorError::from),
            Ok(None) => Err(DoorError::Closed),
            Err(error) => Err(error),
        };
        self.ended = Some(match &message {
            Ok(HttpReply::Whole(door_use)) => *door_use,
            _ => DoorUse::Spent,
        });
        Poll::Ready(match message {
            Ok(HttpReply::Whole(_)) => None,
            Ok(HttpReply::Trailers(trailers)) => {
                Some(trailers.into_map().map(BodyFrame::trailers).ok_or(Error::HttpProtocolError))
            }
            Ok(HttpReply::Failed(fault)) => Some(Err(fault::error(fault))),
            Ok(HttpReply::Head(_)) | Err(_) => Some(Err(Error::ConnectionTerminated)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.ended.is_some()
    }
}
