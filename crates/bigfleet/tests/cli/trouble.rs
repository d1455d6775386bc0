//! What goes wrong between a command and a server: each has its words, its hint and its exit code.

use std::fs;
use std::path::{Path, PathBuf};

use bigfleet_net::TlsFiles;
use bigfleet_view::v1::Version;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use crate::fake::{Manner, Server};
use crate::run::{Said, User};
use crate::story;

fn refused(said: &Said, code: i32, parts: &[&str]) {
    assert_eq!(said.code, code, "{}", said.err);
    assert!(said.out.is_empty(), "{}", said.out);
    for part in parts {
        assert!(said.err.contains(part), "{part:?} is missing: {}", said.err);
    }
}

#[test]
fn nobody_listens() {
    let user = User::new();
    let said = user.run(&["get", "needs", "--server", "127.0.0.1:1"]);
    refused(&said, 3, &["nobody listens at http://127.0.0.1:1 (from --server)", "is the shard running"]);
}

#[test]
fn an_address_that_is_none() {
    let user = User::new();
    refused(
        &user.run(&["get", "needs", "--server", "ftp://x:1"]),
        2,
        &["neither http nor https", "from --server"],
    );
    refused(&user.run(&["get", "needs", "--server", "https://x:1"]), 2, &["--tls-cert"]);
    refused(&user.run(&["get", "needs", "--server", "no.such.host.invalid:1"]), 3, &["no.such.host.invalid"]);
}

#[test]
fn a_name_nobody_knows() {
    let (server, user) = (Server::start(), User::new());
    let said = user.run(&["explain", "need", "77bb", "--server", &server.url]);
    refused(&said, 2, &["there is nothing called \"77bb\"; did you mean 77aa88bb?"]);
}

#[test]
fn a_role_that_is_not_enough() {
    let denied = Some("this needs the role bigfleet://admin; the caller is bigfleet://readonly");
    let server = Server::with(Manner { denied, ..Manner::default() }, None);
    let said = User::new().run(&["resume", "--all", "--server", &server.url]);
    refused(&said, 3, &["refuses this", "needs the role bigfleet://admin", "bigfleet doctor"]);
}

#[test]
fn a_server_that_is_older_newer_or_none_of_ours() {
    let user = User::new();
    let ask = |manner: Manner| {
        let server = Server::with(manner, None);
        user.run(&["plan", "--server", &server.url])
    };
    let version = |server: &str, api: &str| Version {
        server_version: server.into(),
        api_version: api.into(),
        ..story::version()
    };
    let unknown = vec!["plan"];
    let older =
        ask(Manner { unknown: unknown.clone(), version: version("0.0.9", "v1"), ..Manner::default() });
    refused(&older, 3, &["runs bigfleet 0.0.9, which cannot answer this yet", "upgrade the server"]);
    let newer = ask(Manner { unknown, version: version("9.0.0", "v2"), ..Manner::default() });
    refused(&newer, 3, &["runs bigfleet 9.0.0 and speaks view v2", "use the bigfleet 9.0.0 program"]);
    let other = ask(Manner { unknown: vec!["plan", "get_version"], ..Manner::default() });
    refused(&other, 3, &["speaks gRPC, but not view v1", "and not of a provider?"]);
}

/// A CA of our own and what it issues.
struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A pair of files for these names, and the CA's own file.
    fn issue(&self, folder: &Path, name: &str, names: &[&str], uri: &str) -> [PathBuf; 3] {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).unwrap();
        params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let path = |end: &str| folder.join(format!("{name}.{end}"));
        fs::write(path("pem"), certificate.pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        fs::write(path("ca"), self.0.pem()).unwrap();
        [path("pem"), path("key"), path("ca")]
    }
}

fn files([cert, key, ca]: &[PathBuf; 3]) -> TlsFiles {
    TlsFiles { cert: cert.clone(), key: key.clone(), ca: Some(ca.clone()) }
}

#[test]
fn certificates_that_are_right_and_wrong() {
    let user = User::new();
    let folder = user.home.path();
    let (ours, theirs) = (Ca::new(), Ca::new());
    let server_files = ours.issue(folder, "server", &["127.0.0.1"], "bigfleet://shard/s1");
    let server = Server::with(Manner::default(), Some(files(&server_files)));
    let me = ours.issue(folder, "me", &[], "bigfleet://admin");
    let stranger = theirs.issue(folder, "stranger", &[], "bigfleet://admin");
    let ask = |url: &str, [cert, key, ca]: [&Path; 3]| {
        let tls = [("--tls-cert", cert), ("--tls-key", key), ("--tls-ca", ca)];
        let tls = tls.iter().flat_map(|(flag, path)| [*flag, path.to_str().unwrap()]);
        let arguments: Vec<&str> =
            ["get", "sessions", "-o", "name", "--server", url].into_iter().chain(tls).collect();
        user.run(&arguments)
    };
    assert_eq!(ask(&server.url, [&me[0], &me[1], &me[2]]).fine(), "batch\nml\nshop\n");

    let unknown_ca = ask(&server.url, [&me[0], &me[1], &stranger[2]]);
    refused(&unknown_ca, 3, &["is not to be believed", "check --tls-ca"]);
    let not_ours = ask(&server.url, [&stranger[0], &stranger[1], &me[2]]);
    refused(&not_ours, 3, &["does not accept our certificate"]);
    let mixed = ask(&server.url, [&me[0], &stranger[1], &me[2]]);
    refused(&mixed, 2, &["does not belong to the certificate"]);
    let other_name = ask(&server.url.replace("127.0.0.1", "localhost"), [&me[0], &me[1], &me[2]]);
    refused(&other_name, 3, &["is not to be believed", "an address that its certificate names"]);

    let plain = Server::start();
    let needless = ask(&plain.url, [&me[0], &me[1], &me[2]]);
    refused(&needless, 3, &["does not speak TLS"]);
    let without = user.run(&["get", "sessions", "--server", &server.url.replace("https", "http")]);
    refused(&without, 3, &["--tls-cert"]);
}

#[test]
fn a_doctor_looks_at_certificates() {
    let user = User::new();
    let ca = Ca::new();
    let operator = ca.issue(user.home.path(), "operator", &[], "bigfleet://cluster/shop");
    let [cert, key, ca] = operator.each_ref().map(|path| path.to_str().unwrap());
    let said = user.run(&[
        "doctor",
        "-o",
        "text",
        "--server",
        "127.0.0.1:1",
        "--tls-cert",
        cert,
        "--tls-key",
        key,
        "--tls-ca",
        ca,
    ]);
    assert_eq!(said.code, 1);
    for part in
        ["is valid until", "we are bigfleet://cluster/shop, which opens no", "PROBLEM: nobody listens"]
    {
        assert!(said.out.contains(part), "{part:?} is missing: {}", said.out);
    }
}
