//! A server of the official Rust SDK with its tools in its own process: the cost of the protocol
//! alone.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;

/// Offers these tools. Each returns its text.
#[derive(Clone)]
struct Echo(Arc<Vec<Tool>>);

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = request.arguments.as_ref().and_then(|arguments| arguments.get("text")?.as_str());
        let text = text.map(Cow::Borrowed).unwrap_or_default();
        Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(text)])))
    }
}

/// Serves these definitions as fast as the SDK does, until the input ends. It listens on a port of
/// loopback, which it passes to `tell`.
///
/// # Errors
/// There is no port, or these are not definitions.
pub fn serve(definitions: &str, tell: impl FnOnce(u16) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let tools: Vec<Tool> = serde_json::from_str(definitions).context("no definitions of tools")?;
    let echo = Echo(Arc::new(tools));
    // Each answer is one JSON text; there is no session to look up.
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service =
        StreamableHttpService::new(move || Ok(echo.clone()), Arc::new(LocalSessionManager::default()), config);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        tell(listener.local_addr()?.port())?;
        let input_ends = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        tokio::select! {
            ended = input_ends => ended?.map(drop).context("the input fails"),
            failed = accept(listener, service) => failed,
        }
    })
}

async fn accept(
    listener: TcpListener,
    service: StreamableHttpService<Echo, LocalSessionManager>,
) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        // The client sees how a connection ended.
        tokio::spawn(async move {
            drop(Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}
