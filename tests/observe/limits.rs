//! Who asks wrongly, slowly, too much or from elsewhere (T10, T11).

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use keyheat::telemetry::Metric;

use crate::client::{answer, site};

#[test]
fn other_hosts_are_refused_and_counted_t11() {
    let site = site(|_, http| http.allowed_hosts = vec!["keyheat".to_owned()]);
    for (host, status) in [("localhost:9464", 200), ("keyheat:9464", 200), ("10.0.0.1", 200), ("evil.example", 403)] {
        let answer = site.send(&format!("GET /livez HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"));
        assert_eq!(answer.status, status, "{host}");
    }
    let absolute = "GET http://evil.example/livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(site.send(absolute).status, 403);
    assert_eq!(site.send("GET /livez HTTP/1.0\r\n\r\n").status, 200);
    assert_eq!(site.telemetry.total(Metric::HttpRefused), 2);
}

#[test]
fn nothing_can_be_changed_and_no_other_origin_may_read_t11() {
    let site = site(|_, _| {});
    for path in ["/", "/metrics", "/livez", "/readyz", "/v1/status", "/v1/hot-keys", "/v1/shards", "/v1/plans"] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\nconnection: close\r\n\r\n"
            );
            let answer = site.send(&request);
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(!answer.head.contains("access-control-allow"), "{}", answer.head);
        }
        let head = site.get(path).head;
        assert!(head.contains("cache-control: no-store") && head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(!head.contains("access-control-allow"), "{head}");
    }
}

#[test]
fn a_long_body_is_refused_and_counted() {
    let site = site(|_, http| http.limits.body_bytes = 100);
    let long = "GET /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 101\r\nconnection: close\r\n\r\n";
    assert_eq!(site.send(long).status, 413);
    assert_eq!(site.telemetry.total(Metric::HttpRefused), 1);
}

#[test]
fn a_client_that_sends_its_headers_slowly_is_cut_off_t10() {
    let site = site(|_, http| http.limits.header = Duration::from_millis(300));
    let mut nothing = site.connect();
    let mut half = site.connect();
    half.write_all(b"GET /livez HTTP/1.1\r\nhost: loc").unwrap();
    let mut idle = site.connect();
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    for stream in [&mut nothing, &mut half, &mut idle] {
        // Ends: the server has closed, or the read timeout of a minute fails the test.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert!(site.telemetry.total(Metric::HttpRefused) >= 2);
    assert_eq!(site.get("/livez").status, 200);
}

#[test]
fn connections_above_the_cap_are_told_so_t10() {
    let site = site(|_, http| http.limits.connections = 2);
    let mut held: Vec<_> = (0..2).map(|_| site.connect()).collect();
    for stream in &mut held {
        // An answer shows that the connection has its slot.
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        assert_ne!(stream.read(&mut [0; 512]).unwrap(), 0);
    }
    let mut third = site.connect();
    assert_eq!(answer(&mut third).status, 503);
    assert_eq!(site.telemetry.total(Metric::HttpRefused), 1);
    held[0].shutdown(Shutdown::Both).unwrap();
    held.remove(0);
    let free = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        site.get("/livez").status == 200
    });
    assert!(free, "a slot that was given back is used again");
}

#[test]
fn a_connection_ends_by_age_and_an_answer_is_not_cut_t10() {
    let site = site(|_, http| http.limits.connection_age = Duration::from_millis(300));
    let mut stream = site.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let answer = answer(&mut stream);
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("keyheat_build_info"));
}

#[test]
fn the_server_ends_in_order_while_clients_hang() {
    let site = site(|_, _| {});
    let hanging = site.connect();
    let addr = site.server.addr();
    assert_eq!(site.get("/livez").status, 200);
    drop(site.server);
    assert!(std::net::TcpStream::connect(addr).is_err(), "it no longer listens");
    drop(hanging);
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut_off_t10() {
    let site = site(|_, http| http.limits.connection_age = Duration::from_millis(200));
    let mut stream = site.connect();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // Asks for more than the buffers of both sides hold, and reads nothing: the server's writes stand still.
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    while stream.write_all(request.as_bytes()).is_ok() {}
    let cut_off = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        site.telemetry.total(Metric::HttpRefused) == 1
    });
    assert!(cut_off, "its slot is given back");
}
