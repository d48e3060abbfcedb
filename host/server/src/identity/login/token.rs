//! Requests of the token endpoint, and their answers.
use std::time::{Duration, SystemTime};

use ::http::{Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::Value;
use toolcell_outbound::is_protected;
use toolcell_policy::{AdvisedFault, ClientAuth, LoginPolicy};
use toolcell_sandbox::SecretValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::client::SendRequest;
use super::endpoints::{Client, Endpoints};
use super::error::LoginError;
use super::record::Record;

/// The longest life of a token that is believed, ten years: clocks do not reach as far as some
/// servers say.
const LIFE_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3_600);

/// A form, each field with its value.
pub(super) type Form<'a> = Vec<(&'a str, &'a str)>;

/// Tokens as the server gave them.
pub(super) struct Tokens {
    /// The access token, which [`SecretValue`] takes.
    pub(super) access: Zeroizing<String>,
    pub(super) refresh: Option<Zeroizing<String>>,
    /// The end of the access token, if it is known.
    pub(super) until: Option<SystemTime>,
    /// The scopes, where the server says them.
    pub(super) scope: Option<String>,
    /// What the server says about the account, where it does (OpenID Connect).
    pub(super) identity: Option<Zeroizing<String>>,
}

#[derive(Deserialize)]
struct LoginAnswer {
    access_token: String,
    token_type: String,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    scope: Option<String>,
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenFailure {
    error: String,
    error_description: Option<String>,
}

/// An endpoint, and the client that asks it.
pub(super) struct AskedEndpoint<'a> {
    pub(super) address: &'a str,
    pub(super) auth: ClientAuth,
    pub(super) client: &'a Client,
}

impl AskedEndpoint<'_> {
    /// Posts a form. The answer's status is `200`, or this is an error.
    pub(super) async fn post(&self, mut form: Form<'_>, send: &impl SendRequest) -> Result<Bytes, LoginError> {
        let address = self.address;
        let secret = self.client.secret.as_ref().map(|secret| secret.as_str());
        let mut request = Request::post(address)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        match (secret, self.auth) {
            (Some(secret), ClientAuth::Basic) => {
                request = request.header(header::AUTHORIZATION, basic(&self.client.id, secret)?);
            }
            (Some(secret), ClientAuth::Post) => {
                form.extend([("client_id", self.client.id.as_str()), ("client_secret", secret)])
            }
            (None, _) => form.push(("client_id", &self.client.id)),
        }
        let body = Zeroizing::new(form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish());
        let request = request.body(Bytes::copy_from_slice(body.as_bytes()));
        let request = request.ok().filter(|_| url::Url::parse(address).is_ok_and(|url| is_protected(&url)));
        let request = request.ok_or_else(|| LoginError::Address(address.to_owned()))?;
        let response = send.send(request).await;
        let response = response.map_err(|source| LoginError::Unreachable { address: address.to_owned(), source })?;
        let status = response.status();
        let body = response.into_body();
        // Some servers say an error with status 200.
        if let Ok(failure) = serde_json::from_slice::<TokenFailure>(&body) {
            let mut sent: Vec<&str> = secret.into_iter().collect();
            let secrets = ["code", "refresh_token", "token", "code_verifier", "device_code", "subject_token"];
            sent.extend(form.iter().filter(|(name, _)| secrets.contains(name)).map(|(_, value)| *value));
            return Err(LoginError::refused(address, &failure.error, failure.error_description.as_deref(), &sent));
        }
        if status != StatusCode::OK {
            return Err(LoginError::answer(address, format!("it answers with status {}", status.as_u16())));
        }
        Ok(body)
    }

    /// Asks for tokens. `now` is when the request is sent: a token's life begins no earlier.
    pub(super) async fn tokens(
        &self,
        form: Form<'_>,
        now: SystemTime,
        send: &impl SendRequest,
    ) -> Result<Tokens, LoginError> {
        let body = self.post(form, send).await?;
        given(&body, now).map_err(|problem| LoginError::answer(self.address, problem))
    }
}

/// The header of a client with a secret: both are encoded as in a form first (RFC 6749, section
/// 2.3.1).
fn basic(id: &str, secret: &str) -> Result<header::HeaderValue, LoginError> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let both = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret)));
    let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())));
    let mut value = header::HeaderValue::from_str(&text)
        .map_err(|_| LoginError::Secret(AdvisedFault::new("it cannot be sent", "use client_auth = \"post\"")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The fields that say what a token is for.
pub(super) fn purpose(policy: &LoginPolicy) -> Form<'_> {
    let resource = policy.resource().map(|resource| ("resource", resource));
    resource.into_iter().chain(policy.audience().map(|audience| ("audience", audience))).collect()
}

fn given(body: &[u8], now: SystemTime) -> Result<Tokens, String> {
    let given: LoginAnswer = serde_json::from_slice(body).map_err(|_| "it answers without a token".to_owned())?;
    if !given.token_type.eq_ignore_ascii_case("bearer") {
        return Err("it gives a token of a kind that is not sent as a header's value (not Bearer)".to_owned());
    }
    let access = Zeroizing::new(given.access_token);
    SecretValue::new(access.clone()).map_err(|problem| format!("its token {problem}"))?;
    let life = given.expires_in.as_ref().and_then(seconds).map(|life| life.min(LIFE_MAX));
    let refresh = given.refresh_token.filter(|token| !token.is_empty()).map(Zeroizing::new);
    if let Some(refresh) = &refresh {
        SecretValue::new(refresh.clone()).map_err(|problem| format!("its refresh token {problem}"))?;
    }
    Ok(Tokens {
        access,
        refresh,
        until: life.and_then(|life| now.checked_add(life)),
        scope: given.scope.filter(|scope| scope.len() <= 64 << 10),
        identity: given.id_token.map(Zeroizing::new),
    })
}

/// A time in seconds, however it is written: `60`, `60.0`. Numbers in quotes are common, though not
/// allowed. `None` for anything else.
pub(super) fn seconds(value: &Value) -> Option<Duration> {
    let whole = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    whole.map(Duration::from_secs).or_else(|| Duration::try_from_secs_f64(value.as_f64()?).ok())
}

/// Asks for new tokens with a refresh token.
pub(super) async fn refresh(
    policy: &LoginPolicy,
    endpoint: &AskedEndpoint<'_>,
    token: &str,
    send: &impl SendRequest,
) -> Result<Tokens, LoginError> {
    let mut form = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
    form.extend(purpose(policy));
    endpoint.tokens(form, SystemTime::now(), send).await
}

/// Takes the tokens back at their server (RFC 7009), where it offers that.
pub(super) async fn take_back(record: &Record, client: &Client, send: &impl SendRequest) -> Result<(), LoginError> {
    let Some(address) = record.revoke() else { return Ok(()) };
    let asked = AskedEndpoint { address, auth: record.auth(), client };
    let (token, hint) = match record.refresh_token.as_deref() {
        Some(token) => (token, "refresh_token"),
        None => (record.access_token.as_str(), "access_token"),
    };
    asked.post(vec![("token", token), ("token_type_hint", hint)], send).await.map(drop)
}

impl Endpoints {
    pub(super) fn at_token<'a>(&'a self, client: &'a Client) -> AskedEndpoint<'a> {
        AskedEndpoint { address: &self.token, auth: self.auth, client }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use ::http::Response;
    use toolcell_policy::{Source, parse};

    use super::*;
    use toolcell_outbound::OutboundError;

    /// A server that gives these answers, and keeps what it was asked.
    pub(in super::super) struct Answers {
        left: Mutex<VecDeque<(u16, String)>>,
        pub(in super::super) asked: Mutex<Vec<(String, String, Option<String>)>>,
    }

    impl Answers {
        pub(in super::super) fn new(answers: &[(u16, &str)]) -> Self {
            let left = answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
            Self { left: Mutex::new(left), asked: Mutex::default() }
        }

        pub(in super::super) fn forms(&self) -> Vec<String> {
            self.asked.lock().unwrap().iter().map(|(_, form, _)| form.clone()).collect()
        }
    }

    impl SendRequest for Answers {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutboundError> {
            let head = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            let asked = (request.uri().to_string(), String::from_utf8(request.body().to_vec()).unwrap(), head);
            self.asked.lock().unwrap().push(asked);
            let (status, body) = self.left.lock().unwrap().pop_front().ok_or(OutboundError::Address)?;
            Ok(Response::builder().status(status).body(Bytes::from(body)).unwrap())
        }
    }

    impl SendRequest for Arc<Answers> {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, OutboundError> {
            (**self).send(request).await
        }
    }

    /// A login with these lines, and a client.
    pub(in super::super) fn policy_of(lines: &str) -> Arc<LoginPolicy> {
        let text = format!("version = 1\n[oauth.notes]\nclient_id = \"desk\"\n{lines}\n");
        let parsed = parse(&Source { name: "test", text: &text }).unwrap();
        Arc::clone(parsed.manifest.login("notes").unwrap())
    }

    fn client(secret: Option<&str>) -> Client {
        Client { id: "de sk".to_owned(), secret: secret.map(|secret| Zeroizing::new(secret.to_owned())) }
    }

    async fn asked(auth: ClientAuth, secret: Option<&str>) -> (String, Option<String>) {
        let answers = Answers::new(&[(200, "{}")]);
        let asked = AskedEndpoint { address: "https://a.example/token", auth, client: &client(secret) };
        asked.post(vec![("grant_type", "x")], &answers).await.unwrap();
        let (_, form, head) = answers.asked.lock().unwrap().remove(0);
        (form, head)
    }

    #[tokio::test]
    async fn a_client_shows_its_secret_as_the_server_wants_it_and_a_public_one_its_name() {
        assert_eq!(asked(ClientAuth::Basic, None).await, ("grant_type=x&client_id=de+sk".to_owned(), None));
        let post = "grant_type=x&client_id=de+sk&client_secret=a%3Ab".to_owned();
        assert_eq!(asked(ClientAuth::Post, Some("a:b")).await, (post, None));
        // `de+sk:a%3Ab`
        let head = Some("Basic ZGUrc2s6YSUzQWI=".to_owned());
        assert_eq!(asked(ClientAuth::Basic, Some("a:b")).await, ("grant_type=x".to_owned(), head));
    }

    #[tokio::test]
    async fn no_secret_goes_to_an_address_that_others_can_listen_to() {
        let answers = Answers::new(&[]);
        let asked = AskedEndpoint { address: "http://a.example/token", auth: ClientAuth::Basic, client: &client(None) };
        assert!(matches!(asked.post(Vec::new(), &answers).await, Err(LoginError::Address(_))));
        assert!(answers.forms().is_empty());
    }

    #[test]
    fn an_answer_is_read_within_bounds_and_refused_where_it_is_no_bearer_token() {
        let now = SystemTime::UNIX_EPOCH;
        let read = |body: &str| given(body.as_bytes(), now);
        let tokens =
            read(r#"{"access_token":"a","token_type":"bearer","expires_in":"60","refresh_token":"r"}"#).unwrap();
        assert_eq!(tokens.until, Some(now + Duration::from_secs(60)));
        assert_eq!(tokens.refresh.as_deref().map(String::as_str), Some("r"));
        let tokens = read(r#"{"access_token":"a","token_type":"Bearer","expires_in":18446744073709551615}"#).unwrap();
        assert_eq!(tokens.until, Some(now + LIFE_MAX));
        let tokens = read(r#"{"access_token":"a","token_type":"Bearer","expires_in":3600.0}"#).unwrap();
        assert_eq!(tokens.until, Some(now + Duration::from_secs(3_600)), "JSON has one kind of number");
        for unknown in ["", r#","expires_in":null"#, r#","expires_in":-1"#, r#","expires_in":"1h""#] {
            let text = format!(r#"{{"access_token":"a","token_type":"Bearer"{unknown}}}"#);
            assert!(read(&text).unwrap().until.is_none(), "{unknown}");
        }
        let long = "a".repeat(40_000);
        for wrong in [
            "",
            "{}",
            "[1]",
            r#"{"access_token":"a"}"#,
            r#"{"access_token":"a","token_type":"DPoP"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"a\nb","token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"Bearer","refresh_token":"a\nb"}"#,
            &format!(r#"{{"access_token":"{long}","token_type":"Bearer"}}"#),
        ] {
            let Err(problem) = read(wrong) else { panic!("{wrong}") };
            assert!(!problem.contains("aaa"), "{problem}");
        }
    }

    #[tokio::test]
    async fn an_error_is_said_whatever_its_status_and_without_what_was_sent() {
        let body = r#"{"error":"invalid_grant","error_description":"refresh token r3fr3sh is spent"}"#;
        for status in [200, 400, 401] {
            let answers = Answers::new(&[(status, body)]);
            let client = client(None);
            let asked = AskedEndpoint { address: "https://a.example/token", auth: ClientAuth::Basic, client: &client };
            let policy = policy_of("issuer = \"https://a.example\"");
            let Err(error) = refresh(&policy, &asked, "r3fr3sh", &answers).await else { panic!("{status}") };
            assert!(error.is_final());
            assert_eq!(error.to_string(), "https://a.example/token refuses: invalid_grant");
        }
    }
}
