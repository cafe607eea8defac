//! One file a command; exit codes.
