//! A registry that sends something else than it says.
//!
//! Promise: a registry gives what the manifest pins.
use serde_json::{Value, json};
use toolcell_policy::Reference;
use toolcell_registry::{COMPONENT_LAYER, OCI_INDEX, OCI_MANIFEST, PullError, WASM_CONFIG};

use crate::server::{Reply, head};
use crate::{COMPONENT, Place, digest};

impl Place {
    /// The error of pulling a document.
    async fn error_of(&self, document: &[u8]) -> PullError {
        let named = self.server.add_manifest(None, document);
        let reference = Reference::parse(&format!("{}@{named}", self.reference())).unwrap();
        self.pull(&reference).await.unwrap_err()
    }

    /// The error of pulling a component whose layer is answered with this.
    async fn error_of_layer(&self, reply: impl Fn() -> Reply + Send + 'static) -> PullError {
        let (_, reference) = self.publish(COMPONENT);
        let layer = digest(COMPONENT).to_string();
        self.server.hook(move |request, _| request.is("GET", &layer).then(&reply));
        let error = self.pull(&reference).await.unwrap_err();
        assert!(self.store().component(reference.digest().unwrap()).is_err());
        assert_eq!(self.store().list().unwrap(), []);
        error
    }
}

/// A manifest with this layer.
fn with_layer(place: &Place, media_type: &str, layer: &str, size: usize) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST,
        "config": {"mediaType": WASM_CONFIG, "digest": place.server.add_blob(b"{}"), "size": 2},
        "layers": [{"mediaType": media_type, "digest": layer, "size": size}],
    })
}

#[tokio::test]
async fn a_tag_that_has_moved_is_said() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    let (now, _) = place.publish(b"\0asm another");
    place.server.contents(|contents| contents.manifests.remove(artifact.digest().as_str()));
    match place.pull(&reference).await.unwrap_err() {
        error @ PullError::TagMoved { .. } => {
            assert_eq!(error.to_string(), format!("{reference} is gone: its tag now names {}", now.digest()));
        }
        other => panic!("{other}"),
    }
    // Without a tag nobody knows.
    let error = place.pull(&reference.clone().bare().with_digest(artifact.digest())).await.unwrap_err();
    assert!(matches!(error, PullError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn another_manifest_than_that_of_the_digest_is_refused() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let other = with_layer(&place, COMPONENT_LAYER, digest(b"x").as_str(), 1).to_string().into_bytes();
    place.server.hook(move |request, _| request.is("GET", "/manifests/").then(|| Reply::new(200, &[], &other)));
    let error = place.pull(&reference).await.unwrap_err();
    assert!(matches!(error, PullError::WrongDigest { .. }), "{error}");
}

#[tokio::test]
async fn a_digest_header_that_lies_is_found_out() {
    let place = Place::new();
    let (artifact, _) = place.publish(COMPONENT);
    let lie = digest(b"lie").to_string();
    let said = lie.clone();
    place.server.hook(move |request, _| {
        let head = [head(200, &[("docker-content-digest", &said)]), b"\r\n".to_vec()].concat();
        (request.method == "HEAD").then_some(Reply::Bytes(head))
    });
    let digest = place.client().resolve(&place.reference()).await.unwrap();
    assert_eq!(digest.as_str(), lie);
    let named = place.reference().with_digest(digest);
    let error = place.pull(&named).await.unwrap_err();
    assert!(matches!(error, PullError::NotFound { .. }), "{error}");
    // It goes on lying, and sends what the tag leads to.
    place.server.hook(move |request, contents| {
        let sent = || Reply::new(200, &[("docker-content-digest", &lie)], &contents.manifests["1"]);
        request.is("GET", &lie).then(sent)
    });
    match place.pull(&named).await.unwrap_err() {
        PullError::WrongDigest { expected, found, .. } => {
            assert_eq!((Some(&expected), found), (named.digest(), artifact.digest()));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_image_for_other_platforms_is_no_component() {
    let place = Place::new();
    let entry = |os: &str, architecture: &str| {
        json!({"mediaType": OCI_MANIFEST, "digest": digest(b"x").as_str(), "size": 1,
            "platform": {"os": os, "architecture": architecture}})
    };
    let index = |entries: Vec<Value>| json!({"schemaVersion": 2, "manifests": entries}).to_string().into_bytes();
    let error = place.error_of(&index(vec![entry("linux", "amd64"), entry("linux", "arm64")])).await;
    assert!(error.to_string().ends_with("is an image for linux/amd64, linux/arm64, and holds no component"), "{error}");
    let error = place.error_of(&index(vec![entry("wasi", "wasm"), entry("wasip2", "wasm")])).await;
    assert!(matches!(error, PullError::SeveralComponents { count: 2, .. }), "{error}");
    let error = place.error_of(&index(Vec::new())).await;
    assert!(error.to_string().contains("an image for no platform"), "{error}");
    let layer = with_layer(&place, "application/vnd.oci.image.layer.v1.tar+gzip", digest(b"x").as_str(), 1);
    let error = place.error_of(layer.to_string().as_bytes()).await;
    assert!(matches!(error, PullError::NoComponent { .. }), "{error}");
}

#[tokio::test]
async fn an_index_that_names_an_index_is_not_followed() {
    let place = Place::new();
    let inner = json!({"schemaVersion": 2, "manifests": []}).to_string();
    let index = json!({"schemaVersion": 2, "manifests": [{"mediaType": OCI_INDEX, "size": inner.len(),
        "digest": place.server.add_manifest(None, inner.as_bytes()), "platform": {"os": "wasi", "architecture": "wasm"}}]});
    let error = place.error_of(index.to_string().as_bytes()).await;
    assert!(error.to_string().contains("an index within an index is not followed"), "{error}");
}

#[tokio::test]
async fn a_layer_of_another_length_is_refused() {
    let place = Place::new();
    let longer = [COMPONENT, b"more"].concat();
    let of = longer.clone();
    let error = place.error_of_layer(move || Reply::new(200, &[], &of)).await;
    assert!(matches!(error, PullError::Longer { .. }), "{error}");
    let error = place.error_of_layer(|| Reply::new(200, &[], &COMPONENT[..9])).await;
    assert!(matches!(error, PullError::Shorter { found: 9, .. }), "{error}");
    // The same, without saying a length.
    let chunked = |bytes: &[u8]| {
        let mut reply = [head(200, &[("transfer-encoding", "chunked")]), b"\r\n".to_vec()].concat();
        reply.extend(format!("{:x}\r\n", bytes.len()).bytes());
        reply.extend(bytes);
        reply.extend(b"\r\n0\r\n\r\n");
        Reply::Bytes(reply)
    };
    let error = place.error_of_layer(move || chunked(&longer)).await;
    assert!(matches!(error, PullError::Longer { .. }), "{error}");
    let error = place.error_of_layer(move || chunked(&COMPONENT[..9])).await;
    assert!(matches!(error, PullError::Shorter { found: 9, .. }), "{error}");
}

#[tokio::test]
async fn an_endless_layer_ends_with_its_size() {
    let place = Place::new();
    let error = place.error_of_layer(|| {
        let head = [head(200, &[("transfer-encoding", "chunked")]), b"\r\n".to_vec()].concat();
        Reply::Endless(head, b"4\r\n\0asm\r\n".to_vec())
    });
    let error = error.await;
    assert!(matches!(error, PullError::Longer { .. }), "{error}");
    let left = std::fs::read_dir(place.store().root().join("partial")).unwrap();
    assert!(left.map(|entry| entry.unwrap().metadata().unwrap().len()).all(|bytes| bytes == 0));
}

#[tokio::test]
async fn a_layer_with_other_bytes_is_refused() {
    let place = Place::new();
    let error = place.error_of_layer(|| Reply::new(200, &[], &vec![b'x'; COMPONENT.len()])).await;
    match error {
        error @ PullError::WrongDigest { .. } => {
            let host = place.server.host();
            let expected = digest(COMPONENT);
            let found = digest(vec![b'x'; COMPONENT.len()]);
            assert_eq!(error.to_string(), format!("{host} sends bytes for {expected} whose digest is {found}"));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_compressed_layer_is_refused() {
    let place = Place::new();
    for media_type in ["application/wasm+gzip", "application/vnd.wasm.content.layer.v1+wasm+zstd"] {
        let error =
            place.error_of(with_layer(&place, media_type, digest(b"x").as_str(), 1).to_string().as_bytes()).await;
        assert!(error.to_string().contains("is compressed with"), "{error}");
    }
    let gzip = b"\x1f\x8b\x08 not said";
    let layer = place.server.add_blob(gzip);
    let error = place.error_of(with_layer(&place, COMPONENT_LAYER, &layer, gzip.len()).to_string().as_bytes()).await;
    assert!(error.to_string().ends_with("is compressed with gzip"), "{error}");
    let error = place.error_of_layer(|| Reply::new(200, &[("content-encoding", "br")], COMPONENT)).await;
    assert!(matches!(error, PullError::Compressed { .. }), "{error}");
}

#[tokio::test]
async fn a_component_that_is_too_large_is_not_downloaded() {
    let place = Place::new();
    let layer = place.server.add_blob(COMPONENT);
    let error =
        place.error_of(with_layer(&place, COMPONENT_LAYER, &layer, (128 << 20) + 1).to_string().as_bytes()).await;
    assert!(matches!(error, PullError::ComponentTooLarge { .. }), "{error}");
    let mut manifest = with_layer(&place, COMPONENT_LAYER, &layer, COMPONENT.len());
    manifest["config"]["size"] = json!(65 << 10);
    let error = place.error_of(manifest.to_string().as_bytes()).await;
    assert_eq!(error.to_string(), format!("the config of {} has more than 65536 bytes", place.server.host()));
    manifest["config"]["size"] = json!(2);
    let other = json!({"mediaType": "text/plain", "digest": digest(b"x").as_str(), "size": 9 << 20});
    manifest["layers"].as_array_mut().unwrap().push(other);
    let error = place.error_of(manifest.to_string().as_bytes()).await;
    assert!(error.to_string().starts_with("a layer next to the component"), "{error}");
    // Each of them is small enough, and all together are not.
    let others = |layers: usize| {
        let other = json!({"mediaType": "text/plain", "digest": digest(b"x").as_str(), "size": 8 << 20});
        let mut manifest = manifest.clone();
        manifest["layers"].as_array_mut().unwrap().truncate(1);
        manifest["layers"].as_array_mut().unwrap().extend(vec![other; layers]);
        manifest.to_string().into_bytes()
    };
    let error = place.error_of(&others(9)).await;
    let expected = format!("everything next to the component of {} has more than 67108864 bytes", place.server.host());
    assert_eq!(error.to_string(), expected);
    assert_eq!(place.server.count("GET", "/blobs/"), 0);
    let error = place.error_of(&others(8)).await;
    assert!(matches!(error, PullError::NotFound { .. }), "as many as there may be are asked for: {error}");
}

#[tokio::test]
async fn one_digest_under_two_descriptors_is_bounded_twice() {
    let place = Place::new();
    let layer = place.server.add_blob(COMPONENT);
    let with = |first: u64, second: u64| {
        let mut manifest = with_layer(&place, COMPONENT_LAYER, &layer, 0);
        manifest["layers"][0]["size"] = json!(first);
        let again = json!({"mediaType": "text/plain", "digest": layer, "size": second});
        manifest["layers"].as_array_mut().unwrap().push(again);
        manifest.to_string().into_bytes()
    };
    let error = place.error_of(&with(COMPONENT.len() as u64, 1 << 60)).await.to_string();
    assert!(error.ends_with(&format!("is not understood: it has two sizes for {layer}")), "{error}");
    let error = place.error_of(&with(9 << 20, 9 << 20)).await.to_string();
    assert!(error.starts_with("a layer next to the component"), "{error}");
    assert_eq!(place.server.count("GET", "/blobs/"), 0);
}

#[tokio::test]
async fn long_texts_of_a_registry_are_cut_in_errors() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let lie =
        [br#"{"schemaVersion":""#.as_slice(), &vec![0x7f; 1 << 20], br#"","tags":""#, &vec![0x7f; 1 << 20], br#""}"#];
    let lie = lie.concat();
    let document = lie.clone();
    place.server.hook(move |request, _| request.is("GET", "/referrers/").then(|| Reply::new(200, &[], &document)));
    let of_list = place.pull(&reference).await.unwrap().skipped.remove(0).reason;
    assert!(of_list.chars().count() < 500 && of_list.contains("is not understood"), "{}", of_list.len());
    place.server.honest();
    let of_manifest = place.error_of(&lie).await;
    place.server.hook(move |request, _| request.is("GET", "/tags/").then(|| Reply::new(200, &[], &lie)));
    let of_tags = place.client().tags(&reference).await.unwrap_err();
    for error in [of_manifest, of_tags] {
        let text = error.to_string();
        assert!(matches!(error, PullError::Document { .. }), "{}", &text[..text.len().min(900)]);
        assert!(text.chars().count() < 500 && text.contains("is not understood"), "{}", text.len());
    }
}

#[tokio::test]
async fn documents_of_another_form_are_refused() {
    let place = Place::new();
    let good = with_layer(&place, COMPONENT_LAYER, digest(b"x").as_str(), 1);
    let with = |key: &str, value: Value| {
        let mut manifest = good.clone();
        manifest[key] = value;
        manifest.to_string().into_bytes()
    };
    let layers: Vec<_> = std::iter::repeat_n(good["layers"][0].clone(), 65).collect();
    let many: serde_json::Map<_, _> = (0..300).map(|n| (n.to_string(), json!("x"))).collect();
    let deep = |open: &str| format!("{{\"x\": {}", open.repeat(700_000)).into_bytes();
    for (document, problem) in [
        (b"[]".to_vec(), "is not understood"),
        (b"".to_vec(), "is not understood"),
        (deep("["), "is not understood"),
        (deep("{\"x\":"), "is not understood"),
        (with("schemaVersion", json!(1)), "its version is 1"),
        (with("mediaType", json!(OCI_INDEX)), "is not that of a manifest"),
        (with("manifests", json!([])), "members of a manifest and of an index"),
        (with("layers", json!(layers)), "it has 65 layers, at most 64 are allowed"),
        (with("annotations", json!(many)), "too many annotations"),
        (with("annotations", json!({"a": "x".repeat(300 << 10)})), "too many annotations, or too long ones"),
        (br#"{"schemaVersion": 2, "annotations": {"a": "1", "a": "2"}}"#.to_vec(), "appears twice"),
        (br#"{"schemaVersion": 2, "schemaVersion": 2}"#.to_vec(), "duplicate field"),
    ] {
        let error = place.error_of(&document).await.to_string();
        assert!(error.contains(problem), "{problem}: {error}");
    }
    let mut layer = good.clone();
    layer["layers"][0]["digest"] = json!("sha256:../../etc/passwd");
    let error = place.error_of(layer.to_string().as_bytes()).await.to_string();
    assert!(error.contains("is not \"sha256:\" and 64 of 0-9 a-f"), "{error}");
    // Depth costs nothing where it is not looked at.
    let nested = good.to_string().replacen('{', &format!("{{\"x\": {}{},", "[".repeat(9_000), "]".repeat(9_000)), 1);
    let error = place.error_of(nested.as_bytes()).await;
    assert!(matches!(error, PullError::NotFound { .. } | PullError::Document { .. }), "{error}");
}

#[tokio::test]
async fn documents_have_a_size() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    place.server.hook(|request, _| {
        let head = [head(200, &[("transfer-encoding", "chunked")]), b"\r\n".to_vec()].concat();
        request
            .is("GET", "/manifests/")
            .then(|| Reply::Endless(head, [b"10000\r\n", [b' '; 1 << 16].as_slice(), b"\r\n"].concat()))
    });
    let error = place.pull(&reference).await.unwrap_err();
    assert!(error.to_string().contains("has more than 4194304 bytes"), "{error}");
    // A head without an end.
    place.server.hook(|_, _| Some(Reply::Endless(head(200, &[]), b"x: y\r\n".repeat(1_000))));
    let error = place.pull(&reference).await.unwrap_err();
    assert!(matches!(error, PullError::Broken { .. }), "{error}");
}
