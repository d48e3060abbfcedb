//! Lists of other MCP servers, read within bounds, in either era. Must not hold: what becomes of
//! them, and calls of their tools.

mod exchange;
mod protected;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolcell_bridge::RemoteList;
use toolcell_bridge::lines::{
    Elicitation, Era, MODERN, SESSION_REVISIONS, SessionState, discover, initialize, initialized, list,
};
use toolcell_policy::{AdvisedFault, ComponentPolicy, Delivery, HttpAsk};
use toolcell_sandbox::{HeldSecret, Redactor};
use url::Url;

use crate::identity::secrets::hold;
use exchange::{ExchangeError, ListExchange};

/// Time for the whole list. A server that has to start first takes some ten seconds.
const WITHIN: Duration = Duration::from_secs(30);

/// Pages of a list. 100: servers send 50 tools or more in each.
const PAGES_MAX: usize = 100;

/// Tools of a list, of which a person chooses some. 5,000: five times what one component may have.
const TOOLS_MAX: usize = 5_000;

/// Longest mark of the next page, in bytes. Real ones are numbers, or short texts in base64.
const CURSOR_BYTES_MAX: usize = 8 * 1024;

/// Advice where the server does not answer as MCP says.
const ENDPOINT: &str = "is that the address of its MCP endpoint? It often ends with /mcp";

/// A server's own name and version.
#[derive(Default, Deserialize)]
struct ServerSaid {
    #[serde(default)]
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    #[serde(default)]
    supported_versions: Vec<String>,
    #[serde(rename = "_meta", default)]
    meta: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    server_info: ServerSaid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A list, and the name that the server gives itself.
pub struct ReadList {
    /// What the server says.
    pub list: RemoteList,
    /// Its own name; it may be empty.
    pub name: String,
}

/// The header fields that a component's secrets add to requests.
#[derive(Default)]
pub struct SecretFields {
    fields: Vec<(String, String)>,
    /// Finds the values in what the server says.
    redactor: Redactor,
}

/// Reads the list of the server at this address, for a bridge that passes this on. No value of a
/// secret is in it, or in an error.
///
/// # Errors
/// One sentence, and advice.
pub async fn read(address: &str, secrets: &SecretFields, elicitation: Elicitation) -> Result<ReadList, AdvisedFault> {
    let exchange = ListExchange::of(address, secrets, elicitation)?;
    let late = AdvisedFault::new(format!("{address} does not give its list within {WITHIN:?}"), "try again later");
    tokio::time::timeout(WITHIN, all(exchange)).await.unwrap_or(Err(late))
}

impl SecretFields {
    /// Those for requests of the server at this address.
    ///
    /// # Errors
    /// A secret has no value: one sentence, and advice.
    pub async fn of(
        component: &ComponentPolicy,
        address: &str,
        folder: &Path,
        state: &Path,
    ) -> Result<Self, AdvisedFault> {
        let Some(ask) = ask_of(address) else { return Ok(Self::default()) };
        let mut fields = Vec::new();
        let mut held = Vec::new();
        for secret in component.grants().secrets() {
            let Delivery::Header { name, template, .. } = secret.delivery() else { continue };
            if !secret.matches(&ask) {
                continue;
            }
            let own = hold(secret.source(), folder, state)?;
            let value = match &own {
                HeldSecret::Fixed(value) => value.clone(),
                HeldSecret::Live(live) => {
                    let lack = live.lack().unwrap_or_else(|| "it has no value now".to_owned());
                    let missing = |_| AdvisedFault::unadvised(format!("the secret {}: {lack}", secret.name()));
                    live.value().await.map_err(missing)?
                }
                HeldSecret::OfCaller(login) => {
                    let message = format!("the secret {} is of each caller's login {login:?}", secret.name());
                    return Err(AdvisedFault::new(message, "write of = \"server\" into that login while it is added"));
                }
            };
            fields.push((name.clone(), format!("{}{}{}", template.before(), value.reveal(), template.after())));
            held.push((secret.name(), own));
        }
        let redactor = Redactor::of(held.iter().map(|(name, held)| (*name, held)));
        Ok(Self { fields, redactor })
    }
}

fn ask_of(address: &str) -> Option<HttpAsk> {
    let url = Url::parse(address).ok()?;
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    HttpAsk::new("POST", url.scheme(), authority, url.path()).ok()
}

async fn all(mut exchange: ListExchange) -> Result<ReadList, AdvisedFault> {
    let (era, said) = begin(&mut exchange).await?;
    let tools = tools(&mut exchange, era).await;
    let names_sessions = exchange.session.id.is_some();
    exchange.end().await;
    let title = said.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&said.name);
    let title = format!("{title} {}", said.version).trim().to_owned();
    Ok(ReadList { list: RemoteList { title, era, names_sessions, tools: tools? }, name: said.name })
}

/// The era of the server, and what it says of itself. A server that does not know modern requests
/// answers the first one with an error, each in its own way.
async fn begin(exchange: &mut ListExchange) -> Result<(Era, ServerSaid), AdvisedFault> {
    let elicitation = exchange.elicitation;
    match exchange.ask(Era::Modern, "server/discover", |id| discover(id, elicitation)).await {
        Ok(answer) => {
            let said: Option<Discovered> = serde_json::from_value(answer).ok();
            if let Some(mut said) = said.filter(|said| said.supported_versions.iter().any(|one| one == MODERN)) {
                let server = said.meta.remove("io.modelcontextprotocol/serverInfo").unwrap_or_default();
                return Ok((Era::Modern, serde_json::from_value(server).unwrap_or_default()));
            }
        }
        Err(ExchangeError::Refused(_)) => {}
        Err(ExchangeError::Fault(fault)) => return Err(fault),
    }
    let answer = exchange
        .ask(Era::Session, "initialize", |id| initialize(id, elicitation))
        .await
        .map_err(ExchangeError::into_fault)?;
    let said: Initialized = serde_json::from_value(answer).map_err(|error| {
        AdvisedFault::new(format!("{} answers initialize wrongly: {error}", exchange.shown()), ENDPOINT)
    })?;
    if !SESSION_REVISIONS.contains(&said.protocol_version.as_str()) {
        let revision: String = said.protocol_version.chars().take(40).collect();
        let problem = format!("{} speaks the revision {revision:?} of MCP", exchange.shown());
        return Err(AdvisedFault::new(problem, format!("known are {}, {MODERN}", SESSION_REVISIONS.join(", "))));
    }
    exchange.session = SessionState { id: exchange.named.take(), revision: said.protocol_version };
    exchange.tell(initialized()).await?;
    Ok((Era::Session, said.server_info))
}

async fn tools(exchange: &mut ListExchange, era: Era) -> Result<Vec<Value>, AdvisedFault> {
    let mut tools = Vec::new();
    let elicitation = exchange.elicitation;
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = exchange.ask(era, "tools/list", |id| list(era, id, cursor.as_deref(), elicitation)).await;
        let page: Page = serde_json::from_value(page.map_err(ExchangeError::into_fault)?).map_err(|error| {
            AdvisedFault::new(format!("{} answers tools/list wrongly: {error}", exchange.shown()), ENDPOINT)
        })?;
        tools.extend(page.tools);
        if tools.len() > TOOLS_MAX {
            let problem = format!("{} has more than {TOOLS_MAX} tools", exchange.shown());
            return Err(AdvisedFault::new(problem, "its publisher may offer an address with fewer"));
        }
        // Some servers end a list with an empty mark.
        match page.next_cursor.filter(|next| !next.is_empty()) {
            None => return Ok(tools),
            Some(next) if next.len() > CURSOR_BYTES_MAX || cursor.as_ref() == Some(&next) => {
                let problem = format!("{} names a next page of its list that cannot be asked for", exchange.shown());
                return Err(AdvisedFault::new(problem, "tell its publisher"));
            }
            Some(next) => cursor = Some(next),
        }
    }
    let problem = format!("the list of {} has more than {PAGES_MAX} pages", exchange.shown());
    Err(AdvisedFault::new(problem, "its publisher may offer an address with fewer tools"))
}
