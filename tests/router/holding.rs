//! Writes that wait for their key.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use keyheat::router::{Held, Refused, Table, TableSettings, Write};

use super::records::{KEYSPACE, Walk, version};

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn held(table: &Table, key: &[u8]) -> Held {
    match table.write(KEYSPACE, key, b"id").unwrap() {
        Write::Held(held) => held,
        Write::Placed(placement) => panic!("not held: {placement:?}"),
    }
}

fn in_hold(settings: TableSettings) -> (Walk, Table) {
    let walk = Walk::split(b"c42", 8, "update");
    let table = Table::new(settings);
    walk.apply(&table, 1, "prepare");
    walk.apply(&table, 2, "hold");
    (walk, table)
}

#[test]
fn a_held_write_is_woken_by_the_next_version() {
    let (walk, table) = in_hold(TableSettings::default());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let waiting = held(&table, b"c42");
    assert_eq!((waiting.version(), waiting.is_over(), table.held()), (version(2), false, 1));
    let mut waiting = pin!(waiting);
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
    walk.apply(&table, 3, "dual");
    assert_eq!(woken.0.load(SeqCst), 1, "one wake-up for one waiter");
    assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
    assert_eq!(table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap().place().layout, 1);
}

#[test]
fn a_hold_that_was_turned_back_wakes_as_well() {
    let (walk, table) = in_hold(TableSettings::default());
    let waiting = held(&table, b"c42");
    walk.apply(&table, 3, "prepare");
    assert!(waiting.is_over());
    assert_eq!(table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap().place().layout, 0);
}

#[test]
fn one_who_gave_up_is_not_woken_and_gives_its_room_back() {
    let (walk, table) = in_hold(TableSettings { max_held: 2, ..TableSettings::default() });
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    {
        let mut waiting = pin!(held(&table, b"c42"));
        assert_eq!(waiting.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
    }
    let (_first, _second) = (held(&table, b"c42"), held(&table, b"c42"));
    assert_eq!(table.write(KEYSPACE, b"c42", b"id").unwrap_err(), Refused::TooManyHeld(2));
    walk.apply(&table, 3, "dual");
    assert_eq!(woken.0.load(SeqCst), 0);
}

#[test]
fn reads_and_other_keys_do_not_wait() {
    let (_walk, table) = in_hold(TableSettings { stripes: 1, ..TableSettings::default() });
    assert_eq!(table.point_read(KEYSPACE, b"c42", b"id").unwrap().places().len(), 2);
    assert!(table.scan(KEYSPACE, b"c42").is_ok());
    assert!(table.write(KEYSPACE, b"c43", b"id").unwrap().placed().is_some());
    assert!(matches!(table.delete(KEYSPACE, b"c42", b"id"), Ok(Write::Held(_))));
}
