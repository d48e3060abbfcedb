//! `toolcell client-config`: prints the entry for this server in an MCP client's configuration.
//!
//! Each client has its own form: the key of the table, the key of the address, and the mark of a
//! local or remote server. They follow the clients' documentation as of November 2026.
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use toolcell_server::shell;

use crate::args::{ClientConfigArgs, ClientName};
use crate::exit::Exit;
use crate::sketch;
use crate::terminal;

/// Placeholder for the token. This program must not put a secret into a configuration file.
const TOKEN: &str = "YOUR_TOKEN";

/// Variable with the token, for clients that can read one.
const TOKEN_VARIABLE: &str = "TOOLCELL_TOKEN";

/// Variable in which `mcp-remote` finds the value of its header. On Windows, clients cut arguments
/// at blanks, and a header has one.
const HEADER_VARIABLE: &str = "AUTH_HEADER";

/// Hosts that `mcp-remote` accepts over plain HTTP without an option.
const PLAIN_HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// How a client reaches the server.
enum ServerForm<'a> {
    /// The client starts a server.
    Local { command: String, arguments: Vec<String> },
    /// The client connects to a running server.
    Remote { url: &'a str, token: bool },
}

/// Prints the entry; its destination goes to stderr.
pub fn run(args: &ClientConfigArgs) -> anyhow::Result<Exit> {
    let server = ServerForm::of(args)?;
    terminal::eprint(&format!("{}\n", place(args.client)));
    let text = match args.client {
        ClientName::Codex => server.toml(&args.name),
        client => {
            let config = json!({ key(client): { args.name.as_str(): server.json(client) } });
            format!("{config:#}\n")
        }
    };
    terminal::print(&text)?;
    if let Some(command) = server.command_line(args) {
        terminal::eprint(&format!("or by its command line:\n{command}\n"));
    }
    Ok(Exit::Done)
}

impl<'a> ServerForm<'a> {
    fn of(args: &'a ClientConfigArgs) -> anyhow::Result<Self> {
        if let Some(url) = &args.url {
            return Ok(Self::Remote { url, token: args.token });
        }
        let program = std::env::current_exe().context("this program's path is not known")?;
        let manifest = clean(&args.manifest.manifest).context("the manifest's path is not known")?;
        let serve: &[&str] = if sketch::is_component(&manifest) { &["serve"] } else { &["serve", "--manifest"] };
        let arguments = serve.iter().map(|word| (*word).to_owned()).chain([manifest.display().to_string()]);
        Ok(Self::Local { command: program.display().to_string(), arguments: arguments.collect() })
    }

    /// The entry as JSON.
    fn json(&self, client: ClientName) -> Value {
        match self {
            Self::Local { command, arguments } => {
                let mut entry = typed(client, "stdio");
                entry.insert("command".to_owned(), json!(command));
                entry.insert("args".to_owned(), json!(arguments));
                Value::Object(entry)
            }
            // The client's settings only accept addresses that Anthropic's servers can reach;
            // `mcp-remote` connects to any.
            Self::Remote { url, token } if client == ClientName::ClaudeDesktop => bridged(url, *token),
            Self::Remote { url, token } => {
                let mut entry = typed(client, "http");
                entry.insert(address(client).to_owned(), json!(url));
                if *token {
                    entry.insert("headers".to_owned(), json!({"Authorization": format!("Bearer {TOKEN}")}));
                }
                Value::Object(entry)
            }
        }
    }

    /// The entry as TOML. Strings of JSON are strings of TOML.
    fn toml(&self, name: &str) -> String {
        match self {
            Self::Local { command, arguments } => {
                format!("[mcp_servers.{name}]\ncommand = {}\nargs = {}\n", json!(command), json!(arguments))
            }
            Self::Remote { url, token } => {
                let bearer =
                    if *token { format!("bearer_token_env_var = \"{TOKEN_VARIABLE}\"\n") } else { String::new() };
                format!("[mcp_servers.{name}]\nurl = {}\n{bearer}", json!(url))
            }
        }
    }

    /// A command of the client that adds the entry, if it has one.
    fn command_line(&self, args: &ClientConfigArgs) -> Option<String> {
        let name = &args.name;
        match (args.client, self) {
            (ClientName::Claude, Self::Local { command, arguments }) => {
                Some(format!("claude mcp add {name} -- {}", words(command, arguments)))
            }
            (ClientName::Claude, Self::Remote { url, token }) => {
                let header = if *token { format!(" --header 'Authorization: Bearer {TOKEN}'") } else { String::new() };
                Some(format!("claude mcp add --transport http {name} {}{header}", shell::word(url)))
            }
            (ClientName::Codex, Self::Local { command, arguments }) => {
                Some(format!("codex mcp add {name} -- {}", words(command, arguments)))
            }
            (ClientName::Codex, Self::Remote { url, token: false }) => {
                Some(format!("codex mcp add {name} --url {}", shell::word(url)))
            }
            _ => None,
        }
    }
}

/// The entry of a client that reaches the server through `mcp-remote`.
fn bridged(url: &str, token: bool) -> Value {
    let mut arguments = vec!["-y".to_owned(), "mcp-remote".to_owned(), url.to_owned()];
    if is_plain_elsewhere(url) {
        arguments.push("--allow-http".to_owned());
    }
    if !token {
        return json!({"command": "npx", "args": arguments});
    }
    arguments.extend(["--header".to_owned(), format!("Authorization:${{{HEADER_VARIABLE}}}")]);
    json!({"command": "npx", "args": arguments, "env": {HEADER_VARIABLE: format!("Bearer {TOKEN}")}})
}

/// True for plain HTTP to a host that `mcp-remote` does not consider local.
fn is_plain_elsewhere(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let is_here = uri.host().is_some_and(|host| PLAIN_HOSTS.iter().any(|plain| host.eq_ignore_ascii_case(plain)));
    uri.scheme() == Some(&http::uri::Scheme::HTTP) && !is_here
}

/// The absolute path without `.` and `..`. Links stay, except for one that `..` leads out of.
fn clean(path: &Path) -> std::io::Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                if clean.is_symlink() {
                    clean = clean.canonicalize()?;
                }
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    Ok(clean)
}

/// The start of an entry, with the kind of server if the client wants it.
fn typed(client: ClientName, kind: &str) -> Map<String, Value> {
    let names_stdio = client == ClientName::Vscode;
    let names_http = matches!(client, ClientName::Claude | ClientName::Vscode);
    let names = if kind == "stdio" { names_stdio } else { names_http };
    names.then(|| ("type".to_owned(), json!(kind))).into_iter().collect()
}

/// Key of a server's address.
const fn address(client: ClientName) -> &'static str {
    match client {
        ClientName::Windsurf => "serverUrl",
        ClientName::Gemini => "httpUrl",
        _ => "url",
    }
}

/// Key of the table of servers.
const fn key(client: ClientName) -> &'static str {
    match client {
        ClientName::Vscode => "servers",
        ClientName::Zed => "context_servers",
        _ => "mcpServers",
    }
}

/// Where the entry belongs.
const fn place(client: ClientName) -> &'static str {
    match client {
        ClientName::Claude => "into .mcp.json of a project:",
        ClientName::ClaudeDesktop => "into claude_desktop_config.json (Settings, Developer, Edit Config):",
        ClientName::Vscode => "into .vscode/mcp.json of a workspace, or the user's mcp.json:",
        ClientName::Cursor => "into .cursor/mcp.json of a project, or ~/.cursor/mcp.json:",
        ClientName::Windsurf => "into ~/.codeium/windsurf/mcp_config.json:",
        ClientName::Zed => "into Zed's settings.json:",
        ClientName::Codex => "into ~/.codex/config.toml:",
        ClientName::Gemini => "into ~/.gemini/settings.json, or .gemini/settings.json of a project:",
    }
}

fn words(command: &str, arguments: &[String]) -> String {
    let words: Vec<String> =
        std::iter::once(command).chain(arguments.iter().map(String::as_str)).map(shell::word).collect();
    words.join(" ")
}
