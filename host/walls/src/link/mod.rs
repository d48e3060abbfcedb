//! Frames and descriptors between two processes. Must not hold: what the frames mean.
