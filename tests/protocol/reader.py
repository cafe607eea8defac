#!/usr/bin/env python3
"""A reader of the plan topic, written from docs/protocol.md alone: it shares no code with the project and needs no package.

Standard input: one log a line, {"records": [...], "asks": [...]} as in fixtures/protocol/log-v1.json.
Standard output: one line a log, what is said after each record and to each question, as "said" in the same file.
"""
import base64
import datetime
import json
import math
import re
import sys

# --- section 17: xxh64, by its public specification ---

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotate(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & MASK


def lane(state, value):
    return rotate((state + value * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed):
    word = lambda at, size: int.from_bytes(data[at:at + size], "little")
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at + 32 <= length:
            lanes = [lane(state, word(at + 8 * n, 8)) for n, state in enumerate(lanes)]
            at += 32
        result = sum(rotate(state, bits) for state, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for state in lanes:
            result = ((result ^ lane(0, state)) * P1 + P4) & MASK
    else:
        result = (seed + P5) & MASK
    result = (result + length) & MASK
    while at + 8 <= length:
        result = (rotate(result ^ lane(0, word(at, 8)), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= length:
        result = (rotate(result ^ (word(at, 4) * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    while at < length:
        result = rotate(result ^ (data[at] * P5 & MASK), 11) * P1 & MASK
        at += 1
    for shift, factor in ((33, P2), (29, P3)):
        result = (result ^ (result >> shift)) * factor & MASK
    return result ^ (result >> 32)


# --- section 3: keys of records ---

KEYSPACE = re.compile(rb"[a-z0-9_-]{1,64}\Z")
NUMBER = re.compile(rb"(0|[1-9][0-9]*)\Z")
NONCE = re.compile(rb"[0-9a-f]{16}\Z")
MOST = (1 << 53) - 1


def keyspace_and_key(rest):
    keyspace, slash, key = rest.partition(b"/")
    if slash and KEYSPACE.match(keyspace) and keyspace != b"shard":
        return keyspace.decode(), key
    return None


def record_key(data):
    """(form, what it names), or None for a key of no known form."""
    if data == b"heartbeat":
        return "heartbeat", None
    form, slash, rest = data.partition(b"/")
    if form == b"claim":
        epoch, slash, nonce = rest.partition(b"/")
        if NUMBER.match(epoch) and int(epoch) < 1 << 64 and NONCE.match(nonce):
            return "claim", (int(epoch), nonce.decode())
        return None
    if form == b"advice" and rest.startswith(b"shard/"):
        form, rest = b"advice/shard", rest[len(b"shard/"):]
    if slash and form in (b"plan", b"advice", b"advice/shard", b"policy"):
        named = keyspace_and_key(rest)
        return named and (form.decode(), named)
    return None


# --- section 4: headers ---

class Refused(Exception):
    """A record that does not count; the label says why."""


def version_and_nonce(headers):
    found = {}
    for name, value in headers:
        if name in ("kh_epoch", "kh_nonce", "kh_seq"):
            if name in found:
                raise Refused("headers")
            found[name] = value
    if len(found) < 3 or not NONCE.match(found["kh_nonce"]):
        raise Refused("headers")
    numbers = [found["kh_epoch"], found["kh_seq"]]
    if not all(NUMBER.match(number) and int(number) <= MOST for number in numbers):
        raise Refused("headers")
    return (int(numbers[0]), int(numbers[1])), found["kh_nonce"].decode()


# --- section 6: values ---

def is_whole(value, least=0, most=(1 << 64) - 1):
    return type(value) is int and least <= value <= most


def is_text(value):
    return type(value) is str


def is_number(value):
    return type(value) in (int, float)


def or_null(check):
    return lambda value: value is None or check(value)


def word(*words):
    return lambda value: type(value) is str and value in words


def fields(**checks):
    """An object with these fields; one whose name ends in _ may be absent, and null where its check takes it."""
    def check(value):
        if type(value) is not Object:
            return False
        for name, one in checks.items():
            optional, name = name.endswith("_"), name.rstrip("_")
            if name in value.twice:
                return False
            if name not in value:
                if not optional:
                    return False
            elif not one(value[name]):
                return False
        return True
    return check


def is_layout(value):
    if not fields(layout=lambda v: is_whole(v, 0, (1 << 32) - 1))(value):
        return False
    if value.twice & {"buckets", "first"}:
        return False
    buckets, first = value.get("buckets"), value.get("first")
    if first is not None and not is_whole(first, 0, (1 << 32) - 1):
        return False
    if value["layout"] == 0:
        return buckets is None
    powers = [1 << n for n in range(1, 9)]
    return type(buckets) is int and buckets in powers and (first or 0) + buckets < 1 << 32


def list_of(check):
    return lambda value: type(value) is list and all(check(one) for one in value)


IS_VERSION = fields(epoch=lambda v: is_whole(v, 0, MOST), seq=lambda v: is_whole(v, 0, MOST))
IS_EVIDENCE = fields(
    rule=is_text, window_ms=is_whole, count=fields(lower=is_whole, upper=is_whole), threshold=is_whole, rate_per_s=is_number,
    median_=or_null(is_whole), reads=is_whole, writes=is_whole, shard_=or_null(is_text), completeness=is_number,
    end_offsets=lambda value: type(value) is Object and all(is_whole(one, -(1 << 63), (1 << 63) - 1) for one in value.values()),
    end_offsets_cut_=is_whole, config=is_text,
)
IS_PLAN = fields(
    keyspace=is_text, state=is_text, write_=or_null(is_layout), read=list_of(is_layout), delete=word("tombstone", "remove"),
    retire_=list_of(is_layout),
    migration=fields(
        version=IS_VERSION, to=is_layout, writes=word("insert", "versioned", "update"),
        history=word("move", "none", "expire", "keep"), **{"from": is_layout},
    ),
    bucket=fields(hash=is_text, seed=lambda v: is_text(v) and re.fullmatch("[0-9a-f]{16}", v) is not None, key=is_text),
    evidence=IS_EVIDENCE,
    prediction=fields(
        hottest_bucket_share=is_number, hottest_shard_before_=or_null(is_number), hottest_shard_after_=or_null(is_number),
        added_load=is_number,
    ),
    outcome_=or_null(fields(
        hottest_shard_=or_null(is_number), measured_at=is_text, helped=lambda v: type(v) is bool,
        hottest_bucket_share_=or_null(is_number), key_shard_share_=or_null(is_number), window_ms_=or_null(is_whole),
        settled_at_=or_null(is_text),
    )),
    decided_at=is_text, not_after_=or_null(is_text),
)
IS_ADVICE = fields(
    keyspace=is_text, action=word("cache_or_replicate", "limit", "coalesce", "isolate"), reason=is_text, evidence=IS_EVIDENCE,
    decided_at=is_text,
)
IS_POLICY = fields(
    keyspace=is_text, block=lambda v: type(v) is bool,
    pin_=or_null(fields(buckets=lambda v: is_whole(v, 0, (1 << 32) - 1), from_=or_null(is_text), until_=or_null(is_text))),
    decided_at=is_text, reason_=or_null(is_text),
)
IS_HEARTBEAT = fields(
    newest=IS_VERSION, time=is_text, plans=is_whole, digest=lambda v: is_text(v) and re.fullmatch("[0-9a-f]{16}", v) is not None,
    acks_seen_=or_null(lambda v: is_whole(v, -(1 << 63), (1 << 63) - 1)),
)


class Object(dict):
    """An object that knows which of its fields were there twice."""

    def __init__(self, pairs):
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = {name for name in names if names.count(name) > 1}


def finite(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def parsed(value):
    """The JSON object of a value of at most 4,096 bytes whose schema is 1."""
    def refuse(_):
        raise ValueError
    if len(value) > 4096:
        raise Refused("too_long")
    try:
        value = json.loads(value.decode("utf-8"), parse_constant=refuse, parse_float=finite, object_pairs_hook=Object)
    except (ValueError, RecursionError):
        raise Refused("json") from None
    if type(value) is not Object or "schema" in value.twice or not is_whole(value.get("schema"), 0, (1 << 32) - 1):
        raise Refused("json")
    if value["schema"] != 1:
        raise Refused("schema")
    return value


def key_of(value):
    key, coded = value.get("key"), value.get("key_b64")
    if (key is None) == (coded is None) or {"key", "key_b64"} & value.twice:
        raise Refused("json")
    try:
        return key.encode("utf-8") if coded is None else base64.b64decode(coded, validate=True)
    except (AttributeError, TypeError, ValueError):
        raise Refused("json") from None


def milliseconds(text):
    """Of an RFC 3339 time, cut to whole milliseconds."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Refused("shape") from None
    if moment.tzinfo is None:
        raise Refused("shape")
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return since // datetime.timedelta(milliseconds=1)


STATES = ("proposed", "prepare", "hold", "dual", "moving", "settled")


def plan_of(named, value):
    plan = parsed(value)
    bucket = plan.get("bucket")
    if not is_text(plan.get("state")) or type(bucket) is not Object or not is_text(bucket.get("hash")):
        raise Refused("json")
    if plan["state"] not in STATES:
        raise Refused("state")
    if bucket["hash"] != "xxh64-low-bits":
        raise Refused("hash")
    key = key_of(plan)
    if not IS_PLAN(plan):
        raise Refused("json")
    if (plan["keyspace"], key) != named:
        raise Refused("key_mismatch")
    if not fits(plan):
        raise Refused("shape")
    if plan.get("not_after") is not None:
        milliseconds(plan["not_after"])
    return plan


def same(layout):
    """A layout as a tuple: number, buckets, first."""
    if layout["layout"] == 0:
        return 0, 1, 0
    return layout["layout"], layout["buckets"], layout.get("first") or 0


def fits(plan):
    """Section 8: the table of phases."""
    state, write = plan["state"], plan.get("write")
    write = write and same(write)
    read = [same(layout) for layout in plan["read"]]
    old, new = same(plan["migration"]["from"]), same(plan["migration"]["to"])
    form = plan["bucket"]["key"]
    if form.count("{key}") != 1 or form.count("{label}") != 1 or len(form.encode("utf-8")) > 256:
        return False
    numbers = [layout[0] for layout in read]
    if old[0] == new[0] or not 1 <= len(read) <= 8 or len(set(numbers)) < len(numbers):
        return False
    if (write is None) != (state == "hold") or write is not None and write not in read:
        return False
    both = read[0] == new and old in read
    if state == "proposed":
        return write == old and new not in read
    if state == "prepare":
        return write == old and both
    if state == "hold":
        return both
    if state in ("dual", "moving"):
        return write == new and both
    return write == new and read == [new] or write == old and new not in read


# --- section 5: the fold ---

class Reader:
    def __init__(self):
        self.leader, self.last, self.digest = None, (0, 0), 0
        self.plans, self.unreadable = {}, {}

    def toggle(self, record, version, value):
        head = len(record).to_bytes(4, "big") + record + b"".join(number.to_bytes(8, "big") for number in version)
        self.digest ^= xxh64(head + value, 0)

    def take(self, record):
        """The outcome of the next record, and for a plan's what holds up its acknowledgement."""
        key = record_key(record["key"])
        if key is None:
            return "ignored", None
        form, named = key
        try:
            if form == "claim":
                return self.claim(*named, record["value"]), None
            version, nonce = version_and_nonce(record["headers"])
            if self.leader != (version[0], nonce):
                raise Refused("not_leader")
            if version <= self.last:
                raise Refused("old_version")
            self.last = version
            if form == "plan":
                return self.plan(named, version, record)
            return self.other(form, named, record["value"]), None
        except Refused as refused:
            return f"refused:{refused}", None

    def claim(self, epoch, nonce, value):
        if value is None:
            raise Refused("claim_removed")
        if not 1 <= epoch <= MOST:
            raise Refused("claim_epoch")
        if self.leader is not None and epoch <= self.leader[0]:
            return "claim_lost"
        self.leader = (epoch, nonce)
        return "claim_won"

    def plan(self, named, version, record):
        before, value = self.plans.get(named), record["value"]
        plan = None
        if value is not None:
            try:
                plan = plan_of(named, value)
            except Refused as refused:
                self.unreadable[named] = str(refused)
                raise
            limit = plan.get("not_after") if plan["state"] in ("proposed", "prepare") else None
            if limit is not None and record["log_time"] is not None and record["log_time"] > milliseconds(limit):
                raise Refused("void")
        self.unreadable.pop(named, None)
        if before is not None:
            self.toggle(record["key"], before[0], before[1])
            del self.plans[named]
        if plan is not None:
            self.toggle(record["key"], version, value)
            self.plans[named] = (version, value, plan)
        outcome = "plan_removed" if plan is None else "plan"
        return outcome, holds_up(Rules(before and before[2]), Rules(plan))

    def other(self, form, named, value):
        if form == "heartbeat":
            heartbeat = parsed(value or b"")
            if not IS_HEARTBEAT(heartbeat):
                raise Refused("json")
            return "heartbeat_agrees" if int(heartbeat["digest"], 16) == self.digest else "heartbeat_differs"
        if form == "advice":
            if value is None:
                return "advice_removed"
            advice = parsed(value)
            key = key_of(advice)
            if not IS_ADVICE(advice):
                raise Refused("json")
            if (advice["keyspace"], key) != named:
                raise Refused("key_mismatch")
            return "advice"
        if form == "policy":
            if value is None:
                return "policy_removed"
            self.policy(named, parsed(value))
            return "policy"
        if value is None:
            return "other_removed"
        if len(value) > 4096:
            raise Refused("too_long")
        return "other"

    @staticmethod
    def policy(named, policy):
        key, pin = key_of(policy), policy.get("pin")
        if not IS_POLICY(policy):
            raise Refused("json")
        if (policy["keyspace"], key) != named:
            raise Refused("key_mismatch")
        if policy["block"] is (pin is not None) or len(policy.get("reason") or "") > 256:
            raise Refused("shape")
        if pin is not None:
            if pin["buckets"] not in [1 << n for n in range(1, 9)]:
                raise Refused("shape")
            span = [milliseconds(time) for time in (pin.get("from"), pin.get("until")) if time is not None]
            if len(span) == 2 and span[1] <= span[0]:
                raise Refused("shape")


# --- section 7: where a request goes ---

class Rules:
    """What a plan, or none, says of placing."""

    def __init__(self, plan):
        plan = plan or {
            "state": "none", "write": {"layout": 0}, "read": [{"layout": 0}], "delete": "remove",
            "migration": {"writes": "update", "history": "move"}, "bucket": {"seed": "0", "key": "{key}:{label}"},
        }
        self.state, self.delete = plan["state"], plan["delete"]
        self.write = plan.get("write") and same(plan["write"])
        self.read = [same(layout) for layout in plan["read"]]
        self.writes, self.history = plan["migration"]["writes"], plan["migration"]["history"]
        self.seed, self.form = int(plan["bucket"]["seed"], 16), plan["bucket"]["key"]

    def store_key(self, key, label):
        if label is None:
            return key
        pieces = re.split(r"(\{key\}|\{label\})", self.form)
        put_in = {"{key}": key, "{label}": str(label).encode()}
        return b"".join(put_in.get(piece, piece.encode("utf-8")) for piece in pieces)

    def label(self, layout, record):
        number, buckets, first = layout
        return None if number == 0 else first + (xxh64(record, self.seed) & (buckets - 1))

    def place(self, layout, key, record):
        label = self.label(layout, record)
        return {"layout": layout[0], "label": label, "store_key_b64": coded(self.store_key(key, label))}

    def in_place(self):
        """open, wait or refused: for operations that need the old value."""
        never_split = self.state == "proposed" and [number for number, _, _ in self.read] == [0]
        if self.writes != "update" and self.state != "none" and not never_split:
            return "refused"
        return "wait" if self.write is None or self.state == "dual" else "open"


def coded(data):
    return base64.b64encode(data).decode()


def places(rules, key, record):
    place = lambda layout: rules.place(layout, key, record)
    read = [place(layout) for layout in rules.read]
    if rules.history == "expire" and len(read) > 1:
        read.append(read[0])
    write = "wait" if rules.write is None else place(rules.write)
    in_place = rules.in_place()
    if in_place == "open":
        older = rules.read[rules.read.index(rules.write) + 1:]
        in_place = {"place": write, "promote_from": [place(layout) for layout in older]}
    scan = {}
    for layout in rules.read:
        number, buckets, first = layout
        for label in [None] if number == 0 else range(first, first + buckets):
            own = rules.label(layout, record) == label
            scan[label] = scan.get(label, False) or own
    return {
        "write": write,
        "delete": "wait" if rules.write is None else {"place": write, "how": rules.delete},
        "in_place": in_place,
        "read": read,
        "rule": "highest_version" if rules.writes == "versioned" else "first_found",
        "scan": [{"label": label, "store_key_b64": coded(rules.store_key(key, label)), "own": own} for label, own in scan.items()],
    }


# --- section 9: acknowledging ---

def holds_up(before, now):
    """Which operations that began under `before` hold up the acknowledgement of `now`."""
    buckets_differ = (before.seed, before.form) != (now.seed, now.form)
    split = lambda layouts: any(layout[0] != 0 for layout in layouts)
    other_read = before.read != now.read or split(now.read) and buckets_differ
    other_write = before.write != now.write or now.write is not None and split([now.write]) and buckets_differ
    unknown_counts = now.write is not None
    kinds = []
    if other_read:
        kinds.append("read")
    if before.write is not None and other_write:
        kinds.append("write")
    in_place = before.in_place() == "open" and (other_read or other_write)
    if in_place:
        kinds.append("in_place")
    if "write" in kinds and unknown_counts:
        kinds.append("write_unknown")
    if in_place and unknown_counts:
        kinds.append("in_place_unknown")
    return kinds


# --- input and output ---

def judged(log):
    reader, then, answers = Reader(), [], []
    decode = base64.b64decode
    for at, written in enumerate(log["records"]):
        value = written["value_b64"]
        record = {
            "key": decode(written["key_b64"]), "value": None if value is None else decode(value), "log_time": written["log_time_ms"],
            "headers": [(header["name"], decode(header["value_b64"])) for header in written["headers"]],
        }
        outcome, waits = reader.take(record)
        said = {
            "outcome": outcome, "leader": reader.leader and list(reader.leader), "last": "%d.%d" % reader.last,
            "digest": "%016x" % reader.digest,
        }
        if waits is not None:
            said["waits_for"] = waits
        then.append(said)
        for ask in log["asks"]:
            if ask["after"] == at:
                named = ask["keyspace"], decode(ask["key_b64"])
                entry = reader.plans.get(named)
                if entry is None and named in reader.unreadable:
                    answers.append({"refused": reader.unreadable[named]})
                else:
                    answers.append(places(Rules(entry and entry[2]), named[1], decode(ask["id_b64"])))
    return {"then": then, "places": answers}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(judged(json.loads(line))), flush=True)
