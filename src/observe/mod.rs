//! What can be seen from outside: metrics and health over HTTP.
