//! The device flow (RFC 8628): a person agrees on some other machine, and the server is asked until
//! they have.
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use toolcell_outbound::is_protected;
use zeroize::Zeroizing;

use super::client::SendRequest;
use super::error::LoginError;
use super::token::{AskedEndpoint, purpose, seconds};
use super::{Made, NewLogin};

/// The kind of grant.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The longest wait for a person, whatever the server allows.
const AGREED_WITHIN: Duration = Duration::from_secs(30 * 60);

/// The wait between two questions where the server names none, and what it adds where it asks for
/// more time (RFC 8628, section 3.5).
const INTERVAL: Duration = Duration::from_secs(5);

/// Bounds of the wait that a server names.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The longest code that a person types, in characters.
const USER_CODE_CHARS_MAX: usize = 64;

/// The longest address that a person opens, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// A login that a person agrees to elsewhere.
pub struct DeviceLogin<'a, S> {
    login: NewLogin<'a, S>,
    code: Zeroizing<String>,
    prompt: Prompt,
    interval: Duration,
    within: Duration,
}

/// The words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The address to open.
    pub address: String,
    /// The code to type there.
    pub code: String,
    /// An address that has the code in it.
    pub whole: Option<String>,
}

#[derive(Deserialize)]
struct DeviceCode {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Value,
    interval: Option<Value>,
}

impl<'a, S: SendRequest> NewLogin<'a, S> {
    /// Asks the server for a code that a person types.
    ///
    /// # Errors
    /// The endpoint is missing, or refuses.
    pub async fn by_device(self) -> Result<DeviceLogin<'a, S>, LoginError> {
        let address = self.endpoints.device.as_deref().ok_or(LoginError::NoEndpoint("device authorization"))?;
        let scopes = self.policy.scopes().join(" ");
        let mut form = purpose(self.policy);
        // A client with a secret is named by it, and some servers want the name in the form too.
        if self.client.secret.is_some() && self.endpoints.auth == toolcell_policy::ClientAuth::Basic {
            form.push(("client_id", &self.client.id));
        }
        form.extend((!scopes.is_empty()).then_some(("scope", scopes.as_str())));
        let asked = AskedEndpoint { address, auth: self.endpoints.auth, client: &self.client };
        let body = asked.post(form, &self.send).await?;
        let given: DeviceCode =
            serde_json::from_slice(&body).map_err(|_| LoginError::answer(address, "it answers without a code"))?;
        let prompt =
            Prompt::of(&given).ok_or_else(|| LoginError::answer(address, "its address or code cannot be shown"))?;
        let interval = given.interval.as_ref().and_then(seconds).unwrap_or(INTERVAL);
        let interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        let within = seconds(&given.expires_in)
            .ok_or_else(|| LoginError::answer(address, "it does not say how long its code is good"))?
            .min(AGREED_WITHIN);
        Ok(DeviceLogin { code: Zeroizing::new(given.device_code), prompt, interval, within, login: self })
    }
}

impl Prompt {
    /// Only what a terminal shows as it is, and an address that a browser reaches safely.
    fn of(given: &DeviceCode) -> Option<Self> {
        let shown = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let address = |text: &String| {
            let safe = url::Url::parse(text).is_ok_and(|url| is_protected(&url));
            (safe && shown(text) && text.len() <= ADDRESS_BYTES_MAX).then(|| text.clone())
        };
        let code = given.user_code.trim();
        let fits = !code.is_empty() && code.len() <= USER_CODE_CHARS_MAX && shown(code);
        Some(Self {
            address: address(&given.verification_uri)?,
            code: fits.then(|| code.to_owned())?,
            whole: given.verification_uri_complete.as_ref().and_then(address),
        })
    }
}

impl<S: SendRequest> DeviceLogin<'_, S> {
    /// The words for a person.
    #[must_use]
    pub const fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Asks until the person has agreed, and keeps the tokens.
    ///
    /// # Errors
    /// The person or the server refuses, or the time is over.
    pub async fn finish(self) -> Result<Made, LoginError> {
        let end = Instant::now() + self.within;
        let mut interval = self.interval;
        loop {
            if Instant::now() + interval > end {
                return Err(LoginError::Late(self.within));
            }
            sleep(interval).await;
            let error = match self.ask().await {
                Ok(tokens) => {
                    self.login.check_account(&tokens, None, None)?;
                    return self.login.keep(tokens, None).await;
                }
                Err(error) => error,
            };
            interval = after(error, interval)?;
        }
    }

    async fn ask(&self) -> Result<super::token::Tokens, LoginError> {
        let login = &self.login;
        let mut form = vec![("grant_type", GRANT), ("device_code", self.code.as_str())];
        form.extend(purpose(login.policy));
        login.endpoints.at_token(&login.client).tokens(form, SystemTime::now(), &login.send).await
    }
}

/// The wait after an answer that was not yet a token, or the error that ends the login.
fn after(error: LoginError, interval: Duration) -> Result<Duration, LoginError> {
    match &error {
        LoginError::Refused { code, .. } if code == "authorization_pending" => Ok(interval),
        LoginError::Refused { code, .. } if code == "slow_down" => Ok((interval + INTERVAL).min(INTERVAL_MAX)),
        // RFC 8628, section 3.5: a server that does not answer is asked less often.
        LoginError::Unreachable { .. } => Ok((interval * 2).min(INTERVAL_MAX)),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcell_outbound::OutboundError;

    fn refused(code: &str) -> LoginError {
        LoginError::refused("https://a.example", code, None, &[])
    }

    #[test]
    fn the_server_is_asked_again_as_it_wants_and_no_longer_than_that() {
        let five = Duration::from_secs(5);
        assert_eq!(after(refused("authorization_pending"), five).unwrap(), five);
        assert_eq!(after(refused("slow_down"), five).unwrap(), 2 * five);
        assert_eq!(after(refused("slow_down"), INTERVAL_MAX).unwrap(), INTERVAL_MAX);
        let silent = LoginError::Unreachable { address: String::new(), source: OutboundError::Time(five) };
        assert_eq!(after(silent, five).unwrap(), 2 * five);
        for code in ["access_denied", "expired_token", "invalid_grant", ""] {
            assert!(after(refused(code), five).is_err(), "{code}");
        }
    }

    #[test]
    fn a_prompt_shows_nothing_that_a_terminal_obeys_and_no_address_that_others_can_change() {
        let given = |address: &str, code: &str| DeviceCode {
            device_code: String::new(),
            user_code: code.to_owned(),
            verification_uri: address.to_owned(),
            verification_uri_complete: Some("javascript:1".to_owned()),
            expires_in: 1.into(),
            interval: None,
        };
        let prompt = Prompt::of(&given("https://a.example/device", "ABCD-EFGH")).unwrap();
        assert_eq!((prompt.code.as_str(), prompt.whole), ("ABCD-EFGH", None));
        for (address, code) in [
            ("https://a.example/device", ""),
            ("https://a.example/device", "A\u{1b}[2J"),
            ("https://a.example/device", &"A".repeat(65)),
            ("http://a.example/device", "A"),
            ("https://a.example/\u{1b}", "A"),
            ("javascript:alert(1)", "A"),
        ] {
            assert!(Prompt::of(&given(address, code)).is_none(), "{address} {code}");
        }
    }
}
