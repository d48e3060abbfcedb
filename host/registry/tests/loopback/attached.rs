//! Artifacts that are attached to a component.
use std::time::Duration;

use serde_json::{Value, json};
use toolcell_registry::{EMPTY_CONFIG, OCI_INDEX, OCI_MANIFEST, PullError, RegistryClient};

use crate::server::Reply;
use crate::{COMPONENT, Place, digest, signature};

/// A manifest with one layer that is attached to a digest.
fn attached_to(place: &Place, subject: &str, text: &[u8]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/vnd.example",
        "config": {"mediaType": EMPTY_CONFIG, "digest": place.server.add_blob(b"{}"), "size": 2},
        "layers": [{"mediaType": "text/plain", "digest": place.server.add_blob(text), "size": text.len()}],
        "subject": {"mediaType": OCI_MANIFEST, "digest": subject, "size": 1},
    })
}

fn index(entries: &[Value]) -> Vec<u8> {
    json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).to_string().into_bytes()
}

#[tokio::test]
async fn artifacts_are_found_by_list_by_tag_and_by_cosigns_tag() {
    for has_referrers in [true, false] {
        let place = Place::new();
        let (_, reference) = place.publish(COMPONENT);
        place.server.contents(|contents| contents.has_referrers = has_referrers);
        let of = reference.digest().unwrap();
        let manifest = attached_to(&place, of.as_str(), b"listed").to_string();
        let listed = place.server.add_manifest(None, manifest.as_bytes());
        if !has_referrers {
            // The list says another type than the manifest, which counts.
            let entry =
                json!({"mediaType": OCI_MANIFEST, "digest": listed, "size": manifest.len(), "artifactType": "x"});
            place.server.add_manifest(Some(&format!("sha256-{}", of.hex())), &index(&[entry]));
        }
        let mut of_cosign = attached_to(&place, of.as_str(), b"payload");
        of_cosign.as_object_mut().unwrap().remove("subject");
        of_cosign.as_object_mut().unwrap().remove("artifactType");
        of_cosign["layers"][0]["annotations"] = json!({"dev.cosignproject.cosign/signature": "MEUC"});
        place.server.add_manifest(Some(&format!("sha256-{}.sig", of.hex())), of_cosign.to_string().as_bytes());
        // One manifest under both tags is one artifact.
        place.server.add_manifest(Some(&format!("sha256-{}.att", of.hex())), of_cosign.to_string().as_bytes());
        let pulled = place.pull(&reference).await.unwrap();
        assert_eq!((pulled.attached, pulled.skipped.as_slice(), pulled.not_looked_at), (2, &[][..], 0));
        let mut attached = place.store().attached(of, &reference.name()).unwrap();
        attached.sort_by_key(|one| one.artifact_type.clone());
        let types: Vec<_> = attached.iter().map(|one| one.artifact_type.as_str()).collect();
        assert_eq!(types, ["application/vnd.example", EMPTY_CONFIG]);
        assert_eq!((attached[0].layers[0].bytes.as_slice(), attached[0].digest.as_str()), (&b"listed"[..], &*listed));
        assert_eq!(attached[1].layers[0].annotations["dev.cosignproject.cosign/signature"], "MEUC");
        assert!(attached.iter().all(|one| one.subject == *of));
        assert_eq!(place.store().list().unwrap()[0].attached, 2);
        // Once more, and nothing appears twice.
        place.pull(&reference).await.unwrap();
        assert_eq!(place.store().attached(of, &reference.name()).unwrap().len(), 2);
        assert_eq!(place.client().referrers(&reference).await.unwrap().found.len(), 2);
        assert_eq!(place.store().verify().unwrap(), []);
    }
}

#[tokio::test]
async fn attestations_of_cosign_2_are_found_under_their_tag_within_the_same_bounds() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap();
    let attestation = |layers: &[(&[u8], u64)]| {
        let mut manifest = attached_to(&place, of.as_str(), b"");
        manifest.as_object_mut().unwrap().remove("subject");
        manifest["layers"] = layers
            .iter()
            .map(|(text, size)| {
                json!({
                    "mediaType": "application/vnd.dsse.envelope.v1+json", "digest": place.server.add_blob(text),
                    "size": size, "annotations": {"predicateType": "https://slsa.dev/provenance/v1"},
                })
            })
            .collect();
        place.server.add_manifest(Some(&format!("sha256-{}.att", of.hex())), manifest.to_string().as_bytes());
    };
    attestation(&[(b"provenance", 10), (b"sbom", 4)]);
    let pulled = place.pull(&reference).await.unwrap();
    assert_eq!((pulled.attached, pulled.skipped.as_slice()), (1, &[][..]));
    let attached = place.store().attached(of, &reference.name()).unwrap();
    let texts: Vec<_> = attached[0].layers.iter().map(|layer| layer.bytes.as_slice()).collect();
    assert_eq!(texts, [b"provenance".as_slice(), b"sbom"]);
    assert_eq!(attached[0].layers[0].annotations["predicateType"], "https://slsa.dev/provenance/v1");
    attestation(&[(b"large", (8 << 20) + 1)]);
    let again = place.client().referrers(&reference).await.unwrap();
    assert_eq!((again.found.len(), again.skipped.len()), (0, 1));
    let reason = &again.skipped[0].reason;
    assert!(reason.contains("a layer of an attached artifact"), "{reason}");
}

#[tokio::test]
async fn ten_thousand_referrers_cost_as_much_as_sixty_four() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap().to_string();
    let good = attached_to(&place, &of, b"good").to_string();
    let good = json!({"mediaType": OCI_MANIFEST, "size": good.len(), "digest": place.server.add_manifest(None, good.as_bytes())});
    let mut entries = vec![good];
    entries.extend(
        (1..10_000)
            .map(|n: u32| json!({"mediaType": OCI_MANIFEST, "digest": digest(n.to_le_bytes()).as_str(), "size": 1})),
    );
    let list = index(&entries);
    place.server.hook(move |request, _| request.is("GET", "/referrers/").then(|| Reply::new(200, &[], &list)));
    let pulled = place.pull(&reference).await.unwrap();
    assert_eq!((pulled.attached, pulled.skipped.len(), pulled.not_looked_at), (1, 63, 10_000 - 64));
    assert!(place.server.requests().len() < 100);
}

#[tokio::test]
async fn of_a_list_that_is_too_long_the_beginning_counts_wherever_it_is() {
    let of_cosign = |digest: &str, n: u32| {
        json!({"mediaType": OCI_MANIFEST, "digest": digest, "size": 1_000 + n, "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "annotations": {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
                "org.opencontainers.image.created": "2026-11-26T20:00:00Z"}})
    };
    for is_by_tag in [false, true] {
        let place = Place::new();
        let (_, reference) = place.publish(COMPONENT);
        let of = reference.digest().unwrap().clone();
        let good = place.server.add_manifest(None, attached_to(&place, of.as_str(), b"good").to_string().as_bytes());
        let mut entries = vec![of_cosign(&good, 0)];
        entries.extend((1..12_000_u32).map(|n| of_cosign(digest(n.to_le_bytes()).as_str(), n)));
        let list = index(&entries);
        assert!(list.len() > 4 << 20, "{}", list.len());
        let path = if is_by_tag { format!("/manifests/sha256-{}", of.hex()) } else { "/referrers/".to_owned() };
        place.server.hook(move |request, _| match request {
            _ if request.is("GET", &path) && !request.is("GET", ".sig") && !request.is("GET", ".att") => {
                Some(Reply::new(200, &[], &list))
            }
            _ if is_by_tag && request.is("GET", "/referrers/") => Some(Reply::new(405, &[], b"")),
            _ => None,
        });
        let pulled = place.pull(&reference).await.unwrap();
        assert_eq!(
            (pulled.attached, pulled.skipped.len(), pulled.not_looked_at),
            (1, 63, 1_000 - 64 + 1),
            "{is_by_tag}"
        );
    }
}

#[tokio::test]
async fn a_list_that_is_none_is_left_out_and_said() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap().clone();
    place.server.add_manifest(Some(&format!("sha256-{}", of.hex())), &artifact.manifest_bytes());
    place.server.hook(|request, _| request.is("GET", "/referrers/").then(|| Reply::new(405, &[], b"")));
    let pulled = place.pull(&reference).await.unwrap();
    assert_eq!((pulled.attached, pulled.skipped.len(), &pulled.skipped[0].digest), (0, 1, &of));
    let reason = &pulled.skipped[0].reason;
    assert!(reason.starts_with(&format!("the list of referrers of {of} is not understood: ")), "{reason}");
}

#[tokio::test]
async fn a_list_without_an_end_is_left() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let list = index(&[]);
    place.server.hook(move |request, _| {
        let link = "</v2/example/weather/referrers/again>; rel=\"next\"";
        request.is("GET", "/referrers/").then(|| Reply::new(200, &[("link", link)], &list))
    });
    let pulled = place.pull(&reference).await.unwrap();
    assert_eq!((pulled.attached, pulled.not_looked_at), (0, 1), "there is at least one page more");
    assert_eq!(place.server.count("GET", "/referrers/"), 100);
}

#[tokio::test]
async fn a_long_list_of_an_index_takes_no_place_of_its_manifests_signatures() {
    let place = Place::new();
    let (artifact, _) = place.publish(COMPONENT);
    let manifest = artifact.manifest_bytes();
    let entry = json!({"mediaType": OCI_MANIFEST, "digest": artifact.digest().as_str(), "size": manifest.len(),
        "platform": {"os": "wasi", "architecture": "wasm"}});
    let of_index = place.server.add_manifest(Some("1"), &index(&[entry]));
    let signed = attached_to(&place, artifact.digest().as_str(), b"signed").to_string();
    let signed = place.server.add_manifest(None, signed.as_bytes());
    let many = (0..10_000)
        .map(|n: u32| json!({"mediaType": OCI_MANIFEST, "digest": digest(n.to_le_bytes()).as_str(), "size": 1}));
    let long = index(&many.collect::<Vec<_>>());
    let path = format!("/referrers/{of_index}");
    place.server.hook(move |request, _| request.is("GET", &path).then(|| Reply::new(200, &[], &long)));
    let reference = place.reference().with_digest(place.client().resolve(&place.reference()).await.unwrap());
    let pulled = place.pull(&reference).await.unwrap();
    assert_eq!((pulled.digest.as_str(), &pulled.manifest), (of_index.as_str(), &artifact.digest()));
    assert_eq!((pulled.attached, pulled.skipped.len(), pulled.not_looked_at), (1, 63, 10_000 - 63));
    let attached = place.store().attached(reference.digest().unwrap(), &reference.name()).unwrap();
    let attached: Vec<_> = attached.iter().map(|one| (one.digest.as_str(), &one.subject)).collect();
    assert_eq!(attached, [(signed.as_str(), &artifact.digest())]);
}

#[tokio::test]
async fn referrers_that_only_drip_have_one_time_for_all() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap().to_string();
    for n in 0..8_u8 {
        place.server.add_manifest(None, attached_to(&place, &of, &[n]).to_string().as_bytes());
    }
    place.server.hook(move |request, contents| {
        let (_, name) = request.target.split_once("/manifests/")?;
        let bytes = contents.manifests.get(name).filter(|_| name.starts_with("sha256:") && name != of)?;
        Some(Reply::dripped(200, &[], bytes.len(), bytes))
    });
    let mut options = place.options();
    options.bounds.attached = Duration::from_millis(1_500);
    let client = RegistryClient::new(options.clone());
    for error in [
        client.pull(&reference, &place.store(), &|_| ()).await.unwrap_err(),
        client.referrers(&reference).await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), format!("{} does not give what is attached within 1.5s", place.server.host()));
    }
    assert_eq!(place.store().list().unwrap(), [], "a component without its signatures is not recorded");
    place.server.honest();
    assert_eq!(place.pull(&reference).await.unwrap().attached, 8);
}

#[tokio::test]
async fn a_pull_has_a_time_for_all_of_it() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    place.server.hook(|request, contents| {
        let (_, name) = request.target.split_once("/manifests/")?;
        contents.manifests.get(name).map(|bytes| Reply::dripped(200, &[], bytes.len(), bytes))
    });
    let mut options = place.options();
    options.bounds.pull = Duration::from_millis(300);
    let error = RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Late { step: "give the component", .. }), "{error}");
    place.server.honest();
    place.pull(&reference).await.unwrap();
}

#[tokio::test]
async fn an_artifact_that_lies_is_left_out_and_said() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap().to_string();
    let mut large = attached_to(&place, &of, b"large");
    large["layers"][0]["size"] = json!(9 << 20);
    let mut longer = attached_to(&place, &of, b"longer");
    longer["layers"][0]["size"] = json!(3);
    let mut missing = attached_to(&place, &of, b"gone");
    missing["layers"][0]["digest"] = json!(digest(b"nobody has it").as_str());
    let elsewhere = attached_to(&place, digest(b"other").as_str(), b"elsewhere");
    let documents = [large, longer, missing, elsewhere, json!({"deep": 1})];
    let mut entries = Vec::new();
    for document in &documents {
        let digest = place.server.add_manifest(None, document.to_string().as_bytes());
        entries.push(json!({"mediaType": OCI_MANIFEST, "digest": digest, "size": 1}));
    }
    let list = index(&entries);
    place.server.hook(move |request, _| request.is("GET", "/referrers/").then(|| Reply::new(200, &[], &list)));
    let pulled = place.pull(&reference).await.unwrap();
    let reasons: Vec<_> = pulled.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
    assert_eq!((pulled.attached, reasons.len()), (0, 5));
    for (reason, part) in reasons.iter().zip([
        "more than 8388608 bytes",
        "more than 3 bytes",
        "does not have",
        "it is attached to something else",
        "is not understood",
    ]) {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(place.store().attached(reference.digest().unwrap(), &reference.name()).unwrap(), []);
}

#[tokio::test]
async fn a_component_whose_list_breaks_off_is_not_pulled_as_if_it_had_none() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    place.server.hook(|request, _| request.is("GET", "/referrers/").then(|| Reply::Bytes(b"HTTP/1.1 200".to_vec())));
    assert!(place.pull(&reference).await.is_err());
    place.server.hook(|request, _| request.is("GET", "/referrers/").then(|| Reply::new(500, &[], b"")));
    assert!(place.pull(&reference).await.is_err());
    place.server.honest();
    let layer = digest(COMPONENT).to_string();
    assert_eq!(place.server.count("GET", &layer), 0, "the component is asked for last");
    let _ = place.pull(&reference).await.unwrap();
    assert_eq!(place.server.count("GET", &layer), 1);
    // The artifact itself, likewise.
    let digests = place.client().attach(&reference, &[signature("signed")]).await.unwrap();
    let signed = digests[0].to_string();
    place.server.hook(move |request, _| request.is("GET", &signed).then(|| Reply::new(503, &[], b"")));
    assert!(place.pull(&reference).await.is_err());
}

#[tokio::test]
async fn what_is_attached_later_comes_with_the_next_pull() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    assert_eq!(place.pull(&reference).await.unwrap().attached, 0);
    let digests = place.client().attach(&reference, &[signature("one"), signature("two")]).await.unwrap();
    assert_eq!(place.pull(&reference).await.unwrap().attached, 2);
    let mut found: Vec<_> = place
        .store()
        .attached(&artifact.digest(), &place.reference().name())
        .unwrap()
        .into_iter()
        .map(|a| a.digest)
        .collect();
    found.sort();
    let mut digests = digests;
    digests.sort();
    assert_eq!(found, digests);
}

#[tokio::test]
async fn long_types_and_long_manifests_of_referrers_stay_out_of_the_store() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let of = reference.digest().unwrap().to_string();
    let mut long = attached_to(&place, &of, b"long");
    long["artifactType"] = json!("x".repeat(256));
    let mut longest = attached_to(&place, &of, b"longest");
    longest["artifactType"] = json!("x".repeat(255));
    let padded = format!("{}{}", attached_to(&place, &of, b"padded"), " ".repeat(1 << 20));
    let mut entries = Vec::new();
    for document in [long.to_string(), longest.to_string(), padded] {
        let digest = place.server.add_manifest(None, document.as_bytes());
        entries.push(json!({"mediaType": OCI_MANIFEST, "digest": digest, "size": 1}));
    }
    let list = index(&entries);
    place.server.hook(move |request, _| request.is("GET", "/referrers/").then(|| Reply::new(200, &[], &list)));
    let pulled = place.pull(&reference).await.unwrap();
    let reasons: Vec<_> = pulled.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
    assert_eq!((pulled.attached, reasons.len()), (1, 2));
    assert!(reasons[0].contains("a type has 256 bytes, at most 255 are allowed"), "{}", reasons[0]);
    assert!(reasons[1].contains("a manifest of") && reasons[1].contains("more than 1048576 bytes"), "{}", reasons[1]);
    assert_eq!(place.store().list().unwrap()[0].attached, 1);
}

#[tokio::test]
async fn signatures_of_another_repository_take_no_place_of_a_components_own() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    place.client().attach(&reference, &[signature("own")]).await.unwrap();
    place.pull(&reference).await.unwrap();
    // A stranger's copy has more of them.
    place.client().attach(&reference, &[signature("strange")]).await.unwrap();
    let copy =
        toolcell_policy::Reference::parse("oci://evil.example/weather:1").unwrap().with_digest(artifact.digest());
    let mut options = place.options();
    let mirror = Some(format!("{}/example", place.server.host()));
    let settings = toolcell_registry::RegistrySettings { mirror, ..Default::default() };
    options.by_host.insert("evil.example".to_owned(), settings);
    RegistryClient::new(options).pull(&copy, &place.store(), &|_| ()).await.unwrap();
    let texts = |name: &str| {
        let attached = place.store().attached(&artifact.digest(), name).unwrap();
        attached.into_iter().map(|one| String::from_utf8(one.layers[0].bytes.clone()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&reference.name()), ["own"]);
    assert_eq!(texts(&copy.name()).len(), 2);
    assert_eq!(texts("other.example/weather"), [""; 0]);
    assert_eq!(place.store().list().unwrap()[0].attached, 2);
    // An archive does not say where they are from: they count after a repository's own.
    let mut archive = Vec::new();
    place.store().export(&[artifact.digest()], &mut archive).unwrap();
    assert_eq!(place.store().import(archive.as_slice()).unwrap().attached, 2);
    assert_eq!(texts(&reference.name()), ["own", "strange"]);
    assert_eq!(texts("other.example/weather").len(), 2);
    assert_eq!(place.store().list().unwrap()[0].attached, 2);
}
