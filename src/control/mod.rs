//! The plan topic and the acks topic as the leader uses them: claim, publish, reconcile, read acks.
