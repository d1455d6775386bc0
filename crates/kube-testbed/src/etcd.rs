//! An etcd of three members, on loopback or on hosts of their own, without anything of Kubernetes.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::assets::Assets;
use crate::network::Place;
use crate::process::Program;

/// Three members. Dropping it ends them.
#[derive(Debug)]
pub struct EtcdMembers {
    programs: Vec<Option<Program>>,
    places: Vec<Place>,
    /// For clients, and for one another.
    ports: Vec<[u16; 2]>,
    folder: TempDir,
    assets: Assets,
}

impl EtcdMembers {
    /// Starts them here, each with nothing.
    pub fn start() -> io::Result<Self> {
        let free = || -> io::Result<u16> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()) };
        let ports: Vec<[u16; 2]> = (0..3).map(|_| Ok([free()?, free()?])).collect::<io::Result<_>>()?;
        Self::start_with([Place::here(), Place::here(), Place::here()].into(), ports)
    }

    /// Starts them on these three hosts.
    pub fn start_on(places: [Place; 3]) -> io::Result<Self> {
        Self::start_with(places.into(), vec![[2379, 2380]; 3])
    }

    fn start_with(places: Vec<Place>, ports: Vec<[u16; 2]>) -> io::Result<Self> {
        let assets = Assets::find().map_err(io::Error::other)?;
        let folder = tempfile::tempdir()?;
        let mut members = Self { programs: vec![None, None, None], places, ports, folder, assets };
        for member in 0..3 {
            members.begin(member)?;
        }
        Ok(members)
    }

    /// Where a member keeps what it has.
    pub fn folder(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("m{member}"))
    }

    /// Starts a member with what it had.
    pub fn begin(&mut self, member: usize) -> io::Result<()> {
        let url = |member: usize, which: usize| {
            format!("http://{}:{}", self.places[member].address, self.ports[member][which])
        };
        let peers =
            (0..3).map(|member| format!("m{member}={}", url(member, 1))).collect::<Vec<_>>().join(",");
        let [client, peer] = [0, 1].map(|which| url(member, which));
        let folder = self.folder(member);
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
        let etcd = self.assets.program("etcd").display().to_string();
        let words: Vec<String> =
            self.places[member].enter.iter().cloned().chain([etcd]).chain(arguments).collect();
        self.programs[member] = Some(Program::start(Path::new(&words[0]), &words[1..], &folder)?);
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

    /// The number by which the system knows a member that runs, whether it still does, and its last words.
    pub fn look(&mut self, member: usize) -> io::Result<(i32, bool, String)> {
        let program = self.programs[member].as_mut().ok_or(io::ErrorKind::NotFound)?;
        Ok((program.id()?, program.is_running(), program.last_words()))
    }

    /// Where clients call, one URL for each member.
    pub fn urls(&self) -> Vec<String> {
        let each = self.places.iter().zip(&self.ports);
        each.map(|(place, [client, _])| format!("http://{}:{client}", place.address)).collect()
    }
}
