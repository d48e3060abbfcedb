//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

#[cfg(target_family = "wasm")]
mod http;

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool", generate_all });

    use exports::local::tool::account::{Guest, User};

    const API: &str = "https://api.github.com";

    struct Component;
    export!(Component);

    impl Guest for Component {
        fn who_am_i() -> Result<User, String> {
            // The token is not here: the host adds it, as toolcell.toml says.
            let headers = [("accept", "application/json"), ("user-agent", "{{name}}")];
            let (status, body) = crate::http::get(&format!("{API}/user"), &headers)?;
            let (login, name) = crate::user(status, &body)?;
            Ok(User { login, name })
        }
    }
}

/// Login and name of the answer, or why it has none.
pub fn user(status: u16, body: &[u8]) -> Result<(String, Option<String>), String> {
    match status {
        200 => {}
        401 => return Err("the API refuses the token: is the variable TOKEN set where toolcell runs?".to_owned()),
        _ => {
            let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
            return Err(format!("the API answers {status}: {text}"));
        }
    }
    let found: serde_json::Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let login = found["login"].as_str().ok_or("the API answers in another form")?;
    Ok((login.to_owned(), found["name"].as_str().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::user;

    #[test]
    fn an_account_is_read() {
        assert_eq!(user(200, br#"{"login":"ada","name":null,"id":1}"#), Ok(("ada".to_owned(), None)));
    }

    #[test]
    fn a_refused_token_is_told_of() {
        assert!(user(401, b"{}").unwrap_err().contains("refuses the token"));
        assert_eq!(user(500, b"oops"), Err("the API answers 500: oops".to_owned()));
    }
}
