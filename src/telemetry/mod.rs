//! The catalogue of metrics, and events that leave a log line and a counter together.
