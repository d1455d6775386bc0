//! Who a certificate says its holder is: exactly one URI with the scheme `bigfleet`.
//!
//! Matching is exact: no case is folded, nothing is decoded. A certificate without such a name, with several, or with one
//! nobody defined opens nothing that is guarded.

use std::fmt;

use rustls::pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Who somebody is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The operator of this cluster.
    Cluster(Box<str>),
    /// This shard.
    Shard(Box<str>),
    /// Somebody who may change everything.
    Admin,
    /// Somebody who may look at everything.
    ReadOnly,
}

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// It cannot be read.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(String),
    /// No name of ours.
    #[error("the certificate carries no bigfleet:// URI; issue it with exactly one")]
    None,
    /// More than one.
    #[error("the certificate carries {0} bigfleet:// URIs; issue it with exactly one")]
    Several(usize),
    /// One that nobody defined.
    #[error(
        "the certificate says {0:?}; known are bigfleet://cluster/<id>, bigfleet://shard/<id>, bigfleet://admin and bigfleet://readonly"
    )]
    Unknown(String),
}

impl Role {
    /// The holder of a verified chain, leaf first.
    pub fn of(chain: &[CertificateDer<'_>]) -> Result<Self, IdentityError> {
        let leaf = chain.first().ok_or(IdentityError::None)?;
        let unreadable = |error: &dyn fmt::Display| IdentityError::Unreadable(error.to_string());
        let (_, certificate) = X509Certificate::from_der(leaf).map_err(|error| unreadable(&error))?;
        let names = certificate.subject_alternative_name().map_err(|error| unreadable(&error))?;
        let names = names.map_or(&[][..], |names| &names.value.general_names[..]);
        let ours: Vec<&str> = names
            .iter()
            .filter_map(|name| match name {
                GeneralName::URI(uri) if is_ours(uri) => Some(*uri),
                _ => None,
            })
            .collect();
        match ours[..] {
            [] => Err(IdentityError::None),
            [uri] => Self::parse(uri).ok_or_else(|| IdentityError::Unknown(uri.into())),
            _ => Err(IdentityError::Several(ours.len())),
        }
    }

    fn parse(uri: &str) -> Option<Self> {
        let name = uri.strip_prefix("bigfleet://")?;
        let id = |prefix| name.strip_prefix(prefix).filter(|id| !id.is_empty());
        match name {
            "admin" => Some(Self::Admin),
            "readonly" => Some(Self::ReadOnly),
            _ => id("cluster/")
                .map(|id| Self::Cluster(id.into()))
                .or_else(|| id("shard/").map(|id| Self::Shard(id.into()))),
        }
    }
}

/// Schemes are the same in any case, so another spelling of ours counts as ours, and then does not match.
fn is_ours(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bigfleet"))
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(id) => write!(f, "bigfleet://cluster/{id}"),
            Self::Shard(id) => write!(f, "bigfleet://shard/{id}"),
            Self::Admin => f.write_str("bigfleet://admin"),
            Self::ReadOnly => f.write_str("bigfleet://readonly"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn role_of(uris: &[&str]) -> Result<Role, IdentityError> {
        let mut params = CertificateParams::new(vec!["host".to_owned()]).unwrap();
        params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Role::of(&[certificate.der().clone()])
    }

    #[test]
    fn one_name_of_ours_is_the_holder() {
        for uri in
            ["bigfleet://cluster/prod-eu", "bigfleet://shard/s1", "bigfleet://admin", "bigfleet://readonly"]
        {
            assert_eq!(role_of(&["spiffe://other/x", uri]).unwrap().to_string(), uri);
        }
        assert_eq!(role_of(&["bigfleet://cluster/a/b"]), Ok(Role::Cluster("a/b".into())), "ids are opaque");
    }

    #[test]
    fn none_several_and_unknown_names_are_nobody() {
        assert_eq!(role_of(&[]), Err(IdentityError::None));
        assert_eq!(role_of(&["spiffe://x"]), Err(IdentityError::None));
        assert_eq!(
            role_of(&["bigfleet://cluster/a", "bigfleet://admin"]),
            Err(IdentityError::Several(2)),
            "not even if one would do"
        );
        for uri in [
            "bigfleet://cluster/",
            "bigfleet://root",
            "bigfleet:admin",
            "BIGFLEET://admin",
            "bigfleet://Admin",
            "bigfleet://admin/",
        ] {
            assert_eq!(role_of(&[uri]), Err(IdentityError::Unknown(uri.into())), "{uri}");
        }
        assert!(matches!(Role::of(&[CertificateDer::from(vec![1, 2])]), Err(IdentityError::Unreadable(_))));
    }
}
