//! Power through a real Redfish emulator, plain and with TLS.

use std::sync::Arc;

use bigfleet_provider_kit::{Clock, MachineState, SystemClock};
use bigfleet_provider_metal::inventory::{Bmc, SecretRef};
use bigfleet_provider_metal::redfish::{Power, Redfish};

use crate::lab::{Emulator, Lab, system_id};
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
