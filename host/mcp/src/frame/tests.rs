//! The strict scanner against serde_json: it accepts JSON, and refuses nothing else but its
//! documented limits.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::RequestId;
use super::scan::{self, JsonFault};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Value::from),
            vec((any::<String>(), inner), 0..12).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_json_is_taken(value in json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let scanned = scan::scan(text.as_bytes());
            prop_assert!(scanned.is_ok(), "{:?}: {text}", scanned.err());
            prop_assert_eq!(scanned.unwrap().duplicate, None);
        }
    }

    #[test]
    fn what_is_taken_is_json(bytes in vec(prop_oneof![Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']'),
        Just(b':'), Just(b','), Just(b'1'), Just(b'0'), Just(b'.'), Just(b'-'), Just(b'e'), Just(b'u'), Just(b' '), Just(b'\n'), any::<u8>()], 0..24)) {
        let taken = scan::scan(&bytes);
        let parsed = serde_json::from_slice::<Value>(&bytes);
        match taken {
            Ok(scanned) if scanned.excess.is_some() => {}
            Ok(_) => prop_assert!(parsed.is_ok(), "{:?}", String::from_utf8_lossy(&bytes)),
            Err(JsonFault::Encoding | JsonFault::Syntax(_)) => prop_assert!(parsed.is_err(), "{:?}", String::from_utf8_lossy(&bytes)),
        }
    }

    #[test]
    fn members_are_found_with_their_exact_text(params in vec(("[a-z]{1,8}", json()), 0..12)) {
        let params: serde_json::Map<String, Value> = params.into_iter().collect();
        let text = serde_json::json!({"params": params}).to_string();
        let scanned = scan::scan(text.as_bytes()).unwrap();
        for (key, value) in &params {
            let found = scanned.members.iter().find(|member| member.level == scan::ObjectLevel::Params && member.key == key.as_str());
            prop_assert_eq!(found.unwrap().value, value.to_string());
        }
    }

    #[test]
    fn a_repeated_key_is_found_among_any_number(keys in vec("[a-z]{3,9}", 1..40), place in any::<prop::sample::Index>()) {
        let repeated = &keys[place.index(keys.len())];
        let members: Vec<String> = keys.iter().chain([repeated]).map(|key| format!("{key:?}:0")).collect();
        let text = format!("{{\"params\":{{\"arguments\":{{{}}}}}}}", members.join(","));
        let duplicate = scan::scan(text.as_bytes()).unwrap().duplicate.unwrap();
        prop_assert!(duplicate.in_params);
        prop_assert!(keys.contains(&duplicate.key));
    }

    #[test]
    fn an_id_reads_back(number in -(1_i64 << 53)..=1 << 53, text in any::<String>()) {
        for id in [RequestId::Integer(number), RequestId::Text(text.into())] {
            let mut out = Vec::new();
            id.push(&mut out);
            prop_assert_eq!(RequestId::parse(std::str::from_utf8(&out).unwrap()), Some(id));
        }
    }
}
