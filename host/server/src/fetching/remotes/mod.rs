//! Lists of other MCP servers, read within bounds, in either era. Must not hold: what becomes of
//! them, and calls of their tools.

mod exchange;

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use toolcell_bridge::RemoteList;
use toolcell_bridge::lines::{Era, MODERN, SESSION_REVISIONS, SessionState, discover, initialize, initialized, list};
use toolcell_policy::{AdvisedFault, ComponentPolicy, Delivery, HttpAsk};
use toolcell_sandbox::HeldSecret;
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

/// Reads the list of the server at this address. `secrets` are fields of each request.
///
/// # Errors
/// One sentence, and advice.
pub async fn read(address: &str, secrets: &[(String, String)]) -> Result<ReadList, AdvisedFault> {
    let exchange = ListExchange::of(address, secrets)?;
    let late = AdvisedFault::new(format!("{address} does not give its list within {WITHIN:?}"), "try again later");
    tokio::time::timeout(WITHIN, all(exchange)).await.unwrap_or(Err(late))
}

/// The header fields that a component's secrets add to requests of the server at this address.
///
/// # Errors
/// A secret has no value: one sentence, and advice.
pub async fn secret_fields(
    component: &ComponentPolicy,
    address: &str,
    folder: &Path,
    state: &Path,
) -> Result<Vec<(String, String)>, AdvisedFault> {
    let Some(ask) = ask_of(address) else { return Ok(Vec::new()) };
    let mut fields = Vec::new();
    for secret in component.grants().secrets() {
        let Delivery::Header { name, template, .. } = secret.delivery() else { continue };
        if !secret.matches(&ask) {
            continue;
        }
        let value = match hold(secret.source(), folder, state)? {
            HeldSecret::Fixed(value) => value,
            HeldSecret::Live(live) => {
                let lack = live.lack().unwrap_or_else(|| "it has no value now".to_owned());
                let missing = |_| AdvisedFault::unadvised(format!("the secret {}: {lack}", secret.name()));
                live.value().await.map_err(missing)?
            }
        };
        fields.push((name.clone(), format!("{}{}{}", template.before(), value.reveal(), template.after())));
    }
    Ok(fields)
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
    match exchange.ask(Era::Modern, "server/discover", discover).await {
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
    let answer = exchange.ask(Era::Session, "initialize", initialize).await.map_err(ExchangeError::into_fault)?;
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
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = exchange.ask(era, "tools/list", |id| list(era, id, cursor.as_deref())).await;
        let page: Page = serde_json::from_value(page.map_err(ExchangeError::into_fault)?).map_err(|error| {
            AdvisedFault::new(format!("{} answers tools/list wrongly: {error}", exchange.shown()), ENDPOINT)
        })?;
        tools.extend(page.tools);
        if tools.len() > TOOLS_MAX {
            let problem = format!("{} has more than {TOOLS_MAX} tools", exchange.shown());
            return Err(AdvisedFault::new(problem, "its publisher may offer an address with fewer"));
        }
        match page.next_cursor {
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
