//! Power through a real Redfish emulator, plain and with TLS.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bigfleet_provider_kit::{Clock, MachineState, SystemClock};
use bigfleet_provider_metal::inventory::{Bmc, SecretRef};
use bigfleet_provider_metal::redfish::{Power, Redfish};

use crate::lab::{Emulator, Lab, password_line, system_id, until};
use crate::provider::Provider;

fn bmc(url: String, system: usize) -> Bmc {
    let system = Some(format!("/redfish/v1/Systems/{}", system_id(system)));
    Bmc { url, system, user: None, password: None, ca_file: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_powered_on_to_be_created_and_off_to_be_deleted() {
    let mut lab = Lab::new(1).await;
    let emulator = Emulator::start(1, None).await;
    lab.hosts[0].more = emulator.lines(0);
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    assert_eq!(provider.state("h0").await, MachineState::Speculative);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let bmc = bmc(format!("http://127.0.0.1:{}", emulator.port), 0);
    let power = async || Redfish::new(&bmc, &clock).system().await.expect("a system").power;
    assert_eq!(power().await, Power::Off);
    provider.create("h0").await;
    let machine = provider.is_in("h0", MachineState::Idle).await;
    assert_eq!(machine.host.expect("a host").r#ref, "h0");
    assert_eq!(power().await, Power::On);
    provider.delete("h0").await;
    provider.is_in("h0", MachineState::Speculative).await;
    assert_eq!(power().await, Power::Off);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_is_trusted_by_its_certificate_and_bounded_in_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let own = rcgen::generate_simple_self_signed(["bmc.example".to_owned()]).expect("a certificate");
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let (certificate, key) = (write("cert", own.cert.pem()), write("key", own.signing_key.serialize_pem()));
    let stranger = write("other", other.cert.pem());
    let emulator = Emulator::start(2, Some((&certificate, &key))).await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let url = format!("https://127.0.0.1:{}", emulator.port);

    let trusted = Bmc { ca_file: Some(certificate), ..bmc(url.clone(), 1) };
    assert_eq!(Redfish::new(&trusted, &clock).system().await.expect("a system").power, Power::Off);
    let error = |bmc: Bmc| {
        let clock = clock.clone();
        async move { Redfish::new(&bmc, &clock).system().await.expect_err("refused").to_string() }
    };
    let said = error(Bmc { ca_file: Some(stranger), ..trusted.clone() }).await;
    assert!(said.contains("certificate"), "{said}");
    let said = error(Bmc { system: None, ..trusted.clone() }).await;
    assert!(said.contains("it has 2 systems; say which"), "{said}");
    let said = error(Bmc { system: Some("/redfish/v1/Systems/none".into()), ..trusted.clone() }).await;
    assert!(said.contains("404"), "{said}");
    let said = error(Bmc { system: Some("/etc/passwd".into()), ..trusted.clone() }).await;
    assert!(said.contains("is no path of Redfish"), "{said}");
    let secret = SecretRef { env: Some("BIGFLEET_NO_SUCH_VARIABLE".into()), ..SecretRef::default() };
    let said = error(Bmc { user: Some("root".into()), password: Some(secret), ..trusted }).await;
    assert!(said.contains("BIGFLEET_NO_SUCH_VARIABLE"), "{said}");
    let said = error(bmc(format!("http://127.0.0.1:{}", crate::lab::free_port()), 0)).await;
    assert!(said.contains("refused"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_controller_sees_behind_our_back_is_reported_with_the_evidence() {
    use MachineState::{Configured, Failed, Idle, Speculative};
    let mut lab = Lab::new(2).await;
    let mut emulator = Emulator::start(2, None).await;
    for number in 0..2 {
        lab.hosts[number].more = emulator.lines(number);
    }
    lab.head = lab.head.replace("redfish_secs: 5", "redfish_secs: 1");
    let provider = Provider::start(&lab.inventory(), &lab.path("state")).await;
    provider.create("h0").await;
    provider.create("h1").await;
    provider.is_in("h0", Idle).await;
    provider.is_in("h1", Idle).await;
    provider.configure("h0", "prod", b"").await;
    provider.is_in("h0", Configured).await;

    // A free host that is not well is no supply; a node may well work. It comes back by itself.
    emulator.becomes("Critical").await;
    let url = format!("http://127.0.0.1:{}", emulator.port);
    let ill = provider.is_in("h1", Failed).await.last_error;
    assert_eq!(ill, format!("unhealthy: controller {url} says health Critical"));
    until("it is said of the node", async || {
        provider.said().contains("health Critical, while the host is in use")
    })
    .await;
    assert_eq!(provider.state("h0").await, Configured);
    emulator.becomes("OK").await;
    provider.is_in("h1", Idle).await;

    // Somebody else switches a node off.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    Redfish::new(&bmc(url.clone(), 0), &clock).power_off().await.expect("it is allowed");
    lab.stop(0);
    let off = provider.is_in("h0", Failed).await.last_error;
    assert!(off.starts_with(&format!("powered-off: controller {url} says power Off, and ")), "{off}");
    // A host that can be powered on again is a slot again.
    provider.is_in("h0", Speculative).await;
    assert_eq!(provider.state("h1").await, Idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_nowhere_but_on_their_way() {
    const PASSWORD: &str = "hunter2-of-the-controller";
    const TOKEN: &str = "abcdef.0123456789abcdef";
    let mut lab = Lab::new(1).await;
    let file = lab.path("passwords");
    std::fs::write(&file, password_line("admin", PASSWORD)).expect("written");
    let auth = format!("SUSHY_EMULATOR_AUTH_FILE = '{}'", file.display());
    let emulator = Emulator::start_with(1, None, &auth).await;
    let vault = lab.path("vault");
    let password = format!(", user: admin, password: {{command: [cat, \"{}\"]}}", vault.display());
    lab.hosts[0].more = emulator.lines_with(0, &password);
    let state = lab.path("state");
    let log = ["--log", "trace"];
    // With a wrong one, what the controller answers is all that is said.
    let wrong = PASSWORD.replace('2', "3");
    std::fs::write(&vault, &wrong).expect("written");
    lab.head = lab.head.replace("create_secs: 60", "create_secs: 5");
    let provider = Provider::start_with(&lab.inventory(), &state, "127.0.0.1:0", &log).await;
    provider.create("h0").await;
    let refused = provider.is_in("h0", MachineState::Failed).await.last_error;
    assert!(refused.contains("answered 401"), "{refused}");
    let mut seen = provider.said();
    drop(provider);

    std::fs::remove_dir_all(&state).expect("removed");
    std::fs::write(&vault, PASSWORD).expect("written");
    lab.head = lab.head.replace("create_secs: 5,", "create_secs: 60,");
    let provider = Provider::start_with(&lab.inventory(), &state, "127.0.0.1:0", &log).await;
    provider.create("h0").await;
    provider.is_in("h0", MachineState::Idle).await;
    provider.configure("h0", "prod", format!("join --token {TOKEN}").as_bytes()).await;
    let machine = provider.is_in("h0", MachineState::Configured).await;
    let _ = write!(seen, "{refused}{machine:?}{}", provider.said());
    assert!(seen.contains("TRACE") && seen.contains("h0"), "it was to say all it can");
    drop(provider);
    let mut files = 0;
    for folder in [state, lab.path("h0.work")] {
        for file in files_in(&folder) {
            seen += &String::from_utf8_lossy(&std::fs::read(&file).expect("read"));
            files += 1;
        }
    }
    assert!(files >= 5, "{files} files were read");
    let pair = |password: &str| STANDARD.encode(format!("admin:{password}"));
    for secret in [PASSWORD, TOKEN, &pair(PASSWORD), &pair(&wrong)] {
        assert!(!seen.contains(secret), "{secret} is in what was written");
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_in(&path)) } else { files.push(path) }
    }
    files
}
