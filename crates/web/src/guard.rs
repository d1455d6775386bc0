//! Who calls, from where, and what they may do. ADR 0027 says why it is done this way.
//!
//! * On loopback without tokens whoever reaches the port may do what the command line may do there. What must be kept
//!   out is *other pages* in the same browser: a name that resolves to us (checked by `Host`), and requests that other
//!   origins send (checked by `Origin` and a header that no form can set).
//! * With tokens a browser signs in once and gets a session cookie that scripts cannot read and other sites cannot send.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::rand;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::answer::{Answer, Refusal, answer};
use crate::site::Site;
use crate::tokens::{Role, Tokens, hex};

/// Largest question with a body.
const MOST_BODY_BYTES: usize = 256 << 10;
/// How long a session lasts, and how many there are at most; the oldest goes first.
const SESSION: Duration = Duration::from_hours(12);
const MOST_SESSIONS: usize = 1000;
/// How long a wrong secret takes to be refused; guessing is slow, and so is everybody else's mistake.
const WRONG: Duration = Duration::from_millis(500);
/// A header that no form, image or link of another page can send.
const OURS: HeaderName = HeaderName::from_static("x-bigfleet");

/// Who may look, and who may act.
#[derive(Debug)]
pub enum Access {
    /// Whoever reaches the port, which is on loopback: as with the command line there.
    Local,
    /// Whoever reaches the port may look, and nobody may act.
    LookOnly,
    /// Whoever has a secret of the file.
    Tokens(Tokens),
}

/// Somebody who may look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// As it is written down with what they do.
    pub(crate) name: String,
    pub(crate) may_act: bool,
}

impl Caller {
    /// Refuses somebody who may only look.
    pub(crate) fn check_acts(&self) -> Result<(), Refusal> {
        if self.may_act {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "you may look and not act; this needs the role admin",
        ))
    }
}

/// Who has signed in.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, (Caller, i64)>>);

impl Sessions {
    fn open(&self, caller: Caller, now: i64) -> String {
        let mut secret = [0; 32];
        rand::fill(&mut secret).expect("the system has randomness");
        let id = hex(&secret);
        let mut all = self.0.lock().expect("no holder panics");
        all.retain(|_, (_, until)| *until > now);
        if all.len() >= MOST_SESSIONS
            && let Some(oldest) = all.iter().min_by_key(|(_, (_, until))| *until).map(|(id, _)| id.clone())
        {
            all.remove(&oldest);
        }
        all.insert(id.clone(), (caller, now + bigfleet_net::nanos(SESSION)));
        id
    }

    fn find(&self, id: &str, now: i64) -> Option<Caller> {
        let all = self.0.lock().expect("no holder panics");
        all.get(id).filter(|(_, until)| *until > now).map(|(caller, _)| caller.clone())
    }

    fn end(&self, id: &str) {
        self.0.lock().expect("no holder panics").remove(id);
    }
}

fn cookie_name(tls: bool) -> &'static str {
    if tls { "__Host-bigfleet" } else { "bigfleet" }
}

fn session_of(headers: &HeaderMap, tls: bool) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == cookie_name(tls)).map(|(_, value)| value).next()
}

/// The host a request names, without its port.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::HOST)?.to_str().ok()?;
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(address, _)| address),
        None => Some(text.split_once(':').map_or(text, |(host, _)| host)),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a request that changes something was sent by our own page.
fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    // `null` and other origins without a host are somebody else's.
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or("", |(_, host)| host));
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let json = text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"));
    headers.contains_key(OURS)
        && json
        && origin.is_none_or(|origin| origin == host)
        && site.is_none_or(|site| site == "same-origin")
}

/// Every request passes here first; every answer leaves with the headers that keep a page to itself.
pub(crate) async fn checked(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let named = host_of(headers).unwrap_or_default();
    let refusal = if matches!(site.access, Access::Local | Access::LookOnly) && !is_loopback(named) {
        // A name that somebody else's DNS points at this machine.
        Some(Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "this page is served on loopback only; open it as http://127.0.0.1 or http://localhost",
        ))
    } else if request.method() != Method::GET && request.method() != Method::HEAD && !is_ours(headers) {
        Some(Refusal::new(StatusCode::FORBIDDEN, "wrong_origin", "only the page itself may send this"))
    } else {
        None
    };
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = match refusal {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if site.tls {
        headers.insert("strict-transport-security", HeaderValue::from_static("max-age=31536000"));
    }
    if is_api {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Lets those through who may look, and says to the handlers who they are.
pub(crate) async fn known_callers(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match &site.access {
        Access::Local => Some(Caller { name: "page".into(), may_act: true }),
        Access::LookOnly => Some(Caller { name: "page".into(), may_act: false }),
        Access::Tokens(_) => session_of(request.headers(), site.tls)
            .and_then(|id| site.sessions.find(id, site.clock.now_unix_nanos())),
    };
    match caller {
        Some(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        None => {
            Refusal::new(StatusCode::UNAUTHORIZED, "sign_in", "sign in with a token first").into_response()
        }
    }
}

/// A body as JSON, bounded.
pub(crate) async fn read_body<T: for<'de> Deserialize<'de>>(body: Body) -> Result<T, Refusal> {
    let bytes = to_bytes(body, MOST_BODY_BYTES)
        .await
        .map_err(|_| Refusal::bad(format!("the body is broken or larger than {MOST_BODY_BYTES} bytes")))?;
    serde_json::from_slice(&bytes).map_err(|error| Refusal::bad(format!("the body makes no sense: {error}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// Takes a secret and gives a session for it.
pub(crate) async fn sign_in(State(site): State<Arc<Site>>, headers: HeaderMap, body: Body) -> Answer {
    let SignIn { token } = read_body(body).await?;
    let Access::Tokens(tokens) = &site.access else {
        return Err(Refusal::bad("there is nothing to sign in to: this page takes no tokens"));
    };
    let Some((role, name)) = tokens.holder(token.trim()) else {
        site.clock.sleep(WRONG).await;
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "sign_in", "that is no token of this page"));
    };
    let caller = Caller { name: name.to_owned(), may_act: role == Role::Admin };
    tracing::info!(name, ?role, "somebody signed in to the page");
    let id = site.sessions.open(caller, site.clock.now_unix_nanos());
    let mut response = answer(&headers, &serde_json::json!({ "ok": true }))?;
    let secure = if site.tls { "; Secure" } else { "" };
    let cookie = format!(
        "{}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
        cookie_name(site.tls),
        SESSION.as_secs()
    );
    response.headers_mut().insert(header::SET_COOKIE, cookie.parse().expect("letters and digits"));
    Ok(response)
}

/// Ends a session.
pub(crate) async fn sign_out(State(site): State<Arc<Site>>, headers: HeaderMap) -> Answer {
    if let Some(id) = session_of(&headers, site.tls) {
        site.sessions.end(id);
    }
    answer(&headers, &serde_json::json!({ "ok": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_this_machine_count_as_loopback() {
        for host in ["127.0.0.1:7700", "localhost", "LOCALHOST:1", "[::1]:7700", "127.8.0.1"] {
            assert!(host_of(&headers(&[("host", host)])).is_some_and(is_loopback), "{host}");
        }
        for host in ["evil.example:7700", "10.0.0.1", "127.0.0.1.evil.example", "[fe80::1]", ""] {
            assert!(!host_of(&headers(&[("host", host)])).is_some_and(is_loopback), "{host}");
        }
        assert_eq!(host_of(&HeaderMap::new()), None);
    }

    #[test]
    fn only_our_own_page_may_change_something() {
        let good: &[(&'static str, &str)] = &[
            ("host", "127.0.0.1:7700"),
            ("origin", "http://127.0.0.1:7700"),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
            ("x-bigfleet", "1"),
        ];
        assert!(is_ours(&headers(good)));
        let with = |name: &'static str, value: &str| {
            let mut all = headers(good);
            all.insert(HeaderName::from_static(name), value.parse().unwrap());
            is_ours(&all)
        };
        assert!(!with("origin", "http://evil.example"));
        assert!(!with("origin", "http://127.0.0.1:7701"), "another port is another origin");
        assert!(!with("origin", "null"));
        assert!(!with("sec-fetch-site", "cross-site") && !with("sec-fetch-site", "same-site"));
        assert!(!with("content-type", "text/plain"), "what a form can send");
        let mut without = headers(good);
        without.remove("x-bigfleet");
        assert!(!is_ours(&without));
    }

    #[test]
    fn sessions_end_by_time_by_hand_and_by_number() {
        let sessions = Sessions::default();
        let me = Caller { name: "me".into(), may_act: true };
        let id = sessions.open(me.clone(), 0);
        assert_eq!(sessions.find(&id, 1), Some(me.clone()));
        assert_eq!(sessions.find(&id, bigfleet_net::nanos(SESSION)), None);
        sessions.end(&id);
        assert_eq!(sessions.find(&id, 1), None);
        let first = sessions.open(me.clone(), 0);
        for now in (1..).take(MOST_SESSIONS) {
            sessions.open(me.clone(), now);
        }
        assert_eq!(sessions.find(&first, 1), None, "the oldest gave way");
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let all = headers(&[("cookie", "a=b; bigfleet=17;x=y")]);
        assert_eq!((session_of(&all, false), session_of(&all, true)), (Some("17"), None));
    }
}
