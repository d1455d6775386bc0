//! Certificates of a control plane: an authority of its own and what it issues, in files.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

/// Who a client is to the API server.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The user's group, if any.
    pub group: Option<String>,
}

impl Identity {
    /// Somebody who may do everything.
    pub fn admin() -> Self {
        Self { user: "admin".into(), group: Some("system:masters".into()) }
    }
}

/// An authority and the folder its files are in.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A certificate and its key, as text.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// Makes an authority, the API server's certificate and the key that service account tokens are signed with.
    pub(crate) fn new(folder: &Path) -> std::io::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "bigfleet test authority");
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority can sign itself");
        let authority = Self { issuer, folder: folder.to_owned() };
        fs::write(authority.file("ca.crt"), authority.certificate())?;

        let mut server = CertificateParams::default();
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.subject_alt_names = vec![
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::DnsName("localhost".try_into().expect("a name")),
        ];
        let server = authority.issue(&server);
        fs::write(authority.file("server.crt"), server.certificate)?;
        fs::write(authority.file("server.key"), server.key)?;

        let tokens = KeyPair::generate().expect("a key can be made");
        fs::write(authority.file("tokens.key"), tokens.serialize_pem())?;
        fs::write(authority.file("tokens.pub"), tokens.public_key_pem())?;
        Ok(authority)
    }

    /// The path of one of the files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The authority's own certificate.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a client.
    pub(crate) fn client(&self, identity: &Identity) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, identity.user.as_str());
        if let Some(group) = &identity.group {
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority can sign");
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}
