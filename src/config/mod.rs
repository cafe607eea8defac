//! The file as written becomes the settings that each stage owns, or all its faults at once. No I/O.
