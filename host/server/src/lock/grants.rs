//! Whether new grants are narrower than earlier ones.
use toolcell_policy::Grants;

/// True if the new grants lack something that the old ones have.
pub fn narrowed(old: &Grants, new: &Grants) -> bool {
    !old.reaches_like(new) && !old.beyond(new).is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcell_policy::{Source, parse};

    use super::*;

    fn grants(lines: &str) -> Arc<Grants> {
        let text = format!("version = 1\n[components.a]\nsource = \"a.wasm\"\n{lines}\n");
        let parsed = parse(&Source { name: "test", text: &text }).unwrap_or_else(|problems| panic!("{problems:?}"));
        Arc::clone(parsed.manifest.component("a").unwrap().grants())
    }

    #[test]
    fn each_right_is_a_line_and_a_line_less_is_narrower() {
        let read = r#"filesystem = { "/d" = { path = "d" } }"#;
        let write = r#"filesystem = { "/d" = { path = "d", access = "write" } }"#;
        let table = [
            ("", r#"args = ["-x"]"#, false),
            (r#"args = ["-x"]"#, "", true),
            (read, write, false),
            (write, read, true),
            (read, read, false),
            (
                r#"network = { http = ["https://a.example/"] }"#,
                r#"network = { http = ["https://a.example/", "https://b.example/"] }"#,
                false,
            ),
            (r#"network = { http = ["https://a.example/"] }"#, r#"network = { http = ["https://b.example/"] }"#, true),
            (r#"env = { A = "1" }"#, r#"env = { A = "2" }"#, true),
            (r#"calls = ["slow", "weather_*"]"#, r#"calls = ["*"]"#, false),
            (r#"calls = ["weather_*"]"#, r#"calls = ["slow", "w*"]"#, false),
            (r#"calls = ["*"]"#, r#"calls = ["slow", "weather_*"]"#, true),
        ];
        for (old, new, expected) in table {
            assert_eq!(narrowed(&grants(old), &grants(new)), expected, "{old} to {new}");
        }
        assert_eq!(grants(read).lock_lines(), ["read /d: d"]);
        assert_eq!(grants(write).lock_lines(), ["read /d: d", "write /d: d, 64MiB in 1000 files"]);
        assert_eq!(grants("").lock_lines(), [""; 0]);
    }
}
