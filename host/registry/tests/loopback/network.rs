//! Addresses, redirects, TLS and time.
//!
//! Promise: a registry learns no other's password.
use std::time::Duration;

use toolcell_policy::{AddressClass, Reference};
use toolcell_registry::{PullError, RegistryClient, RegistryOptions, RegistrySettings};

use crate::server::{Reply, Server, head};
use crate::{COMPONENT, Place, digest, options_for};

impl Place {
    /// The error of pulling a component whose layer is elsewhere.
    async fn error_of_redirect(&self, to: &str, options: RegistryOptions) -> PullError {
        let (_, reference) = self.publish(COMPONENT);
        let to = to.to_owned();
        self.server.hook(move |request, _| request.is("GET", "/blobs/").then(|| Reply::redirect(&to)));
        RegistryClient::new(options).pull(&reference, &self.store(), &|_| ()).await.unwrap_err()
    }
}

#[tokio::test]
async fn a_registry_in_an_own_network_is_asked_only_if_it_is_private() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    for settings in [
        RegistrySettings::default(),
        RegistrySettings { plain_http: true, ..RegistrySettings::default() },
        RegistrySettings { authorities: Some("/missing.pem".into()), ..RegistrySettings::default() },
    ] {
        let by_host = [(place.server.host(), settings)].into();
        let client = RegistryClient::new(RegistryOptions { by_host, ..RegistryOptions::default() });
        let error = client.pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
        let is_address = matches!(error, PullError::Address { class: AddressClass::Loopback, .. });
        assert!(is_address || matches!(error, PullError::Settings { .. }), "{error}");
    }
    assert_eq!(place.server.requests().len(), 0);
}

#[tokio::test]
async fn plain_http_is_for_this_machine() {
    let place = Place::new();
    let mut private = place.options();
    private.by_host.insert("192.0.2.1".to_owned(), RegistrySettings { private: true, ..RegistrySettings::default() });
    for options in [place.options(), private] {
        let error = place.error_of_redirect("http://192.0.2.1/", options).await;
        assert!(matches!(&error, PullError::PlainHttp(host) if host == "192.0.2.1"), "{error}");
    }
    let client = RegistryClient::new(RegistryOptions::default());
    let by_host = [("192.0.2.1".to_owned(), RegistrySettings { plain_http: true, ..RegistrySettings::default() })];
    let plain = RegistryClient::new(RegistryOptions { by_host: by_host.into(), ..RegistryOptions::default() });
    for client in [client, plain] {
        // Either way, nothing connects to an address for examples.
        let reference = Reference::parse("oci://192.0.2.1/a").unwrap();
        let error = client.resolve(&reference).await.unwrap_err();
        assert!(matches!(error, PullError::Address { class: AddressClass::Documentation, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_leads_to_no_refused_address() {
    let place = Place::new();
    for (to, class) in [
        ("https://169.254.169.254/latest", AddressClass::Metadata),
        ("https://[fd00:ec2::254]/latest", AddressClass::Metadata),
        ("https://2852039166/latest", AddressClass::Metadata),
        ("https://10.0.0.1/", AddressClass::Private),
        ("https://127.0.0.1:1/", AddressClass::Loopback),
        ("https://localhost:1/", AddressClass::Loopback),
        ("https://[::ffff:10.0.0.1]/", AddressClass::Private),
        ("https://[::ffff:169.254.169.254]/", AddressClass::Metadata),
    ] {
        let error = place.error_of_redirect(to, place.options()).await;
        match error {
            PullError::Address { class: found, .. } => assert_eq!(found, class, "{to}"),
            other => panic!("{to}: {other}"),
        }
    }
    let error = place.error_of_redirect("http://169.254.169.254/latest", place.options()).await;
    assert!(matches!(&error, PullError::PlainHttp(host) if host == "169.254.169.254"), "{error}");
    let error = place.error_of_redirect("file:///etc/passwd", place.options()).await;
    assert!(error.to_string().ends_with("which is neither http nor https"), "{error}");
}

#[tokio::test]
async fn redirects_come_to_an_end() {
    let place = Place::new();
    let error = place.error_of_redirect("?again", place.options()).await;
    assert!(error.to_string().contains("more redirects than are followed"), "{error}");
    assert_eq!(place.server.count("GET", "/blobs/"), 6);
}

#[tokio::test]
async fn a_layer_is_pulled_from_where_it_is() {
    let place = Place::new();
    let other = Server::start();
    let (_, reference) = place.publish(COMPONENT);
    let to = other.url("/store");
    place.server.hook(move |request, _| request.is("GET", digest(COMPONENT).as_str()).then(|| Reply::redirect(&to)));
    other.hook(|_, _| Some(Reply::new(200, &[], COMPONENT)));
    let options = options_for(&[&place.server, &other]);
    RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap();
    assert_eq!(place.store().component(reference.digest().unwrap()).unwrap().bytes, COMPONENT);
    assert_eq!(other.count("GET", "/store"), 1);
}

/// A registry over TLS, and settings that trust it.
fn with_tls() -> (Place, RegistryOptions) {
    let place = Place { server: Server::with_tls(), folder: tempfile::tempdir().unwrap() };
    let authorities = place.folder.path().join("ca.pem");
    std::fs::write(&authorities, place.server.authority.as_ref().unwrap()).unwrap();
    let mut options = place.options();
    for settings in options.by_host.values_mut() {
        settings.authorities = Some(authorities.clone());
    }
    (place, options)
}

#[tokio::test]
async fn tls_is_checked_against_the_registrys_authorities() {
    let (place, options) = with_tls();
    let (_, reference) = place.publish(COMPONENT);
    RegistryClient::new(options.clone()).pull(&reference, &place.store(), &|_| ()).await.unwrap();
    let (stranger, _) = with_tls();
    let mut options = options;
    for settings in options.by_host.values_mut() {
        settings.authorities = Some(stranger.folder.path().join("ca.pem"));
    }
    let error = RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn https_never_goes_to_http() {
    let (place, mut options) = with_tls();
    let plain = Server::start();
    options.by_host.extend(options_for(&[&plain]).by_host);
    let error = place.error_of_redirect(&plain.url("/store"), options).await;
    assert!(error.to_string().ends_with("which is not https"), "{error}");
    assert_eq!(plain.requests().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_silent_is_left() {
    let place = Place::new();
    let (_, reference) = place.publish(COMPONENT);
    let short = Duration::from_millis(300);
    let mut options = place.options();
    options.bounds.answer = short;
    for reply in [Vec::new(), b"HTTP/1.1 200 OK\r\nx: ".to_vec()] {
        place.server.hook(move |_, _| Some(Reply::Held(reply.clone())));
        let error = RegistryClient::new(options.clone()).resolve(&reference.clone().bare()).await.unwrap_err();
        assert!(matches!(error, PullError::Late { step: "answer", .. }), "{error}");
    }
    // A document that stops in its middle.
    place.server.hook(|request, _| {
        let head = [head(200, &[("content-length", "9")]), b"\r\nx".to_vec()].concat();
        request.is("GET", "/manifests/").then_some(Reply::Held(head))
    });
    let error = RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Late { .. }), "{error}");
}

#[tokio::test]
async fn a_layer_that_only_drips_is_left_and_goes_on_later() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 1_000]].concat();
    let (_, reference) = place.publish(&component);
    let layer = digest(&component).to_string();
    let begun = component[..10].to_vec();
    let length = component.len();
    place.server.hook(move |request, _| {
        let whole = [("content-length", length.to_string())];
        let rest = [
            ("content-length", (length - 10).to_string()),
            ("content-range", format!("bytes 10-{}/{length}", length - 1)),
        ];
        let reply = |status, headers: &[(&str, String)], body: &[u8]| {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Reply::Held([head(status, &headers), b"\r\n".to_vec(), body.to_vec()].concat())
        };
        let held = if request.header("range").is_some() { reply(206, &rest, b"") } else { reply(200, &whole, &begun) };
        request.is("GET", &layer).then_some(held)
    });
    let mut options = place.options();
    options.bounds.rate_window = Duration::from_millis(200);
    let error = RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, PullError::Slow { .. }), "{error}");
    assert_eq!(error.to_string(), format!("{} sends less than 30720 bytes in 200ms", place.server.host()));
    assert_eq!(error.hint(), Some("pull again: the download continues where it stopped"));
    place.server.honest();
    place.pull(&reference).await.unwrap();
    assert_eq!(place.store().component(reference.digest().unwrap()).unwrap().bytes, component);
}

#[tokio::test]
async fn a_layer_that_drips_at_each_connection_has_one_time_for_all_of_them() {
    let place = Place::new();
    let component = [COMPONENT, &[7; 1_000]].concat();
    let (_, reference) = place.publish(&component);
    let layer = digest(&component).to_string();
    let path = layer.clone();
    let whole = component.clone();
    place.server.hook(move |request, _| {
        let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
        let from: usize = range.map_or(0, |from| from.parse().unwrap());
        let rest = &whole[from..];
        let of = format!("bytes {from}-{}/{}", whole.len() - 1, whole.len());
        // Some bytes of what it says to send, so that each connection has brought something.
        let dripped = |status, headers: &[_]| Reply::dripped(status, headers, rest.len(), &rest[..10]);
        let reply = || if from > 0 { dripped(206, &[("content-range", of.as_str())]) } else { dripped(200, &[]) };
        request.is("GET", &path).then(reply)
    });
    let mut options = place.options();
    options.bounds.whole = Duration::from_millis(500);
    let error = RegistryClient::new(options).pull(&reference, &place.store(), &|_| ()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{} does not send a layer within 500ms", place.server.host()));
    assert!(place.server.count("GET", &layer) < 8, "it does not go on as long as something comes");
    place.server.honest();
    place.pull(&reference).await.unwrap();
    assert_eq!(place.store().component(reference.digest().unwrap()).unwrap().bytes, component);
}

#[tokio::test]
async fn a_mirror_is_asked_in_place_of_its_registry() {
    let place = Place::new();
    let (artifact, _) = place.publish(COMPONENT);
    let mut options = place.options();
    let settings = RegistrySettings { mirror: Some(place.server.host()), ..RegistrySettings::default() };
    options.by_host.insert("registry.invalid".to_owned(), settings);
    let reference = Reference::parse("oci://registry.invalid/example/weather:1").unwrap();
    let client = RegistryClient::new(options);
    let reference = reference.clone().with_digest(client.resolve(&reference).await.unwrap());
    client.pull(&reference, &place.store(), &|_| ()).await.unwrap();
    let listed = place.store().list().unwrap();
    assert_eq!((&listed[0].digest, listed[0].names.as_slice()), (&artifact.digest(), &[reference.name()][..]));
}
