//! `wasi:keyvalue`, generated from `wit/deps/keyvalue`. Holds nothing written by hand.
#![allow(missing_docs, unsafe_code, dead_code, rust_2018_idioms, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit/deps/keyvalue",
    world: "wasi:keyvalue/imports@0.2.0-draft",
});
