//! `/metrics`: complete from the start, readable whatever the keys are, and bounded.

use keyheat::input::Refusal;
use keyheat::telemetry::{KeyDisplay, ShardView};
use keyheat::units::{Estimate, EventTime};

use crate::client::{Site, hot_key, site};
use crate::exposition::{Scrape, parse};

fn scrape(site: &Site) -> Scrape {
    let answer = site.get("/metrics");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    parse(&answer.body).unwrap()
}

#[test]
fn a_first_refusal_is_an_increase_o4() {
    let site = site(|_, _| {});
    let before = scrape(&site);
    site.telemetry.add_refused(Refusal::NotJson, 1);
    let after = scrape(&site);
    let value = |scrape: &Scrape| scrape.value("keyheat_records_refused_total", &[("reason", "not_json")]);
    assert_eq!((value(&before), value(&after)), (Some(0.0), Some(1.0)));
    assert!(before.series.len() >= 200, "the fixed series are there: {}", before.series.len());
    let names = |scrape: &Scrape| scrape.series.iter().map(|s| (s.name.clone(), s.labels.clone())).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
}

#[test]
fn before_any_event_the_numbers_are_0_and_not_missing_o8() {
    let scrape = scrape(&site(|_, _| {}));
    for name in ["keyheat_records_read_total", "keyheat_lag_records", "keyheat_leader", "keyheat_routers_registered"] {
        assert_eq!(scrape.value(name, &[]), Some(0.0), "{name}");
    }
    for name in ["keyheat_events_counted_total", "keyheat_hot_keys", "keyheat_shard_imbalance_ratio"] {
        assert_eq!(scrape.value(name, &[("keyspace", "customer")]), Some(0.0), "{name}");
    }
    assert_eq!(scrape.value("keyheat_ready", &[("latch", "progress")]), Some(0.0));
    assert_eq!(scrape.value("keyheat_build_info", &[]), Some(1.0));
    assert!(scrape.value("process_resident_memory_bytes", &[]).unwrap() > 1e6);
    assert!(scrape.series.iter().all(|series| series.value.is_finite()));
}

#[test]
fn odd_keys_and_shards_leave_the_page_readable_o3() {
    let odd: Vec<Vec<u8>> = vec![
        b"a\"b".to_vec(),
        b"a\\b".to_vec(),
        b"a\nb".to_vec(),
        b"\0".to_vec(),
        "é".as_bytes().to_vec(),
        b"\xFF".to_vec(),
        vec![b'x'; 4096],
        [&[b'x'; 4095][..], b"y"].concat(),
        b"} 1\nkeyheat_leader 1\n".to_vec(),
        "\u{202e}\u{200b}\u{feff}".as_bytes().to_vec(),
    ];
    let site = site(|settings, _| settings.top_keys = 20);
    let mut view = site.view();
    view.keyspaces[0].keys = odd.iter().map(|key| hot_key(key, 100)).collect();
    let shard = |name: &Vec<u8>| ShardView {
        shard: name.as_slice().into(),
        count: Estimate::exact(50),
        hot_since: None,
        profile: None,
    };
    view.keyspaces[0].shards = odd.iter().map(shard).collect();
    site.telemetry.publish(view);
    let scrape = scrape(&site);
    for (metric, label) in [("keyheat_hot_key_rate", "key"), ("keyheat_shard_rate", "shard")] {
        let mut values: Vec<&str> =
            scrape.series.iter().filter(|s| s.name == metric).map(|s| s.labels[label].as_str()).collect();
        assert_eq!(values.len(), 2 * odd.len());
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), odd.len(), "different {label}s look different");
        assert!(values.iter().all(|value| value.chars().count() <= 89 && !value.contains(char::is_control)));
    }
    assert_eq!(scrape.value("keyheat_leader", &[]), Some(0.0));
}

#[test]
fn every_byte_in_a_key_reaches_metrics_and_api_harmlessly_t7() {
    let site = site(|settings, _| settings.top_keys = 20);
    for bytes in (0..=255_u8).collect::<Vec<_>>().chunks(16) {
        let mut view = site.view();
        view.keyspaces[1].keys = bytes.iter().map(|byte| hot_key(&[b'k', *byte], 100)).collect();
        site.telemetry.publish(view);
        assert_eq!(scrape(&site).series.iter().filter(|s| s.name == "keyheat_hot_key_rate").count(), 32);
        let answer = site.get("/v1/hot-keys?keyspace=object");
        assert!(!answer.body.contains(char::is_control));
        assert_eq!(answer.json()["keyspaces"][0]["keys"].as_array().unwrap().len(), 16);
    }
}

#[test]
fn hidden_keys_are_nowhere_t17() {
    for display in [KeyDisplay::Off, KeyDisplay::Hash { secret: [3; 16] }] {
        let site = site(|settings, _| settings.key_display = display);
        let mut view = site.view();
        view.keyspaces[0].keys = vec![hot_key(b"mail@example.org", 100)];
        site.telemetry.publish(view);
        for path in ["/metrics", "/v1/hot-keys", "/v1/status", "/v1/plans", "/v1/shards"] {
            assert!(!site.get(path).body.contains("mail"), "{path}");
        }
    }
}

#[test]
fn watermark_lag_is_measured_at_the_tick() {
    let site = site(|_, _| {});
    let mut view = site.view();
    view.at = EventTime::from_millis(1_796_033_492_120).ok();
    view.condition.watermark = EventTime::from_millis(1_796_033_489_620).ok();
    site.telemetry.publish(view);
    let scrape = scrape(&site);
    assert_eq!(scrape.value("keyheat_watermark_lag_seconds", &[]), Some(2.5));
    assert_eq!(scrape.value("keyheat_last_tick_timestamp_seconds", &[]), Some(1_796_033_492.12));
}
