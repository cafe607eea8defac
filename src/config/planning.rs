//! `[plan]` and `[protocol]`: limits over all keyspaces, times of the protocol.

use super::kind::{Flag, Length, Whole};
use super::section::Section;
use crate::plan::{BudgetSettings, ProtocolSettings};
use crate::units::Span;

const DAY: Span = Span::from_secs(86_400);

pub(super) fn budget(root: &Section<'_, '_>) -> BudgetSettings {
    let section = root.section("plan");
    let default = BudgetSettings::default();
    let count = |name, max, default: usize| {
        let value = section.or(name, &Whole { min: 1, max }, default as u64);
        usize::try_from(value).unwrap_or(default)
    };
    let budget = BudgetSettings {
        max_splits: count("max_splits", 10_000, default.max_splits),
        max_changes_per_minute: count("max_changes_per_minute", 600, default.max_changes_per_minute),
        min_dwell: section.or("min_dwell", &Length { min: Span::ZERO, max: DAY }, default.min_dwell),
        freeze: section.or("freeze", &Flag, default.freeze),
    };
    section.finish();
    budget
}

pub(super) fn protocol(root: &Section<'_, '_>) -> ProtocolSettings {
    let section = root.section("protocol");
    let default = ProtocolSettings::default();
    let (second, hour) = (Span::from_secs(1), Span::from_secs(3600));
    let hold_limit = section.or("hold_limit", &Length { min: Span::from_millis(100), max: hour }, default.hold_limit);
    let call_limit = section.or("call_limit", &Length { min: second, max: hour }, default.call_limit);
    let expect_routers = section.or("expect_routers", &Whole { min: 1, max: 1000 }, default.expect_routers as u64);
    let not_after = section.or("not_after", &Length { min: second, max: hour }, default.not_after);
    let tombstone_after =
        section.or("tombstone_after", &Length { min: second, max: DAY.saturating_mul(365) }, default.tombstone_after);
    if section.are_sound(&["hold_limit", "call_limit"]) && hold_limit >= call_limit {
        let name = if section.has("hold_limit") { "hold_limit" } else { "call_limit" };
        let rule = format!("hold_limit ({hold_limit}) should be shorter than call_limit ({call_limit})");
        section.fault(name, rule, "a hold keeps writes waiting, so it has to end before a store call would");
    }
    section.finish();
    ProtocolSettings {
        hold_limit,
        call_limit,
        expect_routers: usize::try_from(expect_routers).unwrap_or(default.expect_routers),
        not_after,
        tombstone_after,
    }
}
