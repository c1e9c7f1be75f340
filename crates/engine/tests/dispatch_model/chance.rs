//! Chance from a seed: the same choices in every run.

/// SplitMix64.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Mixed, since the states of one history are the next seeds of another otherwise.
        Chance(mix(seed))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % bound
    }

    /// True in one of `of` cases.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        match from.len() {
            0 => None,
            length => from.get(self.below(length as u64) as usize),
        }
    }

    /// A few neighbours of a list.
    pub(crate) fn some_of<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        if from.is_empty() {
            return Vec::new();
        }
        let start = self.below(from.len() as u64) as usize;
        let count = 1 + self.below(4) as usize;
        from.iter().skip(start).take(count).cloned().collect()
    }
}

fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
