//! The command lines of packaging: `bundle`, and `man`, which the packages' recipe runs.
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{CodeCacheArgs, ManifestArg};

/// `toolcell bundle`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell bundle --author \"Ann Example\"
  toolcell bundle -m tools.toml --output weather.mcpb --bundle-version 1.2.0

A desktop client installs the file with a click. It holds this program, the manifest with its lock, the components,
and the folders that tools only read. Each must lie in the manifest's folder. The client asks for the variables of
`env:NAME` when it installs the bundle. Values of secrets are not in it.")]
pub struct BundleArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Write the bundle here [default: the server's name, with .mcpb]
    #[arg(short, long, value_name = "FILE.mcpb")]
    pub output: Option<PathBuf>,
    /// The name of the one who made the tools [default: the server's name]
    #[arg(long, value_name = "NAME", value_parser = line)]
    pub author: Option<String>,
    /// The bundle's version, of three numbers: a client updates to a higher one
    #[arg(long, value_name = "VERSION", default_value = "1.0.0", value_parser = version)]
    pub bundle_version: String,
    /// Put this toolcell program into the bundle, for another kind of processor [default: this one]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell man`.
#[derive(Debug, ClapArgs)]
pub struct ManArgs {
    /// Write the pages into this folder
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Most characters of a text of one line that a client shows.
const LINE_CHARS_MAX: usize = 200;

fn line(text: &str) -> Result<String, String> {
    let is_fit =
        !text.trim().is_empty() && text.chars().count() <= LINE_CHARS_MAX && !text.chars().any(char::is_control);
    is_fit.then(|| text.to_owned()).ok_or_else(|| format!("one line of 1 to {LINE_CHARS_MAX} characters"))
}

/// Three numbers, as semantic versioning has them. Most digits of one: 9.
fn version(text: &str) -> Result<String, String> {
    let is_number = |part: &str| {
        (1..=9).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_fit = text.split('.').count() == 3 && text.split('.').all(is_number);
    is_fit.then(|| text.to_owned()).ok_or_else(|| "three numbers with dots between, such as 1.2.0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_version_has_three_numbers() {
        for (text, fits) in [
            ("1.2.3", true),
            ("0.0.0", true),
            ("10.20.30", true),
            ("1.2", false),
            ("1.2.3.4", false),
            ("1.2.x", false),
            ("1..3", false),
            ("01.2.3", false),
            ("1.2.1234567890", false),
            ("1.2.3-beta", false),
        ] {
            assert_eq!(version(text).is_ok(), fits, "{text}");
        }
    }
}
