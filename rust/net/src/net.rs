//! A network: its layers, and the order in which they compute.

use std::mem;

use azpy_core::game::{Game, Payoff};
use serde_json::json;

use crate::assemble::{Board, ConvPolicy, Policy, Trunk, Value, assemble};
use crate::error::Error;
use crate::layer::Job;
use crate::read::{Shape, Weights};

/// A network, ready to answer. Threads may share it; each needs a [`Scratch`] of its own.
///
/// ```
/// let shape = r#"{"network": "my_nets:make", "obs_shape": [3, 6, 7], "num_actions": 7}"#;
/// let refused = azpy_net::Net::read(shape, &[]).unwrap_err();
/// assert!(refused.to_string().contains("is a torch module"));
/// ```
#[derive(Debug)]
pub struct Net {
    shape: Shape,
    id: u64,
    board: Board,
    trunk: Trunk,
    policy: Policy,
    value: Value,
}

/// Memory of evaluations, which is kept from one to the next: one a thread, for any network.
#[derive(Debug, Default)]
pub struct Scratch {
    board: Option<Board>,
    /// Cells of positions: of their planes, which have a border of zeros; the first of the nine around them; and one after
    /// another, as where there is no border.
    cells: Vec<u32>,
    corners: Vec<u32>,
    rows: Vec<u32>,
    /// Planes with a border: observations, and channels.
    seen: Vec<f32>,
    x: Vec<f32>,
    y: Vec<f32>,
    /// Channels without a border, what is pooled from them, and what a layer gives.
    head: Vec<f32>,
    pooled: Vec<f32>,
    spread: Vec<f32>,
    out: Vec<f32>,
}

impl Net {
    /// Reads a network.
    ///
    /// `shape` is JSON: `network` as azpy names it (`4x48+pool`), `obs_shape` `[C, H, W]`, `num_actions`, and where they
    /// differ from none `num_values`, `action_cells`, `policy_planes`, `plane_divisors` and `value_smoothing`.
    /// `weights` are the bytes of a safetensors file, with the names of torch's `state_dict`.
    ///
    /// # Errors
    /// Which weights are missing or of another shape, or why azpy does not support the network.
    pub fn read(shape: &str, weights: &[u8]) -> Result<Self, Error> {
        let id = fingerprint(&[shape.as_bytes(), weights]);
        let (shape, spec) = Shape::parse(shape)?;
        let weights = Weights::read(weights)?;
        let (board, trunk, policy, value) = assemble(&shape, spec, &weights)?;
        Ok(Self { shape, id, board, trunk, policy, value })
    }

    /// Reads a network of a game, which says the shapes. `network`, `value_smoothing` and `weights` are those of
    /// [`Net::read`].
    ///
    /// # Errors
    /// See [`Net::read`].
    pub fn for_game<G: Game>(game: &G, network: &str, value_smoothing: f64, weights: &[u8]) -> Result<Self, Error> {
        let shape = json!({
            "network": network,
            "obs_shape": game.obs_shape(),
            "num_actions": game.num_actions(),
            "num_values": G::Payoff::width(game.num_players()),
            "action_cells": game.action_cells(),
            "policy_planes": game.policy_planes(),
            "plane_divisors": game.plane_divisors(),
            "value_smoothing": value_smoothing,
        });
        Self::read(&shape.to_string(), weights)
    }

    /// Answers a batch of positions.
    ///
    /// `observations` are `[N, C, H, W]`, N is `batch`. Overwrites `logits` `[N, A]`, raw, and `values` `[N, V]` in
    /// [-1, 1]: V is [`Net::num_values`]. A position gets the same bits in any batch.
    ///
    /// # Panics
    /// When a slice has another length.
    pub fn evaluate(
        &self,
        scratch: &mut Scratch,
        observations: &[f32],
        batch: usize,
        logits: &mut [f32],
        values: &mut [f32],
    ) {
        let (row, actions, width) = (self.obs_shape().iter().product::<usize>(), self.num_actions(), self.num_values());
        let lengths = [observations.len(), logits.len(), values.len()];
        assert_eq!(lengths, [row, actions, width].map(|each| each * batch), "lengths of the slices");
        scratch.fit(self.board);
        let group = self.board.group;
        let parts = logits.chunks_mut(actions * group).zip(values.chunks_mut(width * group));
        for (observations, (logits, values)) in observations.chunks(row * group).zip(parts) {
            self.answer(scratch, observations, logits, values);
        }
    }

    /// `[C, H, W]` of an observation.
    #[must_use]
    pub fn obs_shape(&self) -> [usize; 3] {
        self.shape.obs_shape
    }

    /// A, the number of logits of a position.
    #[must_use]
    pub fn num_actions(&self) -> usize {
        self.shape.num_actions
    }

    /// V, the numbers of a position's value: 1 with one player or with two and zero sum, the value for the player to
    /// move; else one a player, the player to move first.
    #[must_use]
    pub fn num_values(&self) -> usize {
        self.shape.num_values
    }

    /// A hash of the shape and the weights, never 0: equal networks have equal ids.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Answers one group of positions.
    fn answer(&self, scratch: &mut Scratch, observations: &[f32], logits: &mut [f32], values: &mut [f32]) {
        let count = logits.len() / self.num_actions();
        match &self.trunk {
            Trunk::Tower { factors, stem, blocks } => {
                self.see(scratch, observations, factors.as_deref());
                let places = count * self.shape.area();
                let (cells, corners) = (&scratch.cells[..places], &scratch.corners[..places]);
                let job = Job::new(&scratch.seen, self.board.planes, corners, cells).relu();
                stem.run(&job, &mut scratch.x);
                for block in blocks {
                    let mut job = Job::new(&scratch.x, self.board.width, corners, cells).relu();
                    if let Some((taken, spread)) = &block.pool {
                        taken.run(&Job { put: &scratch.rows[..places], ..job }, &mut scratch.head);
                        pool(&scratch.head, taken.width, self.shape.area(), count, &mut scratch.pooled);
                        let rows = &scratch.rows[..count];
                        spread.run(&Job::new(&scratch.pooled, 2 * taken.width, rows, rows), &mut scratch.spread);
                        job = job.begin(&scratch.spread, self.shape.area());
                    }
                    block.first.run(&job, &mut scratch.y);
                    let job = Job::new(&scratch.y, self.board.width, corners, cells).relu();
                    block.second.run(&Job { add: true, ..job }, &mut scratch.x);
                }
            }
            Trunk::Mlp(layers) => {
                let rows = &scratch.rows[..count];
                let (mut stride, mut first) = (self.board.planes, true);
                for layer in layers {
                    let from = if first { observations } else { &scratch.x };
                    let job = Job::new(from, stride, rows, rows).relu();
                    layer.run(&job, &mut scratch.y);
                    mem::swap(&mut scratch.x, &mut scratch.y);
                    (stride, first) = (layer.width, false);
                }
                if first {
                    scratch.x.clear();
                    scratch.x.extend_from_slice(observations);
                }
            }
        }
        self.answer_policy(scratch, count, logits);
        self.answer_value(scratch, count, values);
    }

    /// Planes of observations [N, C, H, W] as cells of channels, with a border.
    fn see(&self, scratch: &mut Scratch, observations: &[f32], factors: Option<&[f32]>) {
        let (area, own) = (self.shape.area(), self.shape.obs_shape[0]);
        let positions = scratch.cells.chunks_exact(area).zip(observations.chunks_exact(area * own));
        for (cells, observation) in positions {
            for (place, &cell) in cells.iter().enumerate() {
                let channels = &mut scratch.seen[cell as usize * self.board.planes..][..self.board.planes];
                for (plane, channel) in channels.iter_mut().enumerate() {
                    let number = if plane < own { observation[plane * area + place] } else { 1.0 };
                    *channel = factors.map_or(number, |factors| number * factors[plane * area + place]);
                }
            }
        }
    }

    fn answer_policy(&self, scratch: &mut Scratch, count: usize, logits: &mut [f32]) {
        let (area, actions) = (self.shape.area(), self.num_actions());
        let places = count * area;
        let (cells, each) = (&scratch.cells[..places], &scratch.rows[..places]);
        let rows = &scratch.rows[..count];
        let features = Job::new(&scratch.x, self.board.width, cells, each).relu();
        match &self.policy {
            Policy::Flat(layer) => {
                layer.run(&Job::new(&scratch.x, self.board.width, rows, rows), &mut scratch.out);
                copy(&scratch.out, layer.width, actions, logits);
            }
            Policy::Dense(conv, layer) => {
                conv.run(&features, &mut scratch.head);
                let job = Job::new(&scratch.head, area * conv.width, rows, rows);
                layer.run(&job, &mut scratch.out);
                copy(&scratch.out, layer.width, actions, logits);
            }
            Policy::ByCell(first, last, groups) => {
                first.run(&features, &mut scratch.head);
                let job = Job::new(&scratch.head, first.width, each, each);
                last.run(&job, &mut scratch.out);
                let found = scratch.out.chunks_exact(area * last.width);
                for (found, logits) in found.zip(logits.chunks_exact_mut(actions)) {
                    for (&cell, logits) in groups.iter().zip(logits.chunks_exact_mut(actions / groups.len())) {
                        logits.copy_from_slice(&found[cell * last.width..][..logits.len()]);
                    }
                }
            }
            Policy::Conv(policy) => {
                let ConvPolicy { taken, spread, first, last, free, places: order } = &**policy;
                taken.run(&features, &mut scratch.head);
                pool(&scratch.head, taken.width, area, count, &mut scratch.pooled);
                let pooled = Job::new(&scratch.pooled, 2 * taken.width, rows, rows);
                spread.run(&pooled, &mut scratch.spread);
                first.run(&features.begin(&scratch.spread, area), &mut scratch.head);
                let job = Job::new(&scratch.head, first.width, each, each);
                last.run(&job, &mut scratch.out);
                if let Some(free) = free {
                    free.run(&pooled, &mut scratch.spread);
                }
                for (row, logits) in logits.chunks_exact_mut(actions).enumerate() {
                    let mut beyond = free.iter().flat_map(|free| &scratch.spread[row * free.width..][..free.width]);
                    for (logit, place) in logits.iter_mut().zip(order) {
                        *logit = match *place {
                            Some((plane, cell)) => scratch.out[(row * area + cell) * last.width + plane],
                            None => beyond.next().copied().unwrap_or_default(),
                        };
                    }
                }
            }
        }
    }

    fn answer_value(&self, scratch: &mut Scratch, count: usize, values: &mut [f32]) {
        let (area, Value { head, hidden, last, win }) = (self.shape.area(), &self.value);
        let rows = &scratch.rows[..count];
        let job = match head {
            None => Job::new(&scratch.x, self.board.width, rows, rows),
            Some((conv, pools)) => {
                let places = count * area;
                let job = Job::new(&scratch.x, self.board.width, &scratch.cells[..places], &scratch.rows[..places]);
                conv.run(&job.relu(), &mut scratch.head);
                if *pools {
                    pool(&scratch.head, conv.width, area, count, &mut scratch.pooled);
                    Job::new(&scratch.pooled, 2 * conv.width, rows, rows)
                } else {
                    Job::new(&scratch.head, area * conv.width, rows, rows)
                }
            }
        };
        hidden.run(&job.relu(), &mut scratch.spread);
        last.run(&Job::new(&scratch.spread, hidden.width, rows, rows), &mut scratch.out);
        if let Some(win) = win {
            for (found, value) in scratch.out.chunks_exact(last.width).zip(values) {
                let most = found[0].max(found[1]).max(found[2]);
                let [won, drawn, lost] = [0, 1, 2].map(|class| (found[class] - most).exp());
                *value = (win * (won - lost) / (won + drawn + lost)).clamp(-1.0, 1.0);
            }
        } else {
            copy(&scratch.out, last.width, self.num_values(), values);
            values.iter_mut().for_each(|value| *value = value.tanh());
        }
    }
}

impl Scratch {
    /// Makes memory for networks of these sizes; the border of the planes is zeros, and nothing writes it.
    fn fit(&mut self, board: Board) {
        if self.board == Some(board) {
            return;
        }
        let Board { height, columns, planes, width, group } = board;
        let (area, step) = (height * columns, columns + 2);
        let bordered = step * (height + 2);
        let places = (0..group * area).map(|place| {
            let (position, cell) = (place / area, place % area);
            (position * bordered + (cell / columns) * step + cell % columns) as u32
        });
        let corners: Vec<u32> = places.collect();
        let cells = corners.iter().map(|corner| corner + step as u32 + 1).collect();
        let rows = (0..(group * area) as u32).collect();
        *self = Self { board: Some(board), corners, cells, rows, ..Self::default() };
        if area > 1 {
            let floats = group * bordered;
            (self.seen, self.x, self.y) =
                (vec![0.0; floats * planes], vec![0.0; floats * width], vec![0.0; floats * width]);
        }
    }
}

/// The mean and the maximum of each channel over the board: `pooled` gets [N, 2, stride].
fn pool(head: &[f32], stride: usize, area: usize, count: usize, pooled: &mut Vec<f32>) {
    pooled.resize(count * 2 * stride, 0.0);
    for (cells, pooled) in head.chunks_exact(area * stride).zip(pooled.chunks_exact_mut(2 * stride)).take(count) {
        let (mean, most) = pooled.split_at_mut(stride);
        mean.fill(0.0);
        most.fill(f32::NEG_INFINITY);
        for cell in cells.chunks_exact(stride) {
            mean.iter_mut().zip(cell).for_each(|(mean, number)| *mean += number);
            // `max` would pass over NaN.
            most.iter_mut().zip(cell).for_each(|(most, &x)| *most = if x <= *most { *most } else { x });
        }
        mean.iter_mut().for_each(|mean| *mean /= area as f32);
    }
}

/// The first numbers of each row.
fn copy(from: &[f32], stride: usize, width: usize, to: &mut [f32]) {
    for (to, from) in to.chunks_exact_mut(width).zip(from.chunks_exact(stride)) {
        to.copy_from_slice(&from[..width]);
    }
}

/// FNV-1a (Fowler, Noll, Vo), of 64 bits.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)).max(1)
}
