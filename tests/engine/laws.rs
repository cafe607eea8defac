//! Laws of streams of operations, for properties and for fuzz targets: each panics where it does not hold.

use keyheat::engine::{Change, Engine, EngineSettings, KeyPattern, Rule, Subject, Window};
use keyheat::input::Operation;
use keyheat::units::Span;

use crate::operations::{Op, Request, World, check, check_verdicts, key_of, name, tenant, with_rules};
use crate::oracle::absolute;

/// Requests and ticks alone.
pub(crate) fn plain(ops: &[Op]) -> Vec<Op> {
    ops.iter().filter(|op| matches!(op, Op::Request(..) | Op::Tick(_))).cloned().collect()
}

/// Bounds, recall, shards and limits hold after every operation, and every verdict has its proof.
pub(crate) fn all_holds(settings: EngineSettings, ops: &[Op]) {
    let mut world = World::new(settings);
    for op in ops {
        world.step(op);
        check(&world);
    }
    check_verdicts(&world.verdicts);
}

/// Keys that match a pattern are judged as if all keys had that pattern's rules, the others as if there was no pattern. Where all
/// have room.
pub(crate) fn a_pattern_s_keys_have_its_rules(roomy: &EngineSettings, plain: &[Op]) {
    let with = |rules: &[Rule], overrides| {
        let mut settings = roomy.clone();
        settings.keyspaces[0].key_rules = rules.to_vec();
        settings.keyspaces[0].overrides = overrides;
        World::run(settings, plain)
    };
    let (low, high) = (absolute(0.5), absolute(2.0));
    let both = with(&[high], vec![tenant(low)]);
    let (all_low, all_high) = (with(&[low], Vec::new()), with(&[high], Vec::new()));
    let is_tenant = |subject: &Subject| matches!(subject, Subject::Key(key) if name(key).starts_with("k1"));
    let is_key = |subject: &Subject| matches!(subject, Subject::Key(_));
    for (subject, story) in both.stories().into_iter().filter(|(subject, _)| is_key(subject)) {
        let alike = if is_tenant(&subject) { &all_low } else { &all_high };
        assert_eq!(alike.stories().remove(&subject), Some(story), "{subject:?}");
    }
    for (subject, _) in all_low.stories().into_iter().filter(|(subject, _)| is_tenant(subject)) {
        assert!(both.stories().contains_key(&subject), "{subject:?}");
    }
}

/// The same rules again, after every operation, change nothing.
pub(crate) fn the_same_rules_change_nothing(settings: &EngineSettings, plain: &[Op], rules: u8) {
    let settings = with_rules(settings.clone(), rules);
    let once = World::run(settings.clone(), plain);
    let often: Vec<Op> = plain.iter().flat_map(|op| [op.clone(), Op::Rules(rules)]).collect();
    let again = World::run(settings, &often);
    let story = |world: &World| -> Vec<_> {
        let hot = world.verdicts.iter().filter(|verdict| verdict.change == Change::Hot);
        hot.map(|verdict| (verdict.subject.clone(), verdict.at)).collect()
    };
    assert_eq!(story(&once), story(&again));
    assert_eq!(once.raised(), again.raised());
    assert_eq!(once.engine.digest(0), again.engine.digest(0));
}

/// Rules change no count: only what is said.
pub(crate) fn rules_change_no_pane(settings: &EngineSettings, ops: &[Op]) {
    let changing = World::run(settings.clone(), ops);
    let fixed: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Rules(_))).cloned().collect();
    assert_eq!(World::run(settings.clone(), &fixed).engine.digest(0), changing.engine.digest(0));
}

/// Events that are handed over together are counted as one by one: the same panes, the same verdicts where there is room, and
/// bounds that hold where there is none.
pub(crate) fn together_is_as_one_by_one(settings: EngineSettings, plain: &[Op], has_room: bool) {
    let mut ops = plain.to_vec();
    for op in &mut ops {
        if let Op::Request(_, request) = op {
            request.partition = 0;
        }
    }
    let alone = World::run(settings.clone(), &ops);
    let mut together = World::new(settings);
    let now = |op: &Op| if let Op::Request(now_ms, _) = op { Some(*now_ms) } else { None };
    let request = |op: &Op| if let Op::Request(_, request) = op { Some(request.clone()) } else { None };
    let mut rest = &ops[..];
    while let [first, ..] = rest {
        let number = rest.iter().take_while(|op| now(op).is_some() && now(op) == now(first)).count();
        let requests: Vec<Request> = rest[..number].iter().filter_map(request).collect();
        match now(first) {
            Some(now_ms) => together.requests(now_ms, &requests),
            None => together.step(first),
        }
        rest = &rest[number.max(1)..];
        check(&together);
    }
    assert_eq!(together.engine.digest(0), alone.engine.digest(0));
    assert_eq!(together.refused, alone.refused);
    if has_room {
        let told = |world: &World| -> Vec<_> {
            let verdicts = world.verdicts.iter();
            verdicts.map(|verdict| (verdict.subject.clone(), verdict.change, verdict.reason.count)).collect()
        };
        assert_eq!(told(&together), told(&alone));
    }
}

/// A pattern is read when the definition allows it, and matches when the definition, tried place by place, does.
pub(crate) fn a_pattern_is_its_definition(text: &str, key: &[u8]) {
    let Some(steps) = steps_of(text) else {
        assert!(text.parse::<KeyPattern>().is_err(), "{text:?} is no pattern");
        return;
    };
    let pattern: KeyPattern = text.parse().unwrap_or_else(|error| panic!("{text:?} is a pattern: {error}"));
    assert_eq!(pattern.to_string(), text);
    assert_eq!(pattern.matches(key), is_match(&steps, key), "{text:?} and {:?}", key.escape_ascii().to_string());
}

/// A byte that stands for itself; none for a star.
fn steps_of(text: &str) -> Option<Vec<Option<u8>>> {
    let mut steps = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        (rest, _) = match (first, tail) {
            (b'*', _) => (tail, steps.push(None)),
            (b'\\', [literal @ (b'*' | b'\\'), after @ ..]) => (after, steps.push(Some(*literal))),
            (b'\\', _) => return None,
            _ => (tail, steps.push(Some(*first))),
        };
    }
    let stars = steps.iter().filter(|step| step.is_none()).count();
    (!text.is_empty() && text.len() <= 256 && stars <= 8).then_some(steps)
}

/// Which beginnings of the key the steps so far can stand for, one step after the other.
fn is_match(steps: &[Option<u8>], key: &[u8]) -> bool {
    let mut ends = vec![false; key.len() + 1];
    ends[0] = true;
    for step in steps {
        let before = ends.clone();
        for end in 0..ends.len() {
            ends[end] = match step {
                None => before[..=end].contains(&true),
                Some(byte) => end > 0 && before[end - 1] && key[end - 1] == *byte,
            };
        }
    }
    ends[key.len()]
}

/// Split over instances, carried as bytes, merged in any order and gone on from after `cut` operations: the panes of one instance
/// that never stopped, and all that holds of it.
pub(crate) fn split_and_merged_is_whole(mut settings: EngineSettings, ops: &[Op], cut: usize, split: u64) {
    // No request of the streams is later than that, and nobody is given up: what one instance takes all take.
    settings.time.disorder = Span::from_secs(6);
    settings.time.idle_timeout = Span::from_secs(1_000_000);
    let instances = 2 + usize::try_from(split % 3).unwrap();
    let mut one = World::new(settings.clone());
    let mut parts: Vec<World> = (0..instances).map(|_| World::new(settings.clone())).collect();
    let (before, after) = ops.split_at(cut.min(ops.len()));
    let mut now_ms = 0;
    for (place, op) in before.iter().enumerate() {
        one.step(op);
        match op {
            Op::Request(clock_ms, _) => {
                now_ms = *clock_ms;
                parts[instance(split, place, instances)].step(op);
            }
            _ => parts.iter_mut().for_each(|part| part.step(op)),
        }
    }
    // Event time has to have come as far everywhere.
    let last: Vec<Op> = (0..3).map(|partition| Op::Request(now_ms, request(now_ms, partition))).collect();
    for part in &mut parts {
        last.iter().for_each(|op| part.step(op));
        last.iter().for_each(|op| one.step(op));
    }
    let read = |part: &World| {
        let keyspace = &part.settings.keyspaces[0];
        let bytes = part.engine.window(0).unwrap().to_bytes();
        let read = Window::from_bytes(&bytes, keyspace, &settings.time).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        assert_eq!(Some(read.digest()), part.engine.digest(0));
        read
    };
    assert_eq!(parts.iter().map(|part| part.refused).sum::<usize>() + one.refused, 0, "a request too late");
    let mut windows: Vec<Window> = parts.iter().map(read).collect();
    let sum = merged(&windows);
    assert_eq!(Some(sum.digest()), one.engine.digest(0));
    windows.reverse();
    assert_eq!(merged(&windows).digest(), sum.digest(), "the order matters");
    for window in 0..one.windows() {
        assert_eq!(sum.events(window), one.in_head(window).count() as u64, "events of window {window}");
        for key in 0..40 {
            let (truth, bounds) = (one.count(window, key), sum.estimate(window, key_of(key).as_bytes()));
            assert!(bounds.lower <= truth && truth <= bounds.upper, "{key} in window {window}: {truth} in {bounds}");
        }
    }
    // A restored engine hears of each partition anew, and raises anew what is hot: its verdicts are left out.
    let mut engine = Engine::new(one.settings.clone());
    engine.restore(0, &sum).unwrap();
    let mut gone_on =
        World { engine, settings: one.settings.clone(), taken: one.taken.clone(), ..World::new(settings) };
    for op in last.iter().chain(after) {
        one.step(op);
        gone_on.step(op);
        assert_eq!(gone_on.engine.digest(0), one.engine.digest(0), "after {op:?}");
        check(&gone_on);
    }
}

fn request(ms: i64, partition: i32) -> Request {
    Request { ms, key: 0, shard: "s0", operation: Operation::Read, weight: 0, partition }
}

/// The instance of a request, by a hash of its place.
fn instance(split: u64, place: usize, instances: usize) -> usize {
    let mut hash = (split ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    usize::try_from(hash % instances as u64).unwrap()
}

fn merged(parts: &[Window]) -> Window {
    let (first, rest) = parts.split_first().unwrap();
    let mut sum = first.clone();
    rest.iter().for_each(|part| sum.merge(part).unwrap());
    sum
}
