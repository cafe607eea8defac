#!/usr/bin/env python3
"""What a replay should decide, computed without any sketch: a dictionary a pane, thresholds in whole numbers.

Reads events from standard input, one JSON object a line with `ts` (epoch milliseconds) and `key`; prints the decisions that
follow from the definitions in docs/design.md, one JSON object a line, and a summary. Nothing here is shared with the engine.

    exact.py --window 10s/1s [--window 60s/5s] [--rate 50/s] [--median 10] [--share 2%] [--floor 20] [--min-keys 8]
             [--clear 0.7] [--clear-after 30s] [--disorder 2s] [--max-ahead 5s]

The flags are those of `keyheat replay`, with the same defaults, but that there is no rule and no window unless it is given.
"""

import argparse
import bisect
import json
import sys
from collections import Counter, defaultdict, deque
from fractions import Fraction
from math import ceil

LOOK_AHEAD = 4096
MAX_KEY_BYTES = 512


class Counts:
    """Events of each key in the panes of one window that end with a given one."""

    def __init__(self, window, last):
        self.window, self.last, self.keys, self.events = window, last, {}, 0

    def add(self, key, count):
        now = self.keys.get(key, 0) + count
        self.events += count
        if now:
            self.keys[key] = now
        else:
            del self.keys[key]

    def holds(self, pane):
        return self.last - self.window.count < pane <= self.last

    def move_on(self):
        self.last += 1
        for key, count in self.window.panes.get(self.last, {}).items():
            self.add(key, count)
        for key, count in self.window.panes.get(self.last - self.window.count, {}).items():
            self.add(key, -count)


class Window:
    """One sliding window: its panes, by number from the epoch."""

    def __init__(self, length, pane):
        self.length, self.pane, self.count = length, pane, length // pane
        # (rule, threshold or share, may confirm): of the newest window, fixed while its pane is open, and of the last closed one
        self.thresholds, self.closed_thresholds = [], []
        self.start_at(0, 0)

    def start_at(self, newest, watermark):
        self.panes, self.events = defaultdict(Counter), Counter()
        self.head = Counts(self, newest // self.pane)  # ends with the newest pane, which is open
        self.closed = Counts(self, watermark // self.pane - 1)  # ends with the last pane that the watermark has passed
        self.passed, self.passed_events = {}, 0  # the closed one, as it was when the watermark passed

    def oldest(self):
        """The oldest pane of the next window that the watermark will pass: what is older is too late."""
        return self.closed.last + 1 - self.count + 1

    def add(self, ts, key):
        pane = ts // self.pane
        if pane >= self.oldest():
            self.panes[pane][key] += 1
            self.events[pane] += 1
            for counts in (self.head, self.closed):
                if counts.holds(pane):
                    counts.add(key, 1)

    def close(self):
        self.closed.move_on()
        self.passed, self.passed_events = dict(self.closed.keys), self.closed.events
        for pane in [pane for pane in self.panes if pane <= self.closed.last - self.count]:
            del self.panes[pane], self.events[pane]


class Exact:
    def __init__(self, options):
        self.options = options
        self.windows = [Window(*window) for window in options.window]
        self.newest = None
        self.since = None  # all is seen from this event time on
        self.keys = {}  # key -> what was last said of it
        self.counted = self.future = self.too_late = 0
        self.ever = set()
        self.flagged, self.suspected = set(), set()
        slack = options.disorder + options.max_ahead
        self.rings = max(w.pane * (w.count + ceil(Fraction(slack, w.pane)) + 1) for w in self.windows)

    # --- time ---

    def event(self, ts, key, clock):
        if ts > clock + self.options.max_ahead:
            self.future += 1
            return
        if self.newest is not None and all(ts // window.pane < window.oldest() for window in self.windows):
            self.too_late += 1
            return
        self.counted += 1
        self.ever.add(key)
        self.advance(ts)
        for window in self.windows:
            window.add(ts, key)
        self.judge_head(key, self.newest)

    def watermark(self, newest):
        return newest - self.options.disorder

    def advance(self, ts):
        """Event time goes on: panes open when it reaches them and close when the watermark does, in this order."""
        if self.newest is None:
            self.start_at(ts)
            return
        short = self.windows[0]
        silence = ts - short.head.last * short.pane
        while True:
            opens = (short.head.last + 1) * short.pane
            closes = (short.closed.last + 2) * short.pane + self.options.disorder
            if min(opens, closes) > ts or (silence > self.rings and self.is_forgotten()):
                break
            if opens <= closes:
                self.open_pane(opens)
            else:
                self.close_pane(closes - self.options.disorder)
        self.newest = max(self.newest, ts)
        if silence > self.rings:
            # Nothing was seen for longer than anything is kept: what is seen begins anew.
            self.start_at(ts)

    def start_at(self, ts):
        self.newest = self.since = ts
        for window in self.windows:
            window.start_at(ts, self.watermark(ts))
            window.thresholds = self.thresholds(window, 0, {}, False)
            window.closed_thresholds = list(window.thresholds)

    def is_forgotten(self):
        return not any(window.head.keys or window.passed for window in self.windows) and not self.keys

    def open_pane(self, at):
        for key, state in self.keys.items():
            if not self.is_low(state, self.heads(key), [window.thresholds for window in self.windows]):
                state["warm_until"] = at
        for window in self.windows:
            if at % window.pane == 0:
                ended = dict(window.head.keys)
                window.head.move_on()
                window.thresholds = self.thresholds(window, window.head.last - window.count, ended)
        for key in self.to_judge([(window.head.keys, window.head.events) for window in self.windows]):
            self.judge_head(key, at)

    def close_pane(self, at):
        for window in self.windows:
            if at % window.pane == 0:
                window.close()
                first = window.closed.last - window.count + 1
                window.closed_thresholds = self.thresholds(window, first, window.passed)
        for key in self.to_judge([(window.passed, window.passed_events) for window in self.windows]):
            self.judge_closed(key, at)

    def to_judge(self, counts):
        """Keys of which something was said, or of which something may be."""
        keys = set(self.keys)
        for window, (counted, events) in zip(self.windows, counts):
            bars = [self.least(thresholds, events) for thresholds in (window.thresholds, window.closed_thresholds)]
            least = min((bar for bar in bars if bar is not None), default=None)
            if least is not None:
                keys.update(key for key, count in counted.items() if count >= least)
        return sorted(keys)

    # --- thresholds ---

    def thresholds(self, window, first, counts, seen=True):
        """From the counts of a window whose first pane is `first`."""
        options = self.options
        full = seen and first * window.pane >= self.since
        thresholds = []
        if options.rate is not None:
            count = max(1, ceil(options.rate * window.length / 1000))
            thresholds.append(("absolute", count, True))
        if options.median is not None and counts and len(counts) >= options.min_keys:
            ordered = sorted(counts.values())
            median = Fraction(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2], 2)
            count = max(options.floor, ceil(options.median * median))
            thresholds.append(("relative", count, full))
        if options.share is not None:
            thresholds.append(("share", options.share, full))
        return thresholds

    def threshold(self, entry, events):
        rule, number, _ = entry
        return max(self.options.floor, ceil(number * events)) if rule == "share" else number

    def least(self, thresholds, events):
        return min((self.threshold(entry, events) for entry in thresholds), default=None)

    # --- verdicts ---

    def found(self, counts, thresholds):
        """The first rule that holds, in the order of windows and rules; one that may only raise suspicion comes last."""
        suspect = None
        for window, (count, events), entries in zip(self.windows, counts, thresholds):
            for entry in entries:
                threshold = self.threshold(entry, events)
                if count >= threshold:
                    reason = (entry[0], window.length, threshold, count)
                    if entry[2]:
                        return ("hot", reason)
                    suspect = suspect or ("suspect", reason)
        return suspect

    def heads(self, key):
        return [(window.head.keys.get(key, 0), window.head.events) for window in self.windows]

    def ends(self, key):
        return [(window.passed.get(key, 0), window.passed_events) for window in self.windows]

    def judge_head(self, key, at):
        self.raise_heat(key, self.heads(key), [window.thresholds for window in self.windows], at)

    def is_low(self, state, counts, thresholds):
        """Below the clear level in every window, by the thresholds in force and by those that held when it became hot."""
        for number, ((count, events), entries) in enumerate(zip(counts, thresholds)):
            bars = [self.least(entries, events)]
            if state["event"] == "hot":
                bars.append(state["raised"][number])
            bars = [bar for bar in bars if bar is not None]
            if bars and count >= self.options.clear * min(bars):
                return False
        return True

    def judge_closed(self, key, at):
        closed = [window.closed_thresholds for window in self.windows]
        self.raise_heat(key, self.ends(key), closed, at)
        state = self.keys.get(key)
        if state is None:
            return
        # What was seen at the head, the watermark has to pass.
        passed = state["warm_until"] is None or state["warm_until"] <= at
        heads = [window.thresholds for window in self.windows]
        if not (passed and self.is_low(state, self.heads(key), heads) and self.is_low(state, self.ends(key), closed)):
            state["cool"] = None
            return
        if state["cool"] is None:
            state["cool"] = at
        if at - state["cool"] >= self.options.clear_after:
            del self.keys[key]
            self.say("cleared", key, max(at, state["at"]), state["reason"])

    def raise_heat(self, key, counts, thresholds, at):
        state = self.keys.get(key)
        if state and state["event"] == "hot":
            return
        found = self.found(counts, thresholds)
        if not found or (state and found[0] == "suspect"):
            return
        raised = [self.least(entries, events) for entries, (_, events) in zip(thresholds, counts)]
        event, reason = found
        # Of one key nothing is said that lies before what was said last.
        at = max(at, state["at"]) if state else at
        warm_until = state["warm_until"] if state else None
        self.keys[key] = {
            "event": event, "at": at, "raised": raised, "cool": None, "warm_until": warm_until, "reason": reason
        }
        (self.flagged if event == "hot" else self.suspected).add(key)
        self.say(event, key, at, reason)

    def say(self, event, key, at, reason):
        rule, window_ms, threshold, count = reason
        line = {"at": at, "event": event, "key": key, "rule": rule, "window_ms": window_ms}
        if event != "cleared":
            line.update(threshold=threshold, count=count)
        print(json.dumps(line, ensure_ascii=False))


def span(text):
    for unit, factor in (("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)):
        if text.endswith(unit) and text[: -len(unit)].isdigit():
            return int(text[: -len(unit)]) * factor
    raise argparse.ArgumentTypeError(f"{text} is no span")


def rate(text):
    return Fraction(text.removesuffix("/s"))


def share(text):
    return Fraction(text.removesuffix("%")) / 100 if text.endswith("%") else Fraction(text)


def window(text):
    length, pane = map(span, text.split("/"))
    return length, pane


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--window", type=window, action="append", required=True)
    parser.add_argument("--rate", type=rate)
    parser.add_argument("--median", type=Fraction)
    parser.add_argument("--share", type=share)
    parser.add_argument("--floor", type=int, default=20)
    parser.add_argument("--min-keys", type=int, default=8)
    parser.add_argument("--clear", type=Fraction, default=Fraction("0.7"))
    parser.add_argument("--clear-after", type=span, default=30_000)
    parser.add_argument("--disorder", type=span, default=2_000)
    parser.add_argument("--max-ahead", type=span, default=5_000)
    return parser.parse_args()


def main():
    options = arguments()
    exact = Exact(options)
    events, ahead = deque(), []
    clock = None
    read = too_long = 0

    def count_next():
        nonlocal clock
        # The median of what is known of the future, the upper one of an even number, and the disorder; it never goes back.
        median = ahead[len(ahead) // 2] + options.disorder
        clock = median if clock is None else max(clock, median)
        ts, key = events.popleft()
        del ahead[bisect.bisect_left(ahead, ts)]
        exact.event(ts, key, clock)

    for line in sys.stdin.buffer:
        event = json.loads(line)
        read += 1
        if len(event["key"].encode()) > MAX_KEY_BYTES:
            too_long += 1
            continue
        events.append((event["ts"], event["key"]))
        bisect.insort(ahead, event["ts"])
        if len(events) >= LOOK_AHEAD:
            count_next()
    while events:
        count_next()
    summary = {
        "event": "summary",
        "read": read,
        "counted": exact.counted,
        "key_too_long": too_long,
        "too_late": exact.too_late,
        "future": exact.future,
        "keys": len(exact.ever),
        "flagged": len(exact.flagged),
        "suspected": len(exact.suspected - exact.flagged),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
