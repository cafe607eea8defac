//! Closed sets of label values that belong to no other stage.

/// An enum whose every member has a label; `ALL` and `LABELS` are in the order of the enum.
macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident => $label:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$member_doc])* $member,)+
        }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$member,)+];
            /// The label of every member.
            pub const LABELS: &'static [&'static str] = &[$($label,)+];

            /// The label value.
            #[must_use]
            pub const fn label(self) -> &'static str {
                Self::LABELS[self as usize]
            }
        }
    };
}

closed_set! {
    /// Which side of an estimate.
    Bound {
        /// The number is at least this.
        Lower => "lower",
        /// The number is at most this.
        Upper => "upper",
    }
}

closed_set! {
    /// What a verdict is about.
    SubjectKind {
        /// A key.
        Key => "key",
        /// A shard.
        Shard => "shard",
    }
}

closed_set! {
    /// What a rebalance did.
    Rebalance {
        /// Partitions came.
        Assigned => "assigned",
        /// Partitions were given up in good order.
        Revoked => "revoked",
        /// Partitions were taken away without a chance to commit.
        Lost => "lost",
    }
}

closed_set! {
    /// What became of a configuration that was read again while the service runs.
    ConfigReload {
        /// Its rules are in force.
        Applied => "applied",
        /// It has faults, or differs in more than rules: nothing changed.
        Refused => "refused",
        /// It says what is in force already.
        Unchanged => "unchanged",
    }
}

closed_set! {
    /// How an offset commit ended.
    CommitResult {
        /// The group coordinator took it.
        Ok => "ok",
        /// It did not.
        Failed => "failed",
    }
}

closed_set! {
    /// Errors of the Kafka client, in so few classes that a person can act on each.
    KafkaErrorClass {
        /// A connection broke or could not be made; the client tries again by itself.
        Transport => "transport",
        /// No broker can be reached.
        AllBrokersDown => "all_brokers_down",
        /// An answer did not come in time.
        Timeout => "timeout",
        /// Wrong credentials, or TLS failed.
        Authentication => "authentication",
        /// An access right is missing.
        Authorization => "authorization",
        /// A topic or partition is not there.
        UnknownTopic => "unknown_topic",
        /// The wanted offset was deleted, or never was.
        OffsetOutOfRange => "offset_out_of_range",
        /// The group: rebalances, fenced members, polls too far apart.
        Group => "group",
        /// A record or request that the broker refuses.
        Rejected => "rejected",
        /// The client cannot go on and has to be made anew.
        Fatal => "fatal",
        /// Anything else; the log line has the text.
        Other => "other",
    }
}

closed_set! {
    /// Kinds of record on the plan topic.
    ControlKind {
        /// The plan of a key.
        Plan => "plan",
        /// Advice other than a split.
        Advice => "advice",
        /// A pin or block of an operator.
        Policy => "policy",
        /// A publisher takes the lead.
        Claim => "claim",
        /// Newest version and digest.
        Heartbeat => "heartbeat",
    }
}

closed_set! {
    /// What became of a record for the plan topic, or was found there.
    ControlResult {
        /// Read back and accepted.
        Published => "published",
        /// The client reported that it was not delivered.
        Failed => "failed",
        /// Read, and refused by the fence or as unreadable.
        Refused => "refused",
        /// Sent again because a refused record had become the last of its key.
        Reasserted => "reasserted",
    }
}

closed_set! {
    /// States in which decisions wait.
    ConditionLabel {
        /// The longest window is not filled.
        WarmingUp => "warming_up",
        /// Records are unread and event time is behind the clock by more than a window.
        CatchingUp => "catching_up",
        /// A partition that exists is not counted here, is waited for no longer, or was taken away within the longest window.
        Incomplete => "incomplete",
    }
}

closed_set! {
    /// What readiness waits for. Each is false from the start until somebody says otherwise.
    Latch {
        /// The input topic exists and can be read.
        InputTopic => "input_topic",
        /// The plan topic exists with the settings it must have.
        PlanTopic => "plan_topic",
        /// The acks topic exists with the settings it must have.
        AcksTopic => "acks_topic",
        /// The consumer group has given this member its partitions (none is an answer too).
        Assigned => "assigned",
        /// Event time is within a window of the clock.
        CaughtUp => "caught_up",
        /// This process leads, or knows who does.
        Control => "control",
        /// The loop makes progress: the watchdog is content.
        Progress => "progress",
    }
}

closed_set! {
    /// Why the HTTP side turned a request or a connection away.
    HttpRefusal {
        /// The Host header names a host that is not allowed.
        Host => "host",
        /// Too many connections at once.
        Connections => "connections",
        /// Headers or answer took too long.
        Timeout => "timeout",
        /// The body is longer than allowed.
        Body => "body",
        /// A command without the right token.
        Token => "token",
    }
}

closed_set! {
    /// Lists that were cut so that the number of series stays bounded.
    Cut {
        /// Hot keys without a series of their own.
        HotKeys => "hot_keys",
        /// Shards summed under `other`.
        Shards => "shards",
        /// Partitions summed under `other`.
        Partitions => "partitions",
    }
}

closed_set! {
    /// Where an event was served, by what the declared mapper says.
    Served {
        /// By the shard that it says.
        AsPredicted => "as_predicted",
        /// By another one.
        Elsewhere => "elsewhere",
    }
}

closed_set! {
    /// What the engine left out for want of room.
    EngineCut {
        /// Keys that found no room among the candidates.
        Candidates => "candidates",
        /// Hot, suspect and planned keys beyond the limit of protected keys.
        Protected => "protected",
        /// Events whose shard's name found no room or was too long.
        Shards => "shards",
        /// Panes with more names than exact counting has room for.
        ExactPanes => "exact_panes",
        /// Verdicts that nobody fetched in time.
        Verdicts => "verdicts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_order_of_the_enum() {
        for (index, class) in KafkaErrorClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, index);
            assert_eq!(class.label(), KafkaErrorClass::LABELS[index]);
        }
        assert_eq!(Latch::Progress.label(), "progress");
        assert_eq!(ControlResult::Reasserted.label(), "reasserted");
    }
}
