//! The process: configuration, wiring, administration, and the command line of orderly.
