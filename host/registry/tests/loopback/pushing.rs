//! Pushing, and pulling what was pushed.
use toolcell_registry::{Artifact, PullError, RegistryClient};

use crate::server::{Reply, Server};
use crate::{COMPONENT, Place, options_for, signature};

#[tokio::test]
async fn what_is_pushed_is_pulled_again() {
    for has_referrers in [true, false] {
        let place = Place::new();
        place.server.contents(|contents| contents.has_referrers = has_referrers);
        let mut artifact = Artifact::new(COMPONENT);
        artifact.annotations.insert("org.opencontainers.image.version".to_owned(), "1".to_owned());
        let attached = [signature("one"), signature("two")];
        let digest = place.client().push(&place.reference(), &artifact, &attached).await.unwrap();
        assert_eq!(digest, artifact.digest());
        assert_eq!(place.client().resolve(&place.reference()).await.unwrap(), digest);
        let pulled = place.pull(&place.reference().with_digest(digest.clone())).await.unwrap();
        assert_eq!((pulled.attached, pulled.skipped.len()), (2, 0), "{has_referrers}");
        let stored = place.store().component(&digest).unwrap();
        assert_eq!((stored.bytes.as_slice(), stored.annotations), (COMPONENT, artifact.annotations.clone()));
        let mut texts: Vec<_> = place
            .store()
            .attached(&digest, &place.reference().name())
            .unwrap()
            .into_iter()
            .map(|one| one.layers)
            .collect();
        texts.sort_by_key(|layers| layers[0].bytes.clone());
        assert_eq!((texts[0][0].bytes.as_slice(), texts[0][0].annotations["key"].as_str()), (&b"one"[..], "value"));
        // The same once more changes nothing, and uploads nothing.
        let uploads = place.server.count("POST", "/uploads/");
        place.client().push(&place.reference(), &artifact, &attached).await.unwrap();
        assert_eq!(place.server.count("POST", "/uploads/"), uploads);
        assert_eq!(place.pull(&place.reference().with_digest(digest)).await.unwrap().attached, 2);
    }
}

#[tokio::test]
async fn without_a_tag_the_digest_names_it() {
    let place = Place::new();
    let artifact = Artifact::new(COMPONENT);
    let digest = place.client().push(&place.reference().bare(), &artifact, &[]).await.unwrap();
    assert_eq!(place.server.count("PUT", &format!("/manifests/{digest}")), 1);
    place.pull(&place.reference().bare().with_digest(digest)).await.unwrap();
}

#[tokio::test]
async fn an_upload_goes_to_the_registry_alone() {
    let place = Place::new();
    let other = Server::start();
    for to in [other.url("/upload"), "https://169.254.169.254/".to_owned(), "file:///tmp".to_owned()] {
        place.server.hook(move |request, _| {
            request.is("POST", "/uploads/").then(|| Reply::new(202, &[("location", &to)], b""))
        });
        let client = RegistryClient::new(options_for(&[&place.server, &other]));
        let error = client.push(&place.reference(), &Artifact::new(COMPONENT), &[]).await.unwrap_err();
        assert!(matches!(error, PullError::Redirect { .. }), "{error}");
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_registry_that_takes_something_else_is_found_out() {
    let place = Place::new();
    let other = crate::digest(b"other").to_string();
    place.server.hook(move |request, _| {
        request.is("PUT", "/manifests/").then(|| Reply::new(201, &[("docker-content-digest", &other)], b""))
    });
    let error = place.client().push(&place.reference(), &Artifact::new(COMPONENT), &[]).await.unwrap_err();
    assert!(matches!(error, PullError::WrongDigest { .. }), "{error}");
    place.server.hook(|request, _| (request.method == "POST").then(|| Reply::new(403, &[], b"")));
    let error = place.client().push(&place.reference(), &Artifact::new(&b"\0asm2"[..]), &[]).await.unwrap_err();
    assert!(error.to_string().contains("does not allow to push to example/weather"), "{error}");
}

#[tokio::test]
async fn a_tag_is_written_after_the_signatures() {
    for has_referrers in [true, false] {
        let place = Place::new();
        place.server.contents(|contents| contents.has_referrers = has_referrers);
        let artifact = Artifact::new(COMPONENT);
        place.client().push(&place.reference(), &artifact, &[signature("one"), signature("two")]).await.unwrap();
        let manifests = place.server.requests().into_iter().filter(|request| request.is("PUT", "/manifests/"));
        let targets: Vec<_> = manifests.map(|request| request.target).collect();
        assert!(targets[0].ends_with(artifact.digest().as_str()), "{targets:?}");
        assert_eq!(targets.iter().filter(|target| target.ends_with("/manifests/1")).count(), 1);
        assert!(targets.last().unwrap().ends_with("/manifests/1"), "{targets:?}");
    }
}
