//! `toolcell client-config`: what to write into an MCP client's configuration so that it finds this server.
use anyhow::Context as _;
use serde_json::{Value, json};

use crate::args::{ClientConfigArgs, ClientName};
use crate::exit::Exit;
use crate::terminal;

/// The server's name in the client's list.
const NAME: &str = "toolcell";

/// Prints it; where it belongs goes to stderr.
pub fn run(args: &ClientConfigArgs) -> anyhow::Result<Exit> {
    let (entry, key) = (entry(args)?, key(args.client));
    let config = json!({ key: { NAME: entry } });
    terminal::say(&format!("{}\n", place(args.client)));
    terminal::print(&format!("{config:#}\n"))?;
    Ok(Exit::Done)
}

/// One server.
fn entry(args: &ClientConfigArgs) -> anyhow::Result<Value> {
    if let Some(url) = &args.url {
        return Ok(match args.client {
            ClientName::Claude | ClientName::Vscode => json!({"type": "http", "url": url}),
            ClientName::Windsurf => json!({"serverUrl": url}),
            ClientName::Cursor | ClientName::Zed => json!({"url": url}),
        });
    }
    let program = std::env::current_exe().context("this program's path is not known")?;
    let manifest = std::path::absolute(&args.manifest.manifest).context("the manifest's path is not known")?;
    let (command, arguments) = (program.display().to_string(), ["serve", "--manifest"]);
    let arguments = arguments.map(str::to_owned).into_iter().chain([manifest.display().to_string()]);
    let arguments: Vec<String> = arguments.collect();
    Ok(match args.client {
        ClientName::Vscode => json!({"type": "stdio", "command": command, "args": arguments}),
        ClientName::Claude | ClientName::Cursor | ClientName::Windsurf | ClientName::Zed => {
            json!({"command": command, "args": arguments})
        }
    })
}

/// Under which key a client keeps its servers.
const fn key(client: ClientName) -> &'static str {
    match client {
        ClientName::Claude | ClientName::Cursor | ClientName::Windsurf => "mcpServers",
        ClientName::Vscode => "servers",
        ClientName::Zed => "context_servers",
    }
}

/// Where the text belongs.
const fn place(client: ClientName) -> &'static str {
    match client {
        ClientName::Claude => {
            "into claude_desktop_config.json (Claude Desktop), or .mcp.json of a project (Claude Code):"
        }
        ClientName::Vscode => "into .vscode/mcp.json of a workspace, or the user's mcp.json:",
        ClientName::Cursor => "into .cursor/mcp.json of a project, or ~/.cursor/mcp.json:",
        ClientName::Windsurf => "into ~/.codeium/windsurf/mcp_config.json:",
        ClientName::Zed => "into Zed's settings.json:",
    }
}
