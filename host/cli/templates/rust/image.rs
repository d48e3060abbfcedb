//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool-component" });

    use exports::toolcell::mcp::tools::Guest;
    use toolcell::mcp::types::{CallResult, Content, Failure, Hints, MediaContent, Tool};

    struct Component;
    export!(Component);

    /// The arguments, as `schemas/input.json` describes them.
    #[derive(serde::Deserialize)]
    struct Arguments {
        values: Vec<u8>,
    }

    impl Guest for Component {
        fn list_tools() -> Vec<Tool> {
            vec![Tool {
                name: "draw_bars".to_owned(),
                title: Some("Draw bars".to_owned()),
                description: "Draws numbers from 0 to 100 as a picture of bars, from left to right.".to_owned(),
                input_schema_json: include_str!("../schemas/input.json").to_owned(),
                output_schema_json: None,
                hints: Some(Hints {
                    read_only: Some(true),
                    destructive: Some(false),
                    idempotent: Some(true),
                    open_world: Some(false),
                }),
                icons: Vec::new(),
                meta_json: None,
            }]
        }

        fn call_tool(_name: String, arguments_json: String) -> Result<CallResult, Failure> {
            let Arguments { values } =
                serde_json::from_str(&arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
            let picture = MediaContent {
                data: crate::png(&values),
                mime_type: "image/png".to_owned(),
                annotations: None,
                meta_json: None,
            };
            Ok(CallResult {
                content: vec![Content::Image(picture)],
                structured_json: None,
                is_error: false,
                meta_json: None,
            })
        }
    }
}

const HEIGHT: u32 = 100;

/// Pixels of a bar, one of them a gap.
const BAR: u32 = 8;

/// A picture of bars: a PNG with 8 bits of grey for each pixel, and without compression.
pub fn png(values: &[u8]) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..HEIGHT {
        rows.push(0); // no filter
        for &value in values {
            let ink = if HEIGHT - y <= u32::from(value) { 0x30 } else { 0xff };
            rows.extend((1..=BAR).map(|x| if x < BAR { ink } else { 0xff }));
        }
    }
    let size = [BAR * values.len() as u32, HEIGHT].map(u32::to_be_bytes).concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    png.extend(chunk(b"IHDR", &[&size[..], &[8, 0, 0, 0, 0]].concat()));
    png.extend(chunk(b"IDAT", &stored(&rows)));
    png.extend(chunk(b"IEND", &[]));
    png
}

/// Data in zlib's format as one stored block: at most 65,535 bytes.
fn stored(data: &[u8]) -> Vec<u8> {
    let (a, b) = data.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    let length = data.len() as u16;
    let mut held = vec![0x78, 0x01, 1];
    held.extend(length.to_le_bytes());
    held.extend((!length).to_le_bytes());
    held.extend(data);
    held.extend((b << 16 | a).to_be_bytes());
    held
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [&kind[..], data].concat();
    let crc = named.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    [&(data.len() as u32).to_be_bytes()[..], &named, &(!crc).to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{chunk, png, stored};

    #[test]
    fn bars_are_as_high_as_their_values() {
        let png = png(&[100, 0, 50]);
        assert!(png.starts_with(b"\x89PNG"));
        let rows = png.windows(4).position(|bytes| bytes == b"IDAT").unwrap() + 4 + 7;
        let inked = |bar: usize| (0..100).filter(|y| png[rows + y * 25 + 1 + bar * 8] == 0x30).count();
        assert_eq!([inked(0), inked(1), inked(2)], [100, 0, 50]);
    }

    #[test]
    fn checksums_are_those_of_the_formats() {
        assert_eq!(chunk(b"IEND", &[]), b"\0\0\0\0IEND\xae\x42\x60\x82");
        assert_eq!(stored(b"a"), [0x78, 0x01, 1, 1, 0, 0xfe, 0xff, b'a', 0, 0x62, 0, 0x62]);
    }
}
