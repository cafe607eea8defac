//! Load generator, simulated shards and routers: demo and tests use the same.
