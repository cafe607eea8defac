#!/usr/bin/env python3
"""Writes fixtures/router/vectors.json: which bucket an id falls into, and which key the bucket has.

Made with python-xxhash, an implementation that has nothing to do with this project, from the words of the protocol:
bucket = xxh64(id, seed) & (buckets - 1); label = first + bucket; key = the form with {key} and {label} replaced.

usage: router_vectors.py > fixtures/router/vectors.json      (needs: pip install xxhash)
"""
import base64
import json

import xxhash

SEEDS = [0, 1, 0x9F86D081884C7D65, 0xFFFFFFFFFFFFFFFF]
IDS = [b"", b"a", b"\x00", b"order-1", "caf\u00e9".encode(), "cafe\u0301".encode(), b"\xff\xfe\x00/", bytes(i % 251 for i in range(1024))]
LAYOUTS = [(2, 0), (8, 0), (8, 4000), (256, 1000)]
KEYS = [b"c42", b"a:1", b"\xff/\x00", b"{label}"]
FORMS = ["{key}:{label}", "b{label}/{key}", "{key}\u00b7{label}"]


def b64(data):
    return base64.b64encode(data).decode()


def render(form, key, label):
    parts = form.encode().split(b"{key}")
    return key.join(part.replace(b"{label}", str(label).encode()) for part in parts)


def main():
    hashes = []
    for seed in SEEDS:
        for one in IDS:
            value = xxhash.xxh64(one, seed=seed).intdigest()
            buckets = [{"buckets": n, "first": first, "bucket": value & (n - 1), "label": first + (value & (n - 1))} for n, first in LAYOUTS]
            hashes.append({"seed": "%016x" % seed, "id_b64": b64(one), "hash": "%016x" % value, "in": buckets})
    keys = [
        {"form": form, "key_b64": b64(key), "label": label, "store_key_b64": b64(render(form, key, label))}
        for form in FORMS for key in KEYS for label in (0, 7, 4294967295)
    ]
    print(json.dumps({"version": 1, "bucket_hash": "xxh64-low-bits", "buckets": hashes, "keys": keys}, indent=1))


if __name__ == "__main__":
    main()
