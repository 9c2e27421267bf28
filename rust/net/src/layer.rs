//! The one piece of arithmetic that takes time: sums of products, for convolutions and for matrices.
//!
//! A layer reads channels that lie side by side, and writes them so. For a position it adds up weights times inputs, of
//! nine cells around it or of one. Sums of several positions (rows of a tile) and of up to four vectors of outputs stay
//! in registers, so that each weight that is loaded serves all rows, and each input all vectors.
//!
//! `fearless_simd` chooses the widest vectors that the CPU has when the program runs, and keeps the `unsafe` of that.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// Vectors of outputs that a tile has at most.
const MOST_VECTORS: usize = 4;

/// Weights as the loops want them, and the bias.
#[derive(Debug)]
pub(crate) struct Layer {
    level: Level,
    /// Channels that are read of a cell.
    inputs: usize,
    /// Where the cells that are read lie, in cells from the position's first.
    taps: Vec<usize>,
    /// Vectors of outputs of each block.
    blocks: Vec<usize>,
    /// `[block][tap][input][output of the block]`.
    weights: Vec<f32>,
    /// `[width]`.
    pub(crate) bias: Vec<f32>,
    /// Outputs, filled up with zeros to whole vectors: the floats from one written cell to the next.
    pub(crate) width: usize,
}

/// The input of a layer, and what happens to its sums.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Cells of `stride` floats.
    pub(crate) from: &'a [f32],
    /// Floats from one cell to the next, at least the layer's inputs.
    pub(crate) stride: usize,
    /// For each position the first cell that is read.
    pub(crate) at: &'a [u32],
    /// For each position the cell that is written, ascending.
    pub(crate) put: &'a [u32],
    /// What sums begin with, in place of the layer's own bias: `[N, width]`, and how many positions have the same.
    pub(crate) bias: Option<(&'a [f32], usize)>,
    /// Adds to what is there, in place of writing over it.
    pub(crate) add: bool,
    /// Negative sums become 0.
    pub(crate) relu: bool,
}

impl<'a> Job<'a> {
    /// From the cells of `at` to those of `put`.
    pub(crate) fn new(from: &'a [f32], stride: usize, at: &'a [u32], put: &'a [u32]) -> Self {
        Self { from, stride, at, put, bias: None, add: false, relu: false }
    }

    /// With negative sums as 0.
    pub(crate) fn relu(self) -> Self {
        Self { relu: true, ..self }
    }

    /// With sums that begin with `bias` `[N, width]`, each row for `same` positions.
    pub(crate) fn begin(self, bias: &'a [f32], same: usize) -> Self {
        Self { bias: Some((bias, same)), ..self }
    }
}

impl Layer {
    /// Packs weights for the vectors of `level`; `weight` gives that of an output, a tap and an input.
    pub(crate) fn new(
        level: Level,
        [outputs, inputs]: [usize; 2],
        taps: Vec<usize>,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: &[f32],
    ) -> Self {
        let lanes = dispatch!(level, simd => lanes(simd));
        let vectors = outputs.div_ceil(lanes);
        let groups = vectors.div_ceil(MOST_VECTORS);
        let ends: Vec<usize> = (0..=groups).map(|group| group * vectors / groups.max(1)).collect();
        let mut weights = Vec::with_capacity(taps.len() * inputs * vectors * lanes);
        for ends in ends.windows(2) {
            for tap in 0..taps.len() {
                for input in 0..inputs {
                    let block = ends[0] * lanes..ends[1] * lanes;
                    weights.extend(block.map(|output| if output < outputs { weight(output, tap, input) } else { 0.0 }));
                }
            }
        }
        let mut bias = bias.to_vec();
        bias.resize(vectors * lanes, 0.0);
        let blocks = ends.windows(2).map(|ends| ends[1] - ends[0]).collect();
        Self { level, inputs, taps, blocks, weights, width: bias.len(), bias }
    }

    /// Writes the outputs of all positions, cells of `width` floats; `to` grows where it ends before them.
    pub(crate) fn run(&self, job: &Job<'_>, to: &mut Vec<f32>) {
        assert!(self.inputs <= job.stride && job.at.len() == job.put.len(), "a layer's job fits together");
        let Some(last) = job.put.last() else { return };
        let floats = (*last as usize + 1) * self.width;
        if to.len() < floats {
            to.resize(floats, 0.0);
        }
        dispatch!(self.level, simd => blocks(simd, self, job, to));
    }
}

#[inline(always)]
fn lanes<S: Simd>(_: S) -> usize {
    S::f32s::LEN
}

#[inline(always)]
fn blocks<S: Simd>(simd: S, layer: &Layer, job: &Job<'_>, to: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let (mut first, mut weights) = (0, &layer.weights[..]);
    for &vectors in &layer.blocks {
        let (block, rest) = weights.split_at(layer.taps.len() * layer.inputs * vectors * lanes);
        let block = Block { weights: block, first };
        // At most twelve sums: registers for them are everywhere, and more keep no unit waiting less. The compiler keeps
        // no more than about sixteen in registers, even where there are 32 (Rust 1.95).
        match vectors {
            1 => tiles::<S, 12, 4, 1>(simd, layer, job, &block, to),
            2 => tiles::<S, 6, 3, 2>(simd, layer, job, &block, to),
            3 => tiles::<S, 4, 2, 3>(simd, layer, job, &block, to),
            _ => tiles::<S, 3, 2, 4>(simd, layer, job, &block, to),
        }
        (first, weights) = (first + vectors * lanes, rest);
    }
}

/// A part of a layer's outputs: its weights, and the number of its first output.
struct Block<'a> {
    weights: &'a [f32],
    first: usize,
}

/// All positions, R of them at a time; what is left by Q or one by one.
#[inline(always)]
fn tiles<S: Simd, const R: usize, const Q: usize, const V: usize>(
    simd: S,
    layer: &Layer,
    job: &Job<'_>,
    block: &Block<'_>,
    to: &mut [f32],
) {
    let (mut begin, count) = (0, job.at.len());
    while begin < count {
        begin += match count - begin {
            left if left >= R => tile::<S, R, V>(simd, layer, job, block, begin, to),
            1 => tile::<S, 1, V>(simd, layer, job, block, begin, to),
            _ => tile::<S, Q, V>(simd, layer, job, block, begin, to),
        };
    }
}

/// R positions from `begin` on, the last one again where there are no more; returns R.
#[inline(always)]
fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    layer: &Layer,
    job: &Job<'_>,
    block: &Block<'_>,
    begin: usize,
    to: &mut [f32],
) -> usize {
    let (lanes, inputs, zero) = (S::f32s::LEN, layer.inputs, S::f32s::splat(simd, 0.0));
    let (bias, same) = job.bias.unwrap_or((&layer.bias, usize::MAX));
    let (mut at, mut put) = ([0; R], [0; R]);
    let mut sums = [[zero; V]; R];
    for row in 0..R {
        let position = (begin + row).min(job.at.len() - 1);
        at[row] = job.at[position] as usize;
        put[row] = job.put[position] as usize * layer.width + block.first;
        let bias = &bias[position / same * layer.width + block.first..][..V * lanes];
        for vector in 0..V {
            sums[row][vector] = S::f32s::from_slice(simd, &bias[vector * lanes..][..lanes]);
        }
        if job.add {
            let there = &to[put[row]..][..V * lanes];
            for vector in 0..V {
                sums[row][vector] += S::f32s::from_slice(simd, &there[vector * lanes..][..lanes]);
            }
        }
    }
    for (tap, weights) in layer.taps.iter().zip(block.weights.chunks_exact(inputs * V * lanes)) {
        // Slices of one length, so that no read in the loop is checked.
        let mut rows: [&[f32]; R] = [&[]; R];
        for row in 0..R {
            rows[row] = &job.from[(at[row] + tap) * job.stride..][..inputs];
        }
        for (input, weights) in (0..inputs).zip(weights.chunks_exact(V * lanes)) {
            let mut loaded = [zero; V];
            for vector in 0..V {
                loaded[vector] = S::f32s::from_slice(simd, &weights[vector * lanes..][..lanes]);
            }
            for row in 0..R {
                let value = S::f32s::splat(simd, rows[row][input]);
                for vector in 0..V {
                    sums[row][vector] = value.mul_add(loaded[vector], sums[row][vector]);
                }
            }
        }
    }
    for row in 0..R {
        let to = &mut to[put[row]..][..V * lanes];
        for vector in 0..V {
            let sum = sums[row][vector];
            // `max` would take 0 for NaN, and a network that overflows would seem to answer.
            let sum = if job.relu { sum.simd_le(zero).select(zero, sum) } else { sum };
            sum.store_slice(&mut to[vector * lanes..][..lanes]);
        }
    }
    R
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every vector width that this machine supports.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        #[allow(unused_mut)]
        let mut all = vec![best];
        #[cfg(target_arch = "x86_64")]
        all.extend(
            [
                best.as_avx2().map(|simd| simd.level()),
                best.as_sse4_2().map(|simd| simd.level()),
                best.as_sse2().map(|simd| simd.level()),
            ]
            .into_iter()
            .flatten(),
        );
        all
    }

    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|index| ((index * step) % 17) as f32 / 8.0 - 1.0).collect()
    }

    #[test]
    fn negative_sums_become_0_and_nan_stays() {
        for level in levels() {
            let bias = [f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 2.0];
            let layer = Layer::new(level, [5, 1], vec![0], |_, _, _| 0.0, &bias);
            let mut to = Vec::new();
            layer.run(&Job::new(&[1.0], 1, &[0], &[0]).relu(), &mut to);
            assert!(to[0].is_nan(), "{level:?}");
            assert_eq!(to[1..5], [0.0, 0.0, 0.0, 2.0], "{level:?}");
        }
    }

    #[test]
    fn a_layer_has_the_sums_of_plain_loops() {
        for level in levels() {
            for (positions, inputs, outputs) in
                [(1, 1, 1), (2, 3, 5), (7, 2, 33), (13, 5, 48), (29, 4, 130), (12, 16, 64)]
            {
                let taps = vec![0, 1, 3];
                let (stride, cells) = (inputs + 1, positions + 4);
                let from = numbers(cells * stride, 5);
                let (weights, bias) = (numbers(outputs * 3 * inputs, 7), numbers(outputs, 3));
                let weight = |output: usize, tap: usize, input: usize| weights[(output * 3 + tap) * inputs + input];
                let layer = Layer::new(level, [outputs, inputs], taps.clone(), weight, &bias);
                let at: Vec<u32> = (0..positions as u32).rev().collect();
                let put: Vec<u32> = (0..positions as u32).map(|position| position + 1).collect();
                for (add, relu) in [(false, false), (true, true)] {
                    let before = numbers((positions + 1) * layer.width, 11);
                    let mut to = before.clone();
                    let job = Job { add, relu, ..Job::new(&from, stride, &at, &put) };
                    layer.run(&job, &mut to);
                    assert_eq!(to[..layer.width], before[..layer.width], "nothing else is written");
                    for position in 0..positions {
                        for (output, bias) in bias.iter().enumerate() {
                            let place = (position + 1) * layer.width + output;
                            let mut sum = bias + if add { before[place] } else { 0.0 };
                            for (tap, &cell) in taps.iter().enumerate() {
                                for input in 0..inputs {
                                    let read = from[(at[position] as usize + cell) * stride + input];
                                    sum += read * weight(output, tap, input);
                                }
                            }
                            let sum = if relu && sum <= 0.0 { 0.0 } else { sum };
                            assert!((to[place] - sum).abs() < 1e-4, "{level:?}: {} and {sum}", to[place]);
                        }
                    }
                }
            }
        }
    }
}
