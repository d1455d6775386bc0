//! A whole provider: machines are driven by a script of yours. Run it as `minimal ADDRESS STORE SCRIPT`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bigfleet_provider_kit::{
    Backend, Failure, Machine, Offering, Options, Provider, Server, Settings, Store,
};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

struct Script(PathBuf);

impl Script {
    /// Runs `SCRIPT VERB ID ARGUMENT`. What it prints is the answer; a bad exit code is a failure.
    async fn run(&self, verb: &str, id: &str, argument: &str, input: &[u8]) -> Result<String, Failure> {
        let mut child = Command::new(&self.0)
            .args([verb, id, argument])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true) // a time-out drops this future, and with it the script
            .spawn()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let mut stdin = child.stdin.take().expect("it is piped");
        let _ = stdin.write_all(input).await; // a script may not care for its input
        drop(stdin);
        let output = child.wait_with_output().await.map_err(|error| error.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_string();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(format!("{verb} {id}: {} {}", output.status, text(output.stderr)).into())
        }
    }
}

impl Backend for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    /// The script prints a line per slot: id, instance type, zone, cpu, memory, dollars an hour.
    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        let lines = self.run("offerings", "", "", b"").await?;
        lines.lines().map(offering).collect()
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        self.run("create", &machine.id, &machine.instance_type, b"").await
    }

    async fn configure(&self, machine: &Machine, bootstrap: &[u8]) -> Result<(), Failure> {
        self.run("configure", &machine.id, &machine.cluster, bootstrap).await.map(drop)
    }

    async fn confirm_ready(&self, machine: &Machine) -> Result<bool, Failure> {
        Ok(self.run("ready", &machine.id, &machine.cluster, b"").await? == "yes")
    }

    async fn drain(&self, machine: &Machine, grace: Duration) -> Result<(), Failure> {
        self.run("drain", &machine.id, &grace.as_secs().to_string(), b"").await.map(drop)
    }

    async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        self.run("delete", &machine.id, "", b"").await.map(drop)
    }
}

fn offering(line: &str) -> Result<Offering, Failure> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [id, instance_type, zone, cpu, memory, dollars] = fields[..] else {
        return Err(format!("expected six fields in {line:?}").into());
    };
    let price = dollars.parse().map_err(|_| format!("{dollars:?} is no price"))?;
    let slot = Offering::new(id, instance_type, zone).at_price(price);
    Ok(slot.with_resource("cpu", cpu).with_resource("memory", memory))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, store, script] = &arguments[..] else { return Err("minimal ADDRESS STORE SCRIPT".into()) };
    let provider = Provider::open(Script(script.into()), Store::file(store), Options::default()).await?;
    let handle = provider.handle();
    let server = Server::bind(provider, handle, Settings::plain(address.parse()?)).await?;
    eprintln!("listening on {}", server.grpc_addr());
    server.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
