//! Random streams that are named, stable and keyed.
//!
//! Every draw in azpy comes from a stream that is a pure function of (seed, game, ply, purpose), so results never
//! depend on threads, slots or the order in which games happen to finish.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, Gumbel};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One random stream (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// Mixes 64 bits (the finaliser of SplitMix64, Steele, Lea and Flood 2014).
#[must_use]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Stream {
    /// The stream that belongs to `parts`, say `[seed, game, ply]`.
    #[must_use]
    pub fn keyed(parts: &[u64]) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15;
        for &part in parts {
            state = mix(state ^ mix(part.wrapping_add(0x9E37_79B9_7F4A_7C15)));
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Uniform in `0..bound`; `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// An index drawn with probability proportional to its weight; weights are finite and not negative.
    /// Without any positive weight the answer is 0.
    pub fn weighted(&mut self, weights: impl Iterator<Item = f64> + Clone) -> usize {
        let total: f64 = weights.clone().sum();
        let mut left = self.unit() * total;
        let mut last = 0;
        for (index, weight) in weights.enumerate() {
            if weight > 0.0 {
                if left < weight {
                    return index;
                }
                // Rounding can leave a remainder after the last weight; return the last positive weight then.
                last = index;
            }
            left -= weight;
        }
        last
    }

    /// A draw from the standard Gumbel distribution.
    pub fn gumbel(&mut self) -> f64 {
        Gumbel::new(0.0, 1.0).expect("the scale is positive").sample(&mut self.0)
    }

    /// A draw from the Dirichlet distribution; each of `alphas` is positive.
    pub fn dirichlet(&mut self, alphas: &[f64]) -> Vec<f64> {
        let draw = |&alpha: &f64| {
            let gamma = Gamma::new(alpha, 1.0).expect("alpha was checked to be positive and finite");
            gamma.sample(&mut self.0)
        };
        let mut out: Vec<f64> = alphas.iter().map(draw).collect();
        let sum: f64 = out.iter().sum();
        // A tiny alpha can underflow every draw to 0; the limit of the distribution is one random corner.
        if sum > 0.0 {
            out.iter_mut().for_each(|x| *x /= sum);
        } else if !out.is_empty() {
            let corner = self.below(out.len());
            out[corner] = 1.0;
        }
        out
    }
}
