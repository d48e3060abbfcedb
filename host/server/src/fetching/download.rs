//! Downloads one file that a person named, within a size and a time.
use std::time::Duration;

use ::http::{Request, Response};
use hyper::body::Bytes;
use toolcell_outbound::{OutboundBounds, OutboundClient, REDIRECTS_MAX, followed, is_protected, is_redirect};
use toolcell_policy::AdvisedFault;
use url::Url;

/// Time to connect: a slow network's name server answers within five seconds.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Time of the whole download with its redirects: the largest component over four megabits a
/// second.
const WHOLE_WITHIN: Duration = Duration::from_secs(300);

/// Advice for an address that is not asked.
const FORM: &str = "name an address that begins with https://";

/// Advice where no file comes.
const YOURSELF: &str = "download it yourself, and name the file";

/// A file, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// The file.
    pub bytes: Vec<u8>,
    /// The address behind all redirects, without a name and a password.
    pub address: String,
}

/// Downloads the file at this address, of at most `bytes_max` bytes. Each redirect is checked like
/// the address.
///
/// # Errors
/// One sentence, and advice.
pub async fn download(address: &str, bytes_max: usize) -> Result<Downloaded, AdvisedFault> {
    let parsed = Url::parse(address)
        .map_err(|error| AdvisedFault::new(format!("{address:?} is not a valid address: {error}"), FORM));
    within(WHOLE_WITHIN, parsed?, bytes_max).await
}

async fn within(whole: Duration, address: Url, bytes_max: usize) -> Result<Downloaded, AdvisedFault> {
    let late = format!("{} is not downloaded within {whole:?}", shown(&address));
    tokio::time::timeout(whole, follow(address, bytes_max))
        .await
        .unwrap_or_else(|_| Err(AdvisedFault::new(late, YOURSELF)))
}

async fn follow(mut address: Url, bytes_max: usize) -> Result<Downloaded, AdvisedFault> {
    for _ in 0..=REDIRECTS_MAX {
        check(&address)?;
        let response = ask(&address, bytes_max).await.map_err(|problem| {
            AdvisedFault::new(format!("{} cannot be downloaded: {problem}", shown(&address)), YOURSELF)
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(Downloaded { bytes: response.into_body().into(), address: shown(&address) });
        }
        if !is_redirect(status) {
            let problem = format!("{} answers with status {}", shown(&address), status.as_u16());
            return Err(AdvisedFault::new(problem, "is the address right, and may anybody read it?"));
        }
        address = followed(&address, response.headers()).map_err(|refused| {
            let problem = format!("{} redirects to {}, {}", shown(&address), refused.to, refused.problem);
            AdvisedFault::new(problem, "name an address that stays with https")
        })?;
    }
    let problem = format!("{} comes after more than {REDIRECTS_MAX} redirects", shown(&address));
    Err(AdvisedFault::new(problem, "name the address that they lead to"))
}

async fn ask(address: &Url, bytes_max: usize) -> Result<Response<Bytes>, String> {
    let bounds = OutboundBounds { connect: CONNECT_WITHIN, whole: WHOLE_WITHIN, body_bytes: bytes_max };
    let client = OutboundClient::new([address.as_str()], bounds).map_err(|error| error.to_string())?;
    let mut plain = address.clone();
    plain.set_fragment(None);
    let request = Request::get(plain.as_str()).header("accept", "application/wasm, */*").body(Bytes::new());
    client.send(request.map_err(|error| error.to_string())?).await.map_err(|error| error.to_string())
}

/// Checks that nobody on the way can read or change what comes: https, or this machine.
fn check(address: &Url) -> Result<(), AdvisedFault> {
    if is_protected(address) {
        return Ok(());
    }
    Err(AdvisedFault::new(format!("{} is not reached over https", shown(address)), FORM))
}

/// The address without a name and a password.
fn shown(address: &Url) -> String {
    let mut address = address.clone();
    // Neither fails for an address with a host.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Redirects to itself, each answer a little later than half of the bound.
    #[tokio::test]
    async fn one_bound_holds_for_all_redirects() {
        let whole = Duration::from_millis(400);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Url::parse(&format!("http://{}/a.wasm", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1024]).await;
                tokio::time::sleep(whole * 6 / 10).await;
                let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nlocation: /a.wasm\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        let problem = within(whole, address.clone(), 1).await.unwrap_err().problem;
        assert_eq!(problem, format!("{address} is not downloaded within 400ms"));
    }

    #[tokio::test]
    async fn a_file_comes_with_the_address_behind_its_redirects() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let found = "HTTP/1.1 302 Found\r\nlocation: /v2/b.json\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let file = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            for answer in [found, file] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let downloaded = download(&format!("{origin}/old/a.json"), 100).await.unwrap();
        assert_eq!(downloaded, Downloaded { bytes: b"{}".to_vec(), address: format!("{origin}/v2/b.json") });
    }

    #[test]
    fn only_https_and_this_machine_are_asked() {
        for (address, is_asked) in [
            ("https://example.com/a.wasm", true),
            ("http://127.0.0.1:8080/a.wasm", true),
            ("http://[::1]/a.wasm", true),
            ("http://localhost/a.wasm", true),
            ("http://example.com/a.wasm", false),
            ("http://localhost.example.com/a.wasm", false),
            ("http://10.0.0.1/a.wasm", false),
            ("ftp://127.0.0.1/a.wasm", false),
            ("file:///a.wasm", false),
        ] {
            assert_eq!(check(&Url::parse(address).unwrap()).is_ok(), is_asked, "{address}");
        }
        assert_eq!(shown(&Url::parse("https://a:b@example.com/x").unwrap()), "https://example.com/x");
    }
}
