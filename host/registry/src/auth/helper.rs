//! Credential helpers: programs `docker-credential-NAME`, which are asked for one server.
//!
//! The protocol is that of docker-credential-helpers: `get`, the server on stdin, JSON on stdout.
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use zeroize::Zeroizing;

use super::credential::Credential;
use super::files::{of_pair, secret};
use crate::error::PullError;
use crate::length;

/// Time limit of a helper: a person may have to unlock a keyring.
const WITHIN: Duration = Duration::from_secs(60);

/// Longest answer, in bytes: tokens have some kilobytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Longest name, in characters: several times the longest known.
const NAME_CHARS_MAX: usize = 64;

/// What helpers print if they have nothing for this server (`credentials/error.go` there).
const NOT_FOUND: &str = "credentials not found";

#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username")]
    username: String,
    #[serde(rename = "Secret", deserialize_with = "secret")]
    secret: Option<Zeroizing<String>>,
}

/// Asks a helper; `None` if it has nothing.
pub(super) async fn get(name: &str, folders: &[PathBuf], server: &str) -> Result<Option<Credential>, PullError> {
    let wrong = |problem: String| PullError::Helper { name: name.chars().take(NAME_CHARS_MAX).collect(), problem };
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.bytes().all(allowed) {
        return Err(wrong("its name has other characters than A-Z a-z 0-9 _ . -".to_owned()));
    }
    let file = format!("docker-credential-{name}");
    // A relative folder of PATH would run programs of whatever folder this happens to be.
    let mut paths = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(&file));
    let program = paths.find(|path| path.is_file()).ok_or_else(|| wrong(format!("{file} is not in PATH")))?;
    let asked = tokio::time::timeout(WITHIN, run(program, server)).await;
    let (succeeded, output) = asked
        .map_err(|_| wrong(format!("it does not answer within {WITHIN:?}")))?
        .map_err(|error| wrong(error.to_string()))?;
    if !succeeded {
        let is_none = String::from_utf8_lossy(&output).contains(NOT_FOUND);
        return if is_none { Ok(None) } else { Err(wrong("it ends with an error".to_owned())) };
    }
    let answer: HelperAnswer =
        serde_json::from_slice(&output).map_err(|_| wrong("its answer is not the JSON of a helper".to_owned()))?;
    let secret = answer.secret.filter(|secret| !secret.is_empty());
    Ok(secret.map(|secret| of_pair(&answer.username, &secret)))
}

async fn run(program: PathBuf, server: &str) -> std::io::Result<(bool, Zeroizing<Vec<u8>>)> {
    let mut command = Command::new(program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(server.as_bytes()).await {
            // A helper may answer without reading.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
            _ => drop(stdin),
        }
    }
    let mut output = Zeroizing::new(Vec::new());
    if let Some(stdout) = child.stdout.take() {
        stdout.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut output).await?;
    }
    if length(&output) > ANSWER_BYTES_MAX {
        return Err(std::io::Error::other(format!("its answer has more than {ANSWER_BYTES_MAX} bytes")));
    }
    Ok((child.wait().await?.success(), output))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn helpers_are_asked_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let helper = |name: &str, text: &str| {
            let path = folder.path().join(format!("docker-credential-{name}"));
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        helper("good", r#"read -r server; printf '{"ServerURL":"x","Username":"%s","Secret":"s"}' "$1-$server""#);
        helper("token", r#"echo '{"Username":"<token>","Secret":"s"}'"#);
        helper("none", "echo 'credentials not found in native keychain'; exit 1");
        helper("broken", "echo 'no display'; exit 1");
        helper("endless", "while :; do echo 0123456789012345678901234567890123456789; done");
        helper("text", "echo hello");
        let folders = [PathBuf::from("."), folder.path().to_owned()];
        let get = |name: &'static str| get(name, &folders, "ghcr.io");
        assert_eq!(get("good").await.unwrap(), Some(of_pair("get-ghcr.io", "s")));
        assert_eq!(get("token").await.unwrap(), Some(Credential::IdentityToken(Zeroizing::new("s".to_owned()))));
        assert_eq!(get("none").await.unwrap(), None);
        for (name, problem) in [
            ("broken", "ends with an error"),
            ("endless", "more than 65536 bytes"),
            ("text", "not the JSON"),
            ("missing", "docker-credential-missing is not in PATH"),
            ("../good", "other characters"),
            ("", "other characters"),
        ] {
            let error = get(name).await.unwrap_err().to_string();
            assert!(error.contains(problem), "{name}: {error}");
        }
    }
}
