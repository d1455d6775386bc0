//! A small Redfish client: power and health of one system, over the HTTP stack the tree has.
//!
//! A management controller is old, slow and trusted with too much. So: one request per connection, every
//! answer bounded in bytes and time, no redirects, no address taken from an answer other than a path on the
//! same controller, and a certificate that was named in the inventory.

mod tls;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bigfleet_model::text::Quoted;
use bigfleet_net::Clock;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::inventory::{Bmc, SecretError};

const ANSWER_LIMIT_BYTES: usize = 1 << 20;
const REQUEST_LIMIT: Duration = Duration::from_secs(20);
/// How long a system may take to shut down in order before it is cut off.
const SHUTDOWN_LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_secs(2);

/// Why a controller could not be asked.
#[derive(Debug, Error)]
pub enum RedfishError {
    /// It cannot be reached, or not in confidence.
    #[error("controller {url}: {reason}")]
    Unreachable {
        /// Which.
        url: String,
        /// What happened.
        reason: String,
    },
    /// It refused.
    #[error("controller {url} answered {status} to {method} {path}{said}")]
    Refused {
        /// Which.
        url: String,
        /// Its answer.
        status: StatusCode,
        /// What was asked.
        method: Method,
        /// Of what.
        path: String,
        /// What it said about it.
        said: String,
    },
    /// Its answer makes no sense.
    #[error("controller {url}: {reason}")]
    Nonsense {
        /// Which.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The password could not be had.
    #[error("controller {url}: {source}")]
    Secret {
        /// Which.
        url: String,
        /// Why.
        source: SecretError,
    },
}

/// What a controller says about its system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Whether it is on.
    pub power: Power,
    /// `OK`, `Warning` or `Critical`, if it says so.
    pub health: Option<String>,
    path: String,
    reset: String,
    allowed: Vec<String>,
}

/// Whether a system is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It runs.
    On,
    /// It does not.
    Off,
    /// It is on its way between the two, or the controller does not know.
    Changing,
}

/// One controller.
pub struct Redfish<'a> {
    bmc: &'a Bmc,
    clock: &'a Arc<dyn Clock>,
}

impl<'a> Redfish<'a> {
    /// The controller of a host.
    pub fn new(bmc: &'a Bmc, clock: &'a Arc<dyn Clock>) -> Self {
        Self { bmc, clock }
    }

    /// Its system as it is now.
    pub async fn system(&self) -> Result<System, RedfishError> {
        let path = match &self.bmc.system {
            Some(path) => path.clone(),
            None => self.only_system().await?,
        };
        let answer = self.ask(Method::GET, &path, None).await?;
        let power = match answer["PowerState"].as_str() {
            Some("On") => Power::On,
            Some("Off") => Power::Off,
            Some(_) => Power::Changing,
            None => return Err(self.nonsense(format!("{path} has no PowerState"))),
        };
        let action = &answer["Actions"]["#ComputerSystem.Reset"];
        let reset = action["target"].as_str().map_or_else(
            || format!("{}/Actions/ComputerSystem.Reset", path.trim_end_matches('/')),
            str::to_owned,
        );
        let allowed = action["ResetType@Redfish.AllowableValues"].as_array().into_iter().flatten();
        let allowed = allowed.filter_map(Value::as_str).map(str::to_owned).collect();
        let health = answer["Status"]["Health"].as_str().map(|text| text.chars().take(20).collect());
        Ok(System { power, health, path, reset, allowed })
    }

    /// Powers the system on and waits until it is.
    pub async fn power_on(&self) -> Result<(), RedfishError> {
        let system = self.system().await?;
        if system.power == Power::Off {
            self.reset(&system, "On").await?;
        }
        self.until(Power::On).await
    }

    /// Shuts the system down, in order if it does so in time.
    pub async fn power_off(&self) -> Result<(), RedfishError> {
        let system = self.system().await?;
        if system.power == Power::Off {
            return Ok(());
        }
        if system.allowed.iter().any(|kind| kind == "GracefulShutdown") {
            self.reset(&system, "GracefulShutdown").await?;
            tokio::select! {
                off = self.until(Power::Off) => return off,
                () = self.clock.sleep(SHUTDOWN_LIMIT) => {}
            }
        }
        self.reset(&system, "ForceOff").await?;
        self.until(Power::Off).await
    }

    /// Asks again and again; the move around it has the time limit.
    async fn until(&self, power: Power) -> Result<(), RedfishError> {
        while self.system().await?.power != power {
            self.clock.sleep(POLL).await;
        }
        Ok(())
    }

    async fn reset(&self, system: &System, kind: &str) -> Result<(), RedfishError> {
        tracing::info!(controller = self.bmc.url, system = system.path, kind, "power");
        self.ask(Method::POST, &system.reset, Some(json!({ "ResetType": kind }))).await.map(drop)
    }

    async fn only_system(&self) -> Result<String, RedfishError> {
        let answer = self.ask(Method::GET, "/redfish/v1/Systems", None).await?;
        let members = answer["Members"].as_array().map(Vec::as_slice).unwrap_or_default();
        match members {
            [only] => only["@odata.id"]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| self.nonsense("its system has no path".into())),
            several => {
                let count = several.len();
                Err(self.nonsense(format!("it has {count} systems; say which with `system:`")))
            }
        }
    }

    fn nonsense(&self, reason: String) -> RedfishError {
        RedfishError::Nonsense { url: self.bmc.url.clone(), reason }
    }

    fn unreachable(&self, reason: impl std::fmt::Display) -> RedfishError {
        RedfishError::Unreachable { url: self.bmc.url.clone(), reason: reason.to_string() }
    }

    /// One request with its answer. Paths come from the inventory or from the controller: checked here.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, RedfishError> {
        let is_path = path.starts_with("/redfish/")
            && path.len() <= 512
            && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-#:".contains(&b));
        if !is_path {
            return Err(self.nonsense(format!("{} is no path of Redfish", Quoted(path))));
        }
        tokio::select! {
            answer = self.talk(method, path, body) => answer,
            () = self.clock.sleep(REQUEST_LIMIT) => {
                Err(self.unreachable(format!("no answer within {} s", REQUEST_LIMIT.as_secs())))
            }
        }
    }

    async fn talk(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, RedfishError> {
        let uri: Uri = self.bmc.url.parse().map_err(|error| self.unreachable(error))?;
        let host = uri.host().unwrap_or_default();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let bare = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await.map_err(|error| self.unreachable(error))?;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json");
        if let (Some(user), Some(password)) = (&self.bmc.user, &self.bmc.password) {
            let password = password
                .fetch(&**self.clock)
                .await
                .map_err(|source| RedfishError::Secret { url: self.bmc.url.clone(), source })?;
            let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
            let mut value =
                HeaderValue::try_from(format!("Basic {pair}")).map_err(|error| self.unreachable(error))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let body = body.map(|body| body.to_string());
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| self.unreachable(error))?;
        let (status, bytes) = if is_tls {
            let stream = tls::connect(stream, bare, self.bmc.ca_file.as_deref())
                .await
                .map_err(|reason| self.unreachable(reason))?;
            self.exchange(stream, request).await?
        } else {
            self.exchange(stream, request).await?
        };
        let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
        if !status.is_success() {
            let said = answer.as_ref().and_then(|value| value["error"]["message"].as_str());
            let said = said.map_or_else(String::new, |said| format!(": {}", Quoted(said)));
            return Err(RedfishError::Refused {
                url: self.bmc.url.clone(),
                status,
                method,
                path: path.into(),
                said,
            });
        }
        match answer {
            Some(answer) => Ok(answer),
            None if method == Method::POST => Ok(Value::Null),
            None => Err(self.nonsense(format!("its answer to {path} is no JSON"))),
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), RedfishError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = hyper::client::conn::http1::Builder::new()
            .max_buf_size(64 << 10)
            .handshake(TokioIo::new(stream))
            .await;
        let (mut sender, connection) = shaken.map_err(|error| self.unreachable(error))?;
        let talk = async {
            let answer = sender.send_request(request).await.map_err(|error| self.unreachable(error))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_LIMIT_BYTES).collect().await;
            Ok((status, body.map_err(|error| self.unreachable(error))?.to_bytes()))
        };
        // The connection is polled here and not spawned, so that a time-out leaves nothing behind.
        tokio::pin!(talk, connection);
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                talked = &mut talk => return talked,
                _ = &mut connection, if is_open => is_open = false,
            }
        }
    }
}
