//! An etcd of three members on loopback, without anything of Kubernetes.

use std::io;
use std::net::TcpListener;

use tempfile::TempDir;

use crate::assets::Assets;
use crate::process::Program;

/// Three members. Dropping it ends them.
#[derive(Debug)]
pub struct EtcdMembers {
    programs: Vec<Option<Program>>,
    /// For clients, and for one another.
    ports: Vec<[u16; 2]>,
    folder: TempDir,
    assets: Assets,
}

impl EtcdMembers {
    /// Starts them, each with nothing.
    pub fn start() -> io::Result<Self> {
        let assets = Assets::find().map_err(io::Error::other)?;
        let free = || -> io::Result<u16> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()) };
        let ports: Vec<[u16; 2]> = (0..3).map(|_| Ok([free()?, free()?])).collect::<io::Result<_>>()?;
        let mut members =
            Self { programs: vec![None, None, None], ports, folder: tempfile::tempdir()?, assets };
        for member in 0..3 {
            members.begin(member)?;
        }
        Ok(members)
    }

    /// Starts a member with what it had.
    pub fn begin(&mut self, member: usize) -> io::Result<()> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peers =
            self.ports.iter().enumerate().map(|(place, [_, peer])| format!("m{place}={}", url(*peer)));
        let peers = peers.collect::<Vec<_>>().join(",");
        let [client, peer] = self.ports[member].map(url);
        let folder = self.folder.path().join(format!("m{member}"));
        std::fs::create_dir_all(&folder)?;
        let arguments = vec![
            format!("--name=m{member}"),
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={peers}"),
            // Many elections on few cores: patient ones.
            "--heartbeat-interval=200".into(),
            "--election-timeout=2000".into(),
            "--log-level=error".into(),
        ];
        self.programs[member] = Some(Program::start(&self.assets.program("etcd"), arguments, &folder)?);
        Ok(())
    }

    /// Ends a member like a power cut.
    pub fn kill(&mut self, member: usize) {
        if let Some(mut program) = self.programs[member].take() {
            program.kill();
        }
    }

    /// Stops a member where it is.
    pub fn freeze(&self, member: usize) -> io::Result<()> {
        self.programs[member].as_ref().ok_or(io::ErrorKind::NotFound)?.freeze()
    }

    /// Lets a frozen member go on.
    pub fn go_on(&self, member: usize) -> io::Result<()> {
        self.programs[member].as_ref().ok_or(io::ErrorKind::NotFound)?.go_on()
    }

    /// Where clients call, one URL for each member.
    pub fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|[client, _]| format!("http://127.0.0.1:{client}")).collect()
    }
}
