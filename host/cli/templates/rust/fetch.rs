//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

#[cfg(target_family = "wasm")]
mod http;

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool", generate_all });

    use exports::local::tool::todos::{Guest, Todo};

    const API: &str = "https://jsonplaceholder.typicode.com";

    struct Component;
    export!(Component);

    impl Guest for Component {
        fn get_todo(id: u32) -> Result<Todo, String> {
            let (status, body) = crate::http::get(&format!("{API}/todos/{id}"), &[("accept", "application/json")])?;
            let (title, completed) = crate::todo(status, &body)?;
            Ok(Todo { title, completed })
        }
    }
}

/// Title and state of the answer, or why it has none.
pub fn todo(status: u16, body: &[u8]) -> Result<(String, bool), String> {
    let found = serde_json::from_slice(body).unwrap_or(serde_json::Value::Null);
    if status != 200 {
        let reason = match found["message"].as_str() {
            Some(message) => message.to_owned(),
            None => String::from_utf8_lossy(body).chars().take(200).collect(),
        };
        return Err(format!("the API answers {status}: {reason}"));
    }
    let title = found["title"].as_str().ok_or("the API answers in another form")?;
    Ok((title.to_owned(), found["completed"] == true))
}

#[cfg(test)]
mod tests {
    use super::todo;

    #[test]
    fn a_thing_to_do_is_read() {
        assert_eq!(todo(200, br#"{"id":1,"title":"tea","completed":true}"#), Ok(("tea".to_owned(), true)));
    }

    #[test]
    fn an_error_says_why() {
        for (status, body, reason) in [
            (404, r#"{"message":"Not Found"}"#, "the API answers 404: Not Found"),
            (500, "<h1>oops</h1>", "the API answers 500: <h1>oops</h1>"),
            (200, "[]", "the API answers in another form"),
        ] {
            assert_eq!(todo(status, body.as_bytes()), Err(reason.to_owned()));
        }
    }
}
