//! Who may ask: a Host header that names this server.

use std::net::IpAddr;

/// Host names by which the server may be asked for, besides `localhost` and any IP address.
///
/// A page from elsewhere reaches a server on loopback by pointing a name of its own at 127.0.0.1; the browser then sends
/// that name as Host. An address in the header cannot come about in that way.
#[derive(Debug, Clone, Default)]
pub(super) struct AllowedHosts {
    names: Vec<String>,
}

impl AllowedHosts {
    pub(super) fn new(names: &[String]) -> Self {
        Self { names: names.iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect() }
    }

    /// Whether this is the header of a request for us. A request without the header is not one of a browser.
    pub(super) fn allow(&self, host: Option<&[u8]>) -> bool {
        let Some(host) = host else { return true };
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let Some(name) = without_port(host) else { return false };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
        name == "localhost" || address.parse::<IpAddr>().is_ok() || self.names.contains(&name)
    }
}

/// The host without `:port`; none when the port is no number.
fn without_port(host: &str) -> Option<&str> {
    if host.ends_with(']') {
        return Some(host);
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => Some(name),
        Some(_) => None,
        None => Some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused_t11() {
        let hosts = AllowedHosts::new(&["keyheat".to_owned(), "Keyheat.Example.org.".to_owned()]);
        for host in [
            "localhost",
            "LOCALHOST:9600",
            "127.0.0.1:9600",
            "[::1]:9600",
            "[::1]",
            "10.1.2.3",
            "keyheat:9600",
            "keyheat.example.org",
        ] {
            assert!(hosts.allow(Some(host.as_bytes())), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9600", "", "keyheat:x", "127.0.0.1.evil.example", "::1:x"]
        {
            assert!(!hosts.allow(Some(host.as_bytes())), "{host}");
        }
        assert!(!hosts.allow(Some(b"\xFF")));
        assert!(hosts.allow(None), "HTTP/1.0 probes send none");
    }
}
