//! The view that gauges and the API are made from.

use std::sync::Arc;

use super::exchange::{Heat, Led};
use crate::engine::Engine;
use crate::plan::MapperCheck;
use crate::source::Reach;
use crate::telemetry::{KeyspaceView, MapperView, PartitionView, SourceView, View};
use crate::units::EventTime;

/// Everything as it is at `now`.
pub(super) fn view_of(
    now: EventTime,
    engine: &Engine,
    keyspaces: &[&str],
    mappers: &[Option<MapperCheck>],
    heat: &Heat,
    led: &Led,
    positions: &[Reach],
) -> View {
    let keyspace = |(index, (name, mapper)): (usize, (&&str, &Option<MapperCheck>))| KeyspaceView {
        mapper: mapper.as_ref().map(MapperView::from),
        ..keyspace_view(engine, index, name, heat, led)
    };
    let keyspaces = keyspaces.iter().zip(mappers).enumerate().map(keyspace).collect();
    let mut view = View {
        at: Some(now),
        config: heat.config_hash.to_string(),
        condition: engine.condition(),
        source: SourceView { partitions: positions.iter().map(partition_view).collect() },
        keyspaces,
        control: led.control,
        ..View::empty(&[])
    };
    view.set_routers(led.routers.clone());
    view
}

fn partition_view(&Reach { partition, position, end, waits }: &Reach) -> PartitionView {
    let lag = end.map(|end| u64::try_from(end.0.saturating_sub(position.0)).unwrap_or(0));
    PartitionView { partition, position: Some(position), lag, paused: waits }
}

fn keyspace_view(engine: &Engine, index: usize, name: &str, heat: &Heat, led: &Led) -> KeyspaceView {
    let mut view = KeyspaceView::from_status(name, &engine.status(index));
    view.set_keys(heat.hot.iter().filter(|key| key.keyspace == index));
    if let Some(shortest) = view.windows.first().map(|window| window.length) {
        view.set_shards(shortest, &engine.shard_loads(index, 0));
    }
    for (_, plan) in led.plans.iter().filter(|(keyspace, _)| *keyspace == index) {
        view.add_plan(plan.clone());
    }
    for (_, policy) in led.policies.iter().filter(|(keyspace, _)| *keyspace == index) {
        view.add_policy(Arc::clone(policy));
    }
    view
}
