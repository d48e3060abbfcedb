//! PEM texts (RFC 7468): blocks of base64 between two lines, within bounds.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One block: its label, and the bytes within.
pub(crate) struct Block {
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
}

/// Every block of a text, at most `blocks_max`. Text between blocks is skipped.
pub(crate) fn blocks(text: &str, blocks_max: usize) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
            if open.is_some() || found.len() == blocks_max {
                return Err(format!("its PEM has more than {blocks_max} blocks, or one within another"));
            }
            open = Some((label.to_owned(), String::new()));
        } else if line.starts_with("-----END ") {
            let (label, base64) = open.take().ok_or("its PEM ends a block that it did not begin")?;
            if line != format!("-----END {label}-----") {
                return Err("its PEM ends a block by another name".to_owned());
            }
            let bytes = STANDARD.decode(base64).map_err(|_| "its PEM is not base64")?;
            found.push(Block { label, bytes });
        } else if let Some((_, base64)) = &mut open {
            base64.push_str(line);
        }
    }
    if open.is_some() || found.is_empty() {
        return Err("its PEM has no whole block".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "-----BEGIN X-----\nAQID\n-----END X-----\n";

    #[test]
    fn blocks_are_read_and_counted() {
        let found = blocks(&format!("note\r\n{ONE}{ONE}"), 2).unwrap();
        assert_eq!(
            found.iter().map(|block| (block.label.as_str(), block.bytes.as_slice())).collect::<Vec<_>>(),
            [("X", &[1u8, 2, 3][..]), ("X", &[1, 2, 3])]
        );
        assert!(blocks(&ONE.repeat(3), 2).is_err());
    }

    #[test]
    fn broken_blocks_are_refused() {
        for text in [
            "",
            "AQID",
            "-----BEGIN X-----\nAQID",
            "-----END X-----",
            &ONE.replace("END X", "END Y"),
            &ONE.replace("AQID", "?"),
        ] {
            assert!(blocks(text, 2).is_err(), "{text}");
        }
    }
}
