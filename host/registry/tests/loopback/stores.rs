//! Stores on disk: changed, broken, shared, and carried in archives.
//!
//! Promise: a registry gives what the manifest pins.
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::json;
use toolcell_policy::Reference;
use toolcell_registry::{Imported, OCI_MANIFEST, RegistryClient, Store, StoreError};

use crate::{COMPONENT, Place, digest, options_for, signature};

/// Tells a process of this program which registry it pulls from, and into which store.
const PULL: &str = "TOOLCELL_TEST_PULL";

impl Place {
    fn blob(&self, bytes: &[u8]) -> PathBuf {
        self.store().root().join("blobs/sha256").join(digest(bytes).hex())
    }
}

#[tokio::test]
async fn whatever_was_changed_after_the_pull_is_found_when_it_is_read() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    place.client().attach(&reference, &[signature("signed")]).await.unwrap();
    place.pull(&reference).await.unwrap();
    let store = place.store();
    let attached = store.attached(&artifact.digest(), &place.reference().name()).unwrap().remove(0);
    for bytes in [COMPONENT, &artifact.manifest_bytes(), &artifact.config] {
        let path = place.blob(bytes);
        let mut changed = bytes.to_vec();
        changed[3] ^= 1;
        for (text, is_size) in [(changed.clone(), false), (changed[1..].to_vec(), true)] {
            fs::write(&path, text).unwrap();
            let error = store.component(&artifact.digest()).unwrap_err();
            assert!(matches!(error, StoreError::Changed { .. }) || is_size, "{error}");
            assert!(error.hint().is_some() && !store.verify().unwrap().is_empty());
        }
        // A pull puts it right, where there is a pull.
        fs::write(&path, bytes).unwrap();
    }
    for bytes in [b"signed".as_slice(), &attached.manifest_bytes] {
        fs::write(place.blob(bytes), b"forged").unwrap();
        assert!(store.attached(&artifact.digest(), &place.reference().name()).is_err());
        fs::write(place.blob(bytes), bytes).unwrap();
    }
    assert_eq!(store.verify().unwrap(), []);
    fs::remove_file(place.blob(COMPONENT)).unwrap();
    assert!(matches!(store.component(&artifact.digest()).unwrap_err(), StoreError::Missing(_)));
    std::os::unix::fs::symlink("/etc/hostname", place.blob(COMPONENT)).unwrap();
    assert!(matches!(store.component(&artifact.digest()).unwrap_err(), StoreError::Files { .. }));
    fs::remove_file(place.blob(COMPONENT)).unwrap();
    fs::create_dir(place.blob(COMPONENT)).unwrap();
    assert!(matches!(store.component(&artifact.digest()).unwrap_err(), StoreError::Files { .. }));
}

#[tokio::test]
async fn a_changed_store_is_put_right_by_a_pull() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    place.pull(&reference).await.unwrap();
    fs::write(place.blob(COMPONENT), b"other").unwrap();
    fs::write(place.blob(&artifact.manifest_bytes()), b"other").unwrap();
    place.pull(&reference).await.unwrap();
    assert_eq!(place.store().component(&artifact.digest()).unwrap().bytes, COMPONENT);
    assert_eq!(place.store().verify().unwrap(), []);
}

#[tokio::test]
async fn a_broken_index_is_said_and_hides_no_component() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    place.pull(&reference).await.unwrap();
    let index = place.store().root().join("index.json");
    for text in ["", "{", "[]", r#"{"schemaVersion": 1, "manifests": []}"#, &"[".repeat(100_000)] {
        fs::write(&index, text).unwrap();
        let error = place.store().list().unwrap_err();
        assert!(matches!(error, StoreError::Index { .. }) && error.hint().is_some(), "{error}");
        let faults = place.store().verify().unwrap();
        assert_eq!((faults.len(), faults[0].hint), (1, error.hint()), "no other advice helps: {faults:?}");
        assert_eq!(place.store().component(&artifact.digest()).unwrap().bytes, COMPONENT);
        assert!(place.pull(&reference).await.is_err());
        assert_eq!(fs::read_to_string(&index).unwrap(), text);
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(place.pull(&reference).await.unwrap().downloaded, 0);
    assert_eq!(place.store().list().unwrap().len(), 1);
}

#[test]
fn only_an_empty_folder_or_a_store_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).unwrap();
    Store::open(folder.path()).unwrap();
    fs::write(folder.path().join("oci-layout"), r#"{"imageLayoutVersion": "2.0.0"}"#).unwrap();
    assert!(matches!(Store::open(folder.path()).unwrap_err(), StoreError::NotAStore { .. }));
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("thesis.txt"), "precious").unwrap();
    let error = Store::open(other.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }) && error.hint().is_some(), "{error}");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn removing_keeps_what_is_needed_with_all_its_parts() {
    let place = Place::new();
    let (kept, kept_reference) = place.publish(COMPONENT);
    place.client().attach(&kept_reference, &[signature("kept")]).await.unwrap();
    place.pull(&kept_reference).await.unwrap();
    let (gone, reference) = place.publish(b"\0asm another");
    place.client().attach(&reference, &[signature("gone")]).await.unwrap();
    place.pull(&reference).await.unwrap();
    let store = place.store();
    fs::write(store.root().join("partial").join(digest(b"x").hex()), "begun").unwrap();
    let removed = store.gc(&BTreeSet::from([kept.digest()])).unwrap();
    // Component, config and manifest; the layer and the manifest of what is attached; the download.
    assert_eq!((removed.components, removed.files >= 6), (1, true), "{removed:?}");
    assert!(store.component(&gone.digest()).is_err());
    assert_eq!(store.component(&kept.digest()).unwrap().bytes, COMPONENT);
    assert_eq!(store.attached(&kept.digest(), &place.reference().name()).unwrap().len(), 1);
    assert_eq!(store.verify().unwrap(), []);
    assert_eq!(store.gc(&BTreeSet::from([kept.digest()])).unwrap().files, 0);
    assert_eq!(store.gc(&BTreeSet::new()).unwrap().components, 1);
    assert_eq!(store.list().unwrap(), []);
}

#[tokio::test]
async fn nothing_is_removed_while_a_component_is_pulled() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let store = place.store();
    let refused = std::sync::Mutex::new(Vec::new());
    let look = |_| refused.lock().unwrap().push(store.gc(&BTreeSet::new()));
    place.client().pull(&reference, &place.store(), &look).await.unwrap();
    let refused = refused.lock().unwrap();
    assert!(!refused.is_empty() && refused.iter().all(|result| matches!(result, Err(StoreError::Busy(_)))));
    assert!(place.store().component(reference.digest().unwrap()).is_ok());
}

#[tokio::test]
async fn an_archive_is_a_layout_and_comes_back_whole() {
    let place = Place::new();
    let (artifact, reference) = place.publish(COMPONENT);
    place.client().attach(&reference, &[signature("signed")]).await.unwrap();
    place.pull(&reference).await.unwrap();
    let mut archive = Vec::new();
    place.store().export(&[artifact.digest()], &mut archive).unwrap();
    let mut again = Vec::new();
    place.store().export(&[artifact.digest()], &mut again).unwrap();
    assert_eq!(archive, again);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let imported = store.import(archive.as_slice()).unwrap();
    assert_eq!(imported, Imported { components: vec![artifact.digest()], attached: 1 });
    assert_eq!(store.component(&artifact.digest()).unwrap(), place.store().component(&artifact.digest()).unwrap());
    assert_eq!(
        store.attached(&artifact.digest(), &place.reference().name()).unwrap(),
        place.store().attached(&artifact.digest(), &place.reference().name()).unwrap()
    );
    assert_eq!(store.list().unwrap(), place.store().list().unwrap());
    assert_eq!(store.verify().unwrap(), []);
    store.import(archive.as_slice()).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    assert!(matches!(store.export(&[digest(b"x")], Vec::new()).unwrap_err(), StoreError::Missing(_)));
    // Each archive that breaks off is refused, and leaves nothing.
    let empty = tempfile::tempdir().unwrap();
    let store = Store::open(empty.path()).unwrap();
    for length in (0..archive.len() - 1024).step_by(500) {
        assert!(store.import(&archive[..length]).is_err(), "{length}");
    }
    assert_eq!(fs::read_dir(empty.path().join("blobs/sha256")).unwrap().count(), 0);
    assert_eq!(store.list().unwrap(), []);
}

/// A file of an archive as `ustar`, with any name, kind and length.
fn file(name: &str, kind: u8, said: usize, contents: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(124, format!("{said:011o}").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.extend(contents);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn regular(name: &str, contents: &[u8]) -> Vec<u8> {
    file(name, b'0', contents.len(), contents)
}

#[test]
fn archives_that_lie_are_refused_and_leave_nothing() {
    let layout = regular("./oci-layout", br#"{"imageLayoutVersion": "1.0.0"}"#);
    let blob = |bytes: &[u8]| regular(&format!("blobs/sha256/{}", digest(bytes).hex()), bytes);
    let entry =
        |bytes: &[u8]| json!({"mediaType": OCI_MANIFEST, "digest": digest(bytes).as_str(), "size": bytes.len()});
    let index = |entries: serde_json::Value| {
        regular("index.json", json!({"schemaVersion": 2, "manifests": entries}).to_string().as_bytes())
    };
    let artifact = toolcell_registry::Artifact::new(COMPONENT);
    let manifest = artifact.manifest_bytes();
    let good = index(json!([entry(&manifest)]));
    let named = |name: &str| vec![layout.clone(), regular(name, b"x"), good.clone()];
    let hex = digest(b"x").hex().to_owned();
    let many = json!(vec![entry(b"x"); 10_001]);
    let deep = regular("index.json", "[".repeat(1_000_000).as_bytes());
    for (parts, problem) in [
        (vec![], "breaks off"),
        (vec![vec![0; 1024]], "no oci-layout"),
        (vec![layout.clone(), vec![0; 1024]], "no index.json"),
        (named("../../escape"), "it has the file \"../../escape\""),
        (named("/etc/passwd"), "it has the file"),
        (named("blobs/sha256/../../escape"), "it has the file"),
        (named(&format!("blobs/sha256/./{hex}")), "it has the file"),
        (named(&format!("blobs/sha512/{hex}")), "it has the file"),
        (named(&format!("blobs/sha256/{}", digest(b"y").hex())), "the digest of its file"),
        (vec![layout.clone(), file("link", b'2', 0, b"")], "an entry of kind '2'"),
        (vec![layout.clone(), file("device", b'3', 0, b"")], "an entry of kind '3'"),
        (vec![layout.clone(), file("long", b'L', 5, b"name")], "an entry of kind 'L'"),
        (vec![layout.clone(), file("pax", b'x', 12, b"12 path=../a")], "a name or a length"),
        (vec![layout.clone(), file("pax", b'x', 1 << 20, b"")], "an extended header of more than"),
        (vec![layout.clone(), file("folder", b'5', 0, b"")], "it has the folder"),
        (vec![layout.clone(), file(&format!("blobs/sha256/{hex}"), b'0', 1 << 32, b"x")], "breaks off"),
        (vec![layout.clone(), file("index.json", b'0', 1 << 32, b"")], "has more than 16777216 bytes"),
        (vec![layout.clone(), vec![7; 512]], "a number of another form"),
        (vec![layout.clone(), good.clone(), vec![0; 1024]], "does not have sha256:"),
        (vec![layout.clone(), blob(b"x"), blob(b"x")], "twice"),
        (vec![layout.clone(), index(json!([entry(b"{}")])), blob(b"{}"), vec![0; 1024]], "missing field"),
        (vec![layout.clone(), good.clone(), blob(&manifest), vec![0; 1024]], "does not have sha256:"),
        (vec![layout.clone(), index(many), vec![0; 1024]], "more than 10000 entries"),
        (vec![layout.clone(), deep, vec![0; 1024]], "is not understood"),
        (vec![regular("oci-layout", b"{}"), good.clone()], "another version"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/store");
        let store = Store::open(&root).unwrap();
        let error = store.import(parts.concat().as_slice()).unwrap_err();
        assert!(error.to_string().contains(problem), "{problem}: {error}");
        assert_eq!(fs::read_dir(root.join("blobs/sha256")).unwrap().count(), 0, "{problem}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(store.list().unwrap(), []);
    }
    let whole = [layout, good, blob(&manifest), blob(&artifact.config), blob(COMPONENT), vec![0; 1024]];
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.import(whole.concat().as_slice()).unwrap().components, [artifact.digest()]);
    assert_eq!(store.component(&artifact.digest()).unwrap().bytes, COMPONENT);
}

/// An archive with these entries and blobs.
fn archive(entries: serde_json::Value, blobs: &[&[u8]]) -> Vec<u8> {
    let index = json!({"schemaVersion": 2, "manifests": entries}).to_string();
    let mut parts = regular("oci-layout", br#"{"imageLayoutVersion": "1.0.0"}"#);
    parts.extend(regular("index.json", index.as_bytes()));
    for blob in blobs {
        parts.extend(regular(&format!("blobs/sha256/{}", digest(blob).hex()), blob));
    }
    parts.extend([0; 1024]);
    parts
}

#[test]
fn an_attached_layer_that_is_too_large_is_not_imported() {
    let artifact = toolcell_registry::Artifact::new(COMPONENT);
    let manifest = artifact.manifest_bytes();
    let large = vec![0; (8 << 20) + 1];
    let of_it = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST,
        "config": {"mediaType": "application/json", "digest": digest(b"{}").as_str(), "size": 2},
        "layers": [{"mediaType": "text/plain", "digest": digest(&large).as_str(), "size": large.len()}],
        "subject": {"mediaType": OCI_MANIFEST, "digest": artifact.digest().as_str(), "size": manifest.len()},
    });
    let of_it = of_it.to_string().into_bytes();
    let entry =
        |bytes: &[u8]| json!({"mediaType": OCI_MANIFEST, "digest": digest(bytes).as_str(), "size": bytes.len()});
    let blobs = [&manifest, COMPONENT, &artifact.config, &of_it, b"{}".as_slice(), &large];
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let error = store.import(archive(json!([entry(&manifest), entry(&of_it)]), &blobs).as_slice()).unwrap_err();
    assert!(error.to_string().contains("a layer has more than 8388608 bytes"), "{error}");
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn a_component_that_names_a_subject_stays_one_after_an_import() {
    let artifact = toolcell_registry::Artifact::new(COMPONENT);
    let mut manifest = artifact.manifest_bytes();
    manifest.truncate(manifest.len() - 1);
    let of = digest(b"something that is not there");
    manifest
        .extend(format!(",\"subject\":{{\"mediaType\":\"{OCI_MANIFEST}\",\"digest\":\"{of}\",\"size\":1}}}}").bytes());
    let entry = json!({"mediaType": OCI_MANIFEST, "digest": digest(&manifest).as_str(), "size": manifest.len()});
    let archive = archive(json!([entry]), &[&manifest, COMPONENT, &artifact.config]);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.import(archive.as_slice()).unwrap().components, [digest(&manifest)]);
    store.gc(&BTreeSet::from([digest(&manifest)])).unwrap();
    assert_eq!(store.component(&digest(&manifest)).unwrap().bytes, COMPONENT);
    assert_eq!(store.list().unwrap().len(), 1);
    // It comes out of the store, and into another one, in the same way.
    let mut exported = Vec::new();
    store.export(&[digest(&manifest)], &mut exported).unwrap();
    let other = tempfile::tempdir().unwrap();
    let other = Store::open(other.path()).unwrap();
    assert_eq!(other.import(exported.as_slice()).unwrap().components, [digest(&manifest)]);
}

#[test]
fn manifests_of_attached_artifacts_count_as_what_they_take() {
    let artifact = toolcell_registry::Artifact::new(COMPONENT);
    let manifest = artifact.manifest_bytes();
    // Each has a small layer, and a manifest of nearly 4 MiB.
    let of_it = |n: u32| {
        let mut text = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "annotations": {"n": n.to_string()},
            "config": {"mediaType": "application/json", "digest": digest(b"{}").as_str(), "size": 2},
            "layers": [{"mediaType": "text/plain", "digest": digest(b"x").as_str(), "size": 1}],
            "subject": {"mediaType": OCI_MANIFEST, "digest": artifact.digest().as_str(), "size": manifest.len()},
        })
        .to_string()
        .into_bytes();
        text.resize((4 << 20) - 1, b' ');
        text
    };
    let large: Vec<_> = (0..18).map(of_it).collect();
    let entry =
        |bytes: &[u8]| json!({"mediaType": OCI_MANIFEST, "digest": digest(bytes).as_str(), "size": bytes.len()});
    let entries: Vec<_> = std::iter::once(entry(&manifest)).chain(large.iter().map(|one| entry(one))).collect();
    let mut blobs: Vec<&[u8]> = vec![&manifest, COMPONENT, &artifact.config, b"x"];
    blobs.extend(large.iter().map(Vec::as_slice));
    if artifact.config != b"{}" {
        blobs.push(b"{}");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.import(archive(json!(entries), &blobs).as_slice()).unwrap().attached, 18);
    let attached = store.attached(&artifact.digest(), "registry.example/a").unwrap();
    assert_eq!(attached.len(), 16, "64 MiB with their manifests");
}

#[test]
fn one_manifest_under_thousands_of_names_costs_one_parse_and_takes_sixteen_places() {
    let artifact = toolcell_registry::Artifact::new(COMPONENT);
    let mut manifest = artifact.manifest_bytes();
    // Values that a parser looks at.
    manifest.truncate(manifest.len() - 1);
    manifest.extend(format!(",\"x\":[{}0]}}", "0,".repeat(1 << 20)).bytes());
    let entry = |n: u32| {
        json!({"mediaType": OCI_MANIFEST, "digest": digest(&manifest).as_str(), "size": manifest.len(),
            "annotations": {"org.opencontainers.image.ref.name": format!("name{n}")}})
    };
    let entries: Vec<_> = (0..9_998).map(entry).collect();
    let archive = archive(json!(entries), &[&manifest, COMPONENT, &artifact.config]);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(store.import(archive.as_slice()).unwrap().components, [digest(&manifest)]);
    assert_eq!(store.list().unwrap()[0].names.len(), 16);
    store.gc(&BTreeSet::from([digest(&manifest)])).unwrap();
    store.export(&[digest(&manifest)], std::io::sink()).unwrap();
    // Ten thousand parses would take minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    let error = store.component_within(&digest(&manifest), 10).unwrap_err();
    let expected = format!("the component {} has {} bytes, at most 10 are allowed", digest(COMPONENT), COMPONENT.len());
    assert_eq!(error.to_string(), expected);
}

/// No test by itself: the other process of the test below.
#[tokio::test]
async fn a_process_that_pulls() {
    let Ok(text) = std::env::var(PULL) else { return };
    let (reference, folder) = text.split_once(' ').unwrap();
    let reference = Reference::parse(reference).unwrap();
    let mut options = options_for(&[]);
    let settings = toolcell_registry::RegistrySettings { private: true, ..Default::default() };
    options.by_host.insert(reference.registry().to_owned(), settings);
    let store = Store::open(folder.as_ref()).unwrap();
    RegistryClient::new(options).pull(&reference, &store, &|_| ()).await.unwrap();
    store.component(reference.digest().unwrap()).unwrap();
}

#[tokio::test]
async fn processes_that_pull_at_once_share_a_store() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 3_000_000]].concat();
    let (_, reference) = place.publish(&component);
    place.client().attach(&reference, &[signature("signed")]).await.unwrap();
    let root = place.folder.path().join("store");
    let start = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "stores::a_process_that_pulls"]);
        command.env(PULL, format!("{reference} {}", root.display())).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let processes: Vec<_> = (0..4).map(|_| start()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    // One of them has downloaded the component for all.
    assert_eq!(place.server.count("GET", digest(&component).as_str()), 1);
    let store = Store::open(&root).unwrap();
    assert_eq!((store.list().unwrap().len(), store.list().unwrap()[0].attached), (1, 1));
    assert_eq!(store.verify().unwrap(), []);
}
