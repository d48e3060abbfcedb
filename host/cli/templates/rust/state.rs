//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool", generate_all });

    use exports::local::tool::counters::Guest;
    use wasi::keyvalue::atomics::increment;
    use wasi::keyvalue::store::{Error, open};

    struct Component;
    export!(Component);

    impl Guest for Component {
        fn count(name: String) -> Result<u64, String> {
            let key = crate::key(&name)?;
            let store = open("").map_err(reason)?;
            increment(&store, key, 1).map_err(reason)
        }
    }

    fn reason(error: Error) -> String {
        match error {
            Error::AccessDenied => "toolcell.toml grants no state".to_owned(),
            Error::NoSuchStore => "there is no such store".to_owned(),
            Error::Other(reason) => format!("it is not counted: {reason}"),
        }
    }
}

/// The key of a counter: its name, if it is one.
pub fn key(name: &str) -> Result<&str, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err(format!("{name:?} is not a name: 1 to 64 letters, digits, - and _"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn names_are_letters_and_digits() {
        assert_eq!(key("tea-2"), Ok("tea-2"));
        for name in ["", "a/b", "a b"] {
            assert!(key(name).is_err(), "{name:?}");
        }
    }
}
