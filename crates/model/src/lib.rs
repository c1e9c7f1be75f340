//! The words: names, ids, messages, limits, time, regions.
