//! Pulling from an honest registry.
use serde_json::json;
use toolcell_policy::Reference;
use toolcell_registry::{COMPONENT_LAYER, Descriptor, OCI_INDEX, OCI_MANIFEST, PullError, StoreError, WASM_CONFIG};

use crate::server::{Reply, head};
use crate::{COMPONENT, Place, digest};

#[tokio::test]
async fn a_component_is_resolved_pulled_and_read() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    let client = place.client();
    assert_eq!(client.resolve(&place.reference()).await.unwrap(), artifact.digest());
    assert_eq!(client.resolve(&reference).await.unwrap(), artifact.digest());
    let seen = std::sync::Mutex::new(Vec::new());
    let pulled =
        client.pull(&reference, &place.store(), &|progress| seen.lock().unwrap().push(progress)).await.unwrap();
    let last = seen.lock().unwrap().last().copied().unwrap();
    assert_eq!((last.bytes, last.total), (COMPONENT.len() as u64, COMPONENT.len() as u64));
    assert_eq!((&pulled.digest, &pulled.manifest), (&artifact.digest(), &artifact.digest()));
    assert_eq!((pulled.bytes, pulled.attached), (COMPONENT.len() as u64, 0));
    let stored = place.store().component(&artifact.digest()).unwrap();
    assert_eq!((stored.bytes.as_slice(), stored.layer), (COMPONENT, digest(COMPONENT)));
    assert_eq!((stored.config, stored.manifest_bytes), (artifact.config.clone(), artifact.manifest_bytes()));
    let listed = place.store().list().unwrap();
    assert_eq!(listed[0].names, [reference.name()]);
    assert_eq!((listed.len(), listed[0].bytes), (1, Some(COMPONENT.len() as u64)));
    assert_eq!(place.store().verify().unwrap(), []);
}

#[tokio::test]
async fn what_the_store_has_is_not_downloaded_again() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    assert!(place.pull(&reference).await.unwrap().downloaded > 0);
    let blobs = place.server.count("GET", "/blobs/");
    assert_eq!(place.pull(&reference).await.unwrap().downloaded, 0);
    assert_eq!(place.server.count("GET", "/blobs/"), blobs);
}

#[tokio::test]
async fn a_digest_is_hashed_where_the_head_says_none() {
    let place = Place::new();
    let (artifact, _) = place.publish(COMPONENT);
    place.server.hook(|request, _| (request.method == "HEAD").then(|| Reply::new(405, &[], b"")));
    assert_eq!(place.client().resolve(&place.reference()).await.unwrap(), artifact.digest());
}

#[tokio::test]
async fn other_forms_of_components_are_pulled() {
    const RUNWASI: &str = "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm";
    for (config, layer) in [
        ("application/vnd.bytecodealliance.wasm.component.config.v0+json", RUNWASI),
        ("application/vnd.oci.image.config.v1+json", RUNWASI),
        ("application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm"),
        ("application/vnd.oci.image.config.v1+json", "application/vnd.module.wasm.content.layer.v1+wasm"),
        (WASM_CONFIG, "application/wasm; charset=binary"),
    ] {
        let place = Place::new();
        let manifest = json!({
            "schemaVersion": 2,
            "config": {"mediaType": config, "digest": place.server.add_blob(b"{}"), "size": 2},
            "layers": [
                {"mediaType": "text/plain", "digest": place.server.add_blob(b"policy"), "size": 6},
                {"mediaType": layer, "digest": place.server.add_blob(COMPONENT), "size": COMPONENT.len()},
            ],
            "annotations": {"a": "b"},
        });
        let named = place.server.add_manifest(None, manifest.to_string().as_bytes());
        let reference = Reference::parse(&format!("{}@{named}", place.reference())).unwrap();
        place.pull(&reference).await.unwrap();
        let stored = place.store().component(reference.digest().unwrap()).unwrap();
        assert_eq!((stored.bytes.as_slice(), stored.annotations["a"].as_str()), (COMPONENT, "b"));
    }
}

#[tokio::test]
async fn the_component_of_an_index_is_pulled_by_the_digest_of_the_index() {
    let place = Place::new();
    let (artifact, _) = place.publish(COMPONENT);
    let manifest = artifact.manifest_bytes();
    let other = digest(b"other").to_string();
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [
        {"mediaType": OCI_MANIFEST, "digest": other, "size": 1, "platform": {"os": "linux", "architecture": "amd64"}},
        {"mediaType": OCI_MANIFEST, "digest": artifact.digest().as_str(), "size": manifest.len(),
         "platform": {"os": "wasi", "architecture": "wasm"}},
    ]});
    place.server.add_manifest(Some("1"), index.to_string().as_bytes());
    let reference = place.reference().with_digest(place.client().resolve(&place.reference()).await.unwrap());
    let pulled = place.pull(&reference).await.unwrap();
    assert_ne!(pulled.digest, pulled.manifest);
    let stored = place.store().component(&pulled.digest).unwrap();
    assert_eq!((stored.bytes.as_slice(), stored.manifest), (COMPONENT, artifact.digest()));
    assert_eq!(stored.index_bytes.unwrap(), index.to_string().into_bytes());
    assert_eq!(place.store().verify().unwrap(), []);
}

#[tokio::test]
async fn the_component_of_an_index_is_known_by_the_type_of_its_artifact() {
    for kind in [
        "application/vnd.wasm.config.v0+json",
        "application/vnd.bytecodealliance.component.v1+wasm",
        "application/vnd.bytecodealliance.module.v1+wasm",
        "application/vnd.bytecodealliance.wasm.component.config.v0+json",
    ] {
        let place = Place::new();
        let (artifact, _) = place.publish(COMPONENT);
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [
            {"mediaType": OCI_MANIFEST, "digest": digest(b"other").to_string(), "size": 1, "artifactType": "text/plain"},
            {"mediaType": OCI_MANIFEST, "digest": artifact.digest().as_str(), "size": artifact.manifest_bytes().len(),
             "artifactType": kind},
        ]});
        place.server.add_manifest(Some("1"), index.to_string().as_bytes());
        let reference = place.reference().with_digest(place.client().resolve(&place.reference()).await.unwrap());
        let pulled = place.pull(&reference).await.unwrap();
        assert_eq!(place.store().component(&pulled.digest).unwrap().bytes, COMPONENT, "{kind}");
    }
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_stopped() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 100_000]].concat();
    let (_, reference) = place.publish(&component);
    let layer = digest(&component).to_string();
    let half = component[..60_000].to_vec();
    let length = component.len().to_string();
    place.server.hook(move |request, _| {
        let is_first = request.is("GET", &layer) && request.header("range").is_none();
        let head = [head(200, &[("content-length", &length)]), b"\r\n".to_vec()].concat();
        is_first.then(|| Reply::Bytes([head, half.clone()].concat()))
    });
    let pulled = place.pull(&reference).await.unwrap();
    let ranges: Vec<_> = place.server.requests().iter().filter_map(|r| r.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, ["bytes=60000-"]);
    assert_eq!(place.store().component(&pulled.digest).unwrap().bytes, component);
}

#[tokio::test]
async fn what_has_come_is_kept_while_the_registry_has_other_troubles() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 1_000]].concat();
    let (_, reference) = place.publish(&component);
    let layer = digest(&component);
    let partial = place.store().root().join("partial").join(layer.hex());
    std::fs::write(&partial, &component[..500]).unwrap();
    for status in [401, 403, 404, 429, 500] {
        let layer = layer.to_string();
        place.server.hook(move |request, _| request.is("GET", &layer).then(|| Reply::new(status, &[], b"")));
        assert!(place.pull(&reference).await.is_err());
        assert_eq!(std::fs::metadata(&partial).unwrap().len(), 500, "{status}");
    }
    place.server.honest();
    place.pull(&reference).await.unwrap();
}

#[tokio::test]
async fn a_later_pull_goes_on_with_an_earlier_one_and_starts_anew_where_that_was_wrong() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 1_000]].concat();
    let (_, reference) = place.publish(&component);
    let layer = digest(&component).to_string();
    for begun in [component[..500].to_vec(), vec![b'x'; 500], vec![b'x'; component.len()], vec![b'x'; 5_000]] {
        let folder = tempfile::tempdir().unwrap();
        let store = toolcell_registry::Store::open(folder.path()).unwrap();
        std::fs::write(folder.path().join("partial").join(&layer[7..]), &begun).unwrap();
        place.client().pull(&reference, &store, &|_| ()).await.unwrap();
        assert_eq!(store.component(reference.digest().unwrap()).unwrap().bytes, component);
    }
    assert!(place.server.requests().iter().any(|request| request.header("range") == Some("bytes=500-")));
}

#[tokio::test]
async fn a_registry_without_ranges_is_asked_for_everything() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 1_000]].concat();
    let (_, reference) = place.publish(&component);
    for status in [200, 416, 206] {
        let folder = tempfile::tempdir().unwrap();
        let store = toolcell_registry::Store::open(folder.path()).unwrap();
        std::fs::write(folder.path().join("partial").join(digest(&component).hex()), &component[..500]).unwrap();
        let whole = component.clone();
        place.server.hook(move |request, _| {
            let range = format!("bytes 400-{}/{}", whole.len() - 1, whole.len());
            request.header("range").map(|_| Reply::new(status, &[("content-range", &range)], &whole))
        });
        place.client().pull(&reference, &store, &|_| ()).await.unwrap();
        assert_eq!(store.component(reference.digest().unwrap()).unwrap().bytes, component, "{status}");
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let place = Place::new();
    let error = place.client().resolve(&place.reference()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{} does not have example/weather:1", place.server.host()));
    assert!(error.hint().is_some());
    let error = place.pull(&place.reference()).await.unwrap_err();
    assert!(matches!(error, PullError::NoDigest(_)), "{error}");
    let error = place.store().component(&digest(b"x")).unwrap_err();
    assert!(matches!(error, StoreError::Missing(_)), "{error}");
    place.server.hook(|_, _| Some(Reply::new(503, &[], br#"{"errors":[{"code":"UNAVAILABLE"}]}"#)));
    let error = place.client().resolve(&place.reference()).await.unwrap_err();
    assert!(error.to_string().ends_with("answers with status 503 (UNAVAILABLE)"), "{error}");
    place.server.hook(|_, _| Some(Reply::new(429, &[], b"")));
    let error = place.client().resolve(&place.reference()).await.unwrap_err();
    assert!(matches!(error, PullError::RateLimited(_)), "{error}");
}

#[tokio::test]
async fn tags_are_listed_in_pages() {
    let place = Place::new();
    let last = |n: usize| format!("</v2/example/weather/tags/list?n=1000&last={n}>; rel=\"next\"");
    place.server.hook(move |request, _| {
        let tags = |names: &[&str]| json!({"tags": names}).to_string().into_bytes();
        if request.target.contains("last=2") {
            return Some(Reply::new(200, &[], &tags(&["c", "-no-tag", "a/b"])));
        }
        Some(Reply::new(200, &[("link", &last(2))], &tags(&["a", "b"])))
    });
    let tags = place.client().tags(&place.reference()).await.unwrap();
    assert_eq!((tags.names, tags.is_complete), (["a", "b", "c"].map(str::to_owned).to_vec(), true));
    // A list without an end, and one with too many.
    place.server.hook(move |_, _| Some(Reply::new(200, &[("link", &last(1))], br#"{"tags": null}"#)));
    let tags = place.client().tags(&place.reference()).await.unwrap();
    assert_eq!((tags.names.len(), tags.is_complete), (0, false));
    let many: Vec<_> = (0..20_000).map(|n| format!("t{n}")).collect();
    place.server.hook(move |_, _| Some(Reply::new(200, &[], json!({"tags": many}).to_string().as_bytes())));
    let tags = place.client().tags(&place.reference()).await.unwrap();
    assert_eq!((tags.names.len(), tags.is_complete), (toolcell_registry::TAGS_MAX, false));
}

#[test]
fn descriptors_are_what_they_say() {
    let parsed: Descriptor = serde_json::from_value(json!({
        "mediaType": COMPONENT_LAYER, "digest": digest(b"a").as_str(), "size": 1, "annotations": null,
    }))
    .unwrap();
    assert_eq!((parsed.digest, parsed.annotations.len()), (digest(b"a"), 0));
}
