//! `toolcell call TOOL ARGUMENTS`: one call, through the same catalog and checks as a client's.
mod asked;
mod denied;
mod printed;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use toolcell_audit::Usage;
use toolcell_mcp::{
    Call, CallResult, Cancellation, CheckedResult, ContentKind, Patience, ResourceBody, ResultContent, Revision,
    sanitize,
};
use toolcell_server::catalog::Catalog;
use toolcell_server::recordings::Recording;
use toolcell_server::{CallTraces, Ready, USAGE_KEY, shell};

use crate::args::{CallArgs, manifest_words};
use crate::commands::sample;
use crate::exit::{Exit, Failure};
use crate::manifest::{is_same_file, open_to_call_or_report};
use crate::sketch;
use crate::terminal;
use printed::Printed;

/// Makes the call and prints the result.
pub fn run(args: &CallArgs) -> anyhow::Result<Exit> {
    let arguments = sample::arguments(&args.arguments)?;
    if let Some(path) = args.record.as_deref().filter(|path| is_same_file(path, &args.manifest.manifest)) {
        let problem = format!("the recording would take the place of the manifest {}", path.display());
        return Err(Failure::usage(problem, "name another file after --record").into());
    }
    // Denied attempts, including files, are observed and reported below.
    let (_, ready) = open_to_call_or_report(args)?;
    let Ready { catalog, machine, .. } = ready;
    let catalog = Arc::new(catalog);
    if std::io::stdin().is_terminal() {
        if !sketch::is_component(&args.manifest.manifest) {
            catalog.consents().may_write(&args.manifest.manifest);
        }
        catalog.consents().ask_on(Arc::new(asked::OnTerminal));
    }
    let (index, tool) = sample::tool(&catalog, &args.tool)?;
    let cancellation = Cancellation::new();
    let (mut result, beside) = match tool.check_arguments(&arguments, &Patience::default()) {
        Err(problems) => (tool.refuse_arguments(&problems), CallTraces::default()),
        Ok(()) => {
            let call = sample::call(index, arguments, cancellation.clone());
            let work = interruptible(&catalog, call, &cancellation, args.record.is_some());
            let (result, beside) = machine.runtime.block_on(work);
            (result.into_result(), beside)
        }
    };
    toolcell_server::login::problems().iter().for_each(|problem| terminal::warning(problem));
    let printed = if args.log { Printed::whole(&beside.printed) } else { Printed::end_of(&beside.printed) };
    if args.json && !printed.text.is_empty() {
        result.meta.insert(printed::KEY.to_owned(), printed.text.clone().into());
    }
    let logged = if args.log || result.is_error { beside.logged.as_str() } else { "" };
    if args.json && !logged.is_empty() {
        result.meta.insert(printed::LOG_KEY.to_owned(), logged.into());
    }
    if let Some(usage) = beside.usage_json().filter(|_| args.json && args.usage) {
        result.meta.insert(USAGE_KEY.to_owned(), usage);
    }
    let place = denied::RightsPlace::of(&args.manifest.manifest);
    let hints = denied::hints(&beside.denials, &place, result.is_error);
    show(args, &result, &hints)?;
    if let Some(path) = &args.record {
        write_recording(path, args, beside.recording.as_deref())?;
    }
    if let Some(usage) = beside.usage.filter(|_| args.usage) {
        terminal::eprint(&used(&usage));
    }
    if !args.json {
        terminal::eprint(&printed.beside(&args.tool, &result));
        terminal::eprint(&printed::logged(&args.tool, logged));
    }
    terminal::eprint(&hints);
    terminal::eprint(&denied::footnote(&beside.denied_aside, &place, &args.tool));
    Ok(if result.is_error { Exit::AtFault } else { Exit::Done })
}

/// Runs the call; SIGINT cancels it.
async fn interruptible(
    catalog: &Arc<Catalog>,
    call: Call,
    cancellation: &Cancellation,
    records: bool,
) -> (CheckedResult, CallTraces) {
    let call = async { if records { catalog.call_recorded(call).await } else { catalog.call_by_hand(call).await } };
    tokio::pin!(call);
    loop {
        tokio::select! {
            result = &mut call => return result,
            _ = tokio::signal::ctrl_c(), if !cancellation.is_cancelled() => cancellation.cancel(),
        }
    }
}

fn show(args: &CallArgs, result: &CallResult, hints: &str) -> anyhow::Result<()> {
    if let Some(folder) = &args.save {
        save(folder, result)?;
    }
    if args.json {
        terminal::print(&format!("{}\n", Revision::V2026_07_28.result_json(result)))?;
    } else {
        let text: String = result.content.iter().map(|content| for_people(content, args.save.is_some())).collect();
        if result.is_error {
            terminal::eprint(&denied::untold(&text, hints));
        } else {
            terminal::print(&text)?;
        }
    }
    Ok(())
}

/// Writes the recording of the call, which may have none.
fn write_recording(path: &Path, args: &CallArgs, recording: Option<&Recording>) -> anyhow::Result<()> {
    let Some(recording) = recording else {
        let hint = "calls that did not run have no recording, and components of WASI 0.3 have none yet";
        terminal::error(&format!("the call of {} was not recorded", args.tool), Some(hint));
        return Ok(());
    };
    recording.write(path).with_context(|| format!("cannot write {}", path.display()))?;
    if let Some(why) = recording.why_cut() {
        terminal::warning(&format!("the call cannot be replayed: {}", sanitize::line(why)));
    }
    let file = path.display().to_string();
    let manifest = manifest_words(&args.manifest.manifest);
    terminal::eprint(&format!(
        "recorded in {file}; replay it with: toolcell replay {}{manifest}\n",
        shell::word(&file)
    ));
    Ok(())
}

/// A line about the usage of the call.
fn used(usage: &Usage) -> String {
    let Usage { fuel, memory_peak_bytes, duration, .. } = usage;
    let kibibytes = memory_peak_bytes.div_ceil(1024);
    format!("fuel {fuel}, peak memory {kibibytes} KiB, time {:.3} ms\n", duration.as_secs_f64() * 1e3)
}

/// A piece of content, safe for a terminal: text without escapes, the rest described.
fn for_people(content: &ResultContent, is_saved: bool) -> String {
    let described = |what: &str, mime_type: &str, bytes: usize| described(what, mime_type, bytes, is_saved);
    match &content.kind {
        ContentKind::Text(text) => format!("{}\n", sanitize::text(text)),
        ContentKind::Image { data, mime_type } => described("image", mime_type, data.len()),
        ContentKind::Audio { data, mime_type } => described("audio", mime_type, data.len()),
        ContentKind::ResourceLink(link) => {
            format!("[link {}: {}]\n", sanitize::line(&link.name), sanitize::line(&link.uri))
        }
        ContentKind::EmbeddedResource { uri, mime_type, body } => match body {
            ResourceBody::Text(text) => format!("[resource {}]\n{}\n", sanitize::line(uri), sanitize::text(text)),
            ResourceBody::Blob(bytes) => described(
                &format!("resource {}", sanitize::line(uri)),
                mime_type.as_deref().unwrap_or("bytes"),
                bytes.len(),
            ),
        },
    }
}

fn described(what: &str, mime_type: &str, bytes: usize, is_saved: bool) -> String {
    let hint = if is_saved { "" } else { "; --save FOLDER writes it to a file" };
    format!("[{what}, {}, {bytes} bytes{hint}]\n", sanitize::line(mime_type))
}

/// Writes content other than text into files named by position and kind; names from a guest are
/// never used.
fn save(folder: &Path, result: &CallResult) -> anyhow::Result<()> {
    for (index, content) in result.content.iter().enumerate() {
        let (bytes, mime_type) = match &content.kind {
            ContentKind::Image { data, mime_type } | ContentKind::Audio { data, mime_type } => {
                (data, mime_type.as_str())
            }
            ContentKind::EmbeddedResource { body: ResourceBody::Blob(bytes), mime_type, .. } => {
                (bytes, mime_type.as_deref().unwrap_or_default())
            }
            _ => continue,
        };
        let path = folder.join(format!("content-{index}.{}", extension(mime_type)));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        terminal::eprint(&format!("wrote {}\n", path.display()));
    }
    Ok(())
}

fn extension(mime_type: &str) -> &'static str {
    match mime_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}
