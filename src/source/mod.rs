//! Where records come from: Kafka, a file, standard input.
