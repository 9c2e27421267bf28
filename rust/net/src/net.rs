//! A network: its layers, and the order in which they compute.

use std::mem;

use fearless_simd::Level;

use crate::layer::{Job, Layer};
use crate::read::{Matrix, Shape, Spec, Weights};

/// Channels of a dense head, of what a policy head pools, and of a value head that pools; outputs of the value's hidden
/// layer. All as in `azpy/learning/network.py`.
const HEAD: usize = 16;
const VALUE_CHANNELS: usize = 32;
const VALUE_HIDDEN: usize = 64;
/// Planes that a network of any size adds to the game's: ones, and how near the edges are.
const OWN_PLANES: usize = 3;
/// From what a board's side is measured, and in what (KataGo's); cells in which planes are read.
const SIDE: f64 = 14.0;
const SIDES: f64 = 10.0;
const AREA: f32 = 64.0;
/// Positions are answered in groups whose planes of channels have about so many floats, so that they stay in a cache.
const GROUP_FLOATS: usize = 1 << 16;
const MOST_IN_GROUP: usize = 64;

/// A network, ready to answer. Threads may share it; each needs a [`Scratch`] of its own.
///
/// ```
/// let shape = r#"{"network": "my_nets:make", "obs_shape": [3, 6, 7], "num_actions": 7}"#;
/// let refused = azpy_net::Net::read(shape, &[]).unwrap_err();
/// assert!(refused.contains("a torch module of one's own"));
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

/// The sizes that memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Board {
    height: usize,
    columns: usize,
    /// Planes that the first layer reads.
    planes: usize,
    /// Floats of a cell of the trunk.
    width: usize,
    /// Positions that are answered at a time.
    group: usize,
}

#[derive(Debug)]
enum Trunk {
    Tower {
        /// `[C + 3, H, W]` what planes are multiplied by, with `+conv`.
        factors: Option<Vec<f32>>,
        stem: Layer,
        blocks: Vec<Residual>,
    },
    Mlp(Vec<Layer>),
}

#[derive(Debug)]
struct Residual {
    first: Layer,
    second: Layer,
    /// A convolution, and from what is pooled to what the first layer begins with.
    pool: Option<(Layer, Layer)>,
}

#[derive(Debug)]
enum Policy {
    /// A matrix, from the features of an MLP.
    Flat(Layer),
    /// A convolution, and a matrix from all cells to all actions.
    Dense(Layer, Layer),
    /// Two convolutions: a group of actions for each of the cells.
    ByCell(Layer, Layer, Vec<usize>),
    /// Convolutions, and pooling.
    Conv(Box<ConvPolicy>),
}

#[derive(Debug)]
struct ConvPolicy {
    taken: Layer,
    spread: Layer,
    first: Layer,
    last: Layer,
    free: Option<Layer>,
    /// For each action its plane and cell; None: the next of `free`.
    places: Vec<Option<(usize, usize)>>,
}

#[derive(Debug)]
struct Value {
    /// A convolution, and whether its channels are pooled. An MLP has none.
    head: Option<(Layer, bool)>,
    hidden: Layer,
    last: Layer,
    /// What a sure win counts, of three classes.
    win: Option<f32>,
}

impl Net {
    /// Reads a network.
    ///
    /// `shape` is JSON: `network` as azpy names it (`4x48+pool`), `obs_shape` `[C, H, W]`, `num_actions`, and where they
    /// differ from none `num_values`, `action_cells`, `policy_planes`, `plane_divisors` and `value_smoothing`.
    /// `weights` are the bytes of a safetensors file, with the names of torch's `state_dict`.
    ///
    /// # Errors
    /// A sentence that says which weights are missing or of another shape, or why azpy knows no such network.
    pub fn read(shape: &str, weights: &[u8]) -> Result<Self, String> {
        let id = fingerprint(&[shape.as_bytes(), weights]);
        let (shape, spec) = Shape::parse(shape)?;
        let weights = Weights::read(weights)?;
        let [planes, height, columns] = shape.obs_shape;
        let planes = planes + if spec.has_any_size { OWN_PLANES } else { 0 };
        let mut board = Board { height, columns, planes, width: 0, group: MOST_IN_GROUP };
        let (trunk, policy, value) = if shape.area() > 1 {
            board.read_tower(&shape, spec, &weights)?
        } else {
            board.read_mlp(&shape, spec, &weights)?
        };
        Ok(Self { shape, id, board, trunk, policy, value })
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

    /// Such as `4x48+pool`.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.shape.network
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
                    let job = Job::new(&scratch.x, self.board.width, corners, cells).relu();
                    if let Some((taken, spread)) = &block.pool {
                        let job = Job { put: &scratch.rows[..places], ..job };
                        taken.run(&job, grown(&mut scratch.head, places * taken.width));
                        pool(&scratch.head, taken.width, self.shape.area(), count, &mut scratch.pooled);
                        let rows = &scratch.rows[..count];
                        let job = Job::new(&scratch.pooled, 2 * taken.width, rows, rows);
                        spread.run(&job, grown(&mut scratch.spread, count * spread.width));
                        let job = Job::new(&scratch.x, self.board.width, corners, cells).relu();
                        block.first.run(&job.begin(&scratch.spread, self.shape.area()), &mut scratch.y);
                    } else {
                        block.first.run(&job, &mut scratch.y);
                    }
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
                    layer.run(&job, grown(&mut scratch.y, count * layer.width));
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
                layer.run(
                    &Job::new(&scratch.x, self.board.width, rows, rows),
                    grown(&mut scratch.out, count * layer.width),
                );
                copy(&scratch.out, layer.width, actions, logits);
            }
            Policy::Dense(conv, layer) => {
                conv.run(&features, grown(&mut scratch.head, places * conv.width));
                let job = Job::new(&scratch.head, area * conv.width, rows, rows);
                layer.run(&job, grown(&mut scratch.out, count * layer.width));
                copy(&scratch.out, layer.width, actions, logits);
            }
            Policy::ByCell(first, last, groups) => {
                first.run(&features, grown(&mut scratch.head, places * first.width));
                let job = Job::new(&scratch.head, first.width, each, each);
                last.run(&job, grown(&mut scratch.out, places * last.width));
                let found = scratch.out.chunks_exact(area * last.width);
                for (found, logits) in found.zip(logits.chunks_exact_mut(actions)) {
                    for (&cell, logits) in groups.iter().zip(logits.chunks_exact_mut(actions / groups.len())) {
                        logits.copy_from_slice(&found[cell * last.width..][..logits.len()]);
                    }
                }
            }
            Policy::Conv(policy) => {
                let ConvPolicy { taken, spread, first, last, free, places: order } = &**policy;
                taken.run(&features, grown(&mut scratch.head, places * taken.width));
                pool(&scratch.head, taken.width, area, count, &mut scratch.pooled);
                let pooled = Job::new(&scratch.pooled, 2 * taken.width, rows, rows);
                spread.run(&pooled, grown(&mut scratch.spread, count * spread.width));
                first.run(&features.begin(&scratch.spread, area), grown(&mut scratch.head, places * first.width));
                let job = Job::new(&scratch.head, first.width, each, each);
                last.run(&job, grown(&mut scratch.out, places * last.width));
                if let Some(free) = free {
                    free.run(&pooled, grown(&mut scratch.spread, count * free.width));
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
                conv.run(&job.relu(), grown(&mut scratch.head, places * conv.width));
                if *pools {
                    pool(&scratch.head, conv.width, area, count, &mut scratch.pooled);
                    Job::new(&scratch.pooled, 2 * conv.width, rows, rows)
                } else {
                    Job::new(&scratch.head, area * conv.width, rows, rows)
                }
            }
        };
        hidden.run(&job.relu(), grown(&mut scratch.spread, count * hidden.width));
        last.run(&Job::new(&scratch.spread, hidden.width, rows, rows), grown(&mut scratch.out, count * last.width));
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
        *self = Self { board: Some(board), rows: (0..(group * area) as u32).collect(), ..Self::default() };
        if area > 1 {
            self.corners = places.collect();
            self.cells = self.corners.iter().map(|corner| corner + step as u32 + 1).collect();
            self.seen = vec![0.0; group * bordered * planes];
            (self.x, self.y) = (vec![0.0; group * bordered * width], vec![0.0; group * bordered * width]);
        }
    }
}

impl Board {
    /// A layer of three by three cells, or of one.
    fn layer(&self, matrix: &Matrix) -> Layer {
        let step = self.columns + 2;
        let taps = (0..matrix.size * matrix.size).map(|tap| tap / matrix.size * step + tap % matrix.size);
        let sizes = [matrix.outputs(), matrix.inputs];
        let weight = |output, tap, input| matrix.weight(output, tap, input);
        Layer::new(Level::new(), sizes, taps.collect(), weight, &matrix.bias)
    }

    fn read_tower(
        &mut self,
        shape: &Shape,
        spec: Spec,
        weights: &Weights<'_>,
    ) -> Result<(Trunk, Policy, Value), String> {
        let (width, area) = (spec.width, shape.area());
        let stem = self.layer(&weights.conv("trunk.0", [width, self.planes], 3)?);
        self.width = stem.width;
        self.group = (GROUP_FLOATS / (area * self.width)).clamp(1, MOST_IN_GROUP);
        let mut blocks = Vec::new();
        for block in 0..spec.depth {
            let name = format!("trunk.{}", block + 2); // behind the stem and its ReLU
            let first = weights.conv(&format!("{name}.first"), [width; 2], 3)?;
            let second = weights.conv(&format!("{name}.second"), [width; 2], 3)?;
            let pool = if spec.pools && block % 3 == 1 {
                Some(self.read_pool(&format!("{name}.pool"), weights, &first)?)
            } else {
                None
            };
            blocks.push(Residual { first: self.layer(&first), second: self.layer(&second), pool });
        }
        let factors = spec.has_any_size.then(|| factors(shape));
        let policy = self.read_policy(shape, spec, weights)?;
        let channels = if spec.has_any_size { VALUE_CHANNELS } else { HEAD };
        let conv = self.layer(&weights.conv("value.0", [channels, width], 1)?);
        let hidden = if spec.has_any_size {
            let norm = weights.norm("value.2.norm", 2 * channels)?;
            let hidden = weights.matrix("value.3", [VALUE_HIDDEN, 3 * channels])?;
            of_pooled(&hidden, &norm, shape, conv.width, &[])
        } else {
            of_cells(&weights.matrix("value.3", [VALUE_HIDDEN, channels * area])?, area, conv.width)
        };
        let value = Value::read(shape, spec, weights, "value.5", Some((conv, spec.has_any_size)), hidden)?;
        Ok((Trunk::Tower { factors, stem, blocks }, policy, value))
    }

    fn read_mlp(&mut self, shape: &Shape, spec: Spec, weights: &Weights<'_>) -> Result<(Trunk, Policy, Value), String> {
        let (mut features, mut layers) = (shape.obs_shape[0], Vec::new());
        for layer in 0..spec.depth {
            layers.push(plain(&weights.matrix(&format!("trunk.{}", 2 * layer + 1), [spec.width, features])?));
            features = spec.width;
        }
        self.width = layers.last().map_or(features, |layer| layer.width);
        let policy = Policy::Flat(plain(&weights.matrix("policy.0", [shape.num_actions, features])?));
        let hidden = plain(&weights.matrix("value.0", [VALUE_HIDDEN, features])?);
        let value = Value::read(shape, spec, weights, "value.2", None, hidden)?;
        Ok((Trunk::Mlp(layers), policy, value))
    }

    /// A block's pooling: what it gives goes into what the block's first convolution begins with.
    fn read_pool(&self, name: &str, weights: &Weights<'_>, first: &Matrix) -> Result<(Layer, Layer), String> {
        let (channels, pooled) = (first.outputs(), HEAD * (first.outputs() / 48).max(1));
        let taken = self.layer(&weights.conv(&format!("{name}.taken"), [pooled, channels], 3)?);
        let mean = weights.matrix(&format!("{name}.mean"), [channels, pooled])?;
        let most = weights.matrix(&format!("{name}.most"), [channels, pooled])?;
        let bias: Vec<f32> =
            (0..channels).map(|channel| first.bias[channel] + mean.bias[channel] + most.bias[channel]).collect();
        let stride = taken.width;
        let weight = |output: usize, _, input: usize| {
            let (matrix, channel) = if input < stride { (&mean, input) } else { (&most, input - stride) };
            if channel < pooled { matrix.weight(output, 0, channel) } else { 0.0 }
        };
        let spread = Layer::new(Level::new(), [channels, 2 * stride], vec![0], weight, &bias);
        Ok((taken, spread))
    }

    fn read_policy(&self, shape: &Shape, spec: Spec, weights: &Weights<'_>) -> Result<Policy, String> {
        let (width, area, actions) = (spec.width, shape.area(), shape.num_actions);
        if spec.has_any_size {
            let order = shape.policy_planes.as_deref().unwrap_or_default();
            let planes = 1 + order.iter().flatten().max().copied().unwrap_or_default() / area;
            let beyond = order.iter().filter(|place| place.is_none()).count();
            let first = weights.conv("policy.first", [width; 2], 1)?;
            let taken = self.layer(&weights.conv("policy.taken.0", [HEAD, width], 1)?);
            let norm = weights.norm("policy.taken.2.norm", 2 * HEAD)?;
            let spread = weights.matrix("policy.spread", [width, 3 * HEAD])?;
            let free = match beyond {
                0 => None,
                _ => Some(weights.matrix("policy.free", [beyond, 3 * HEAD])?),
            };
            return Ok(Policy::Conv(Box::new(ConvPolicy {
                spread: of_pooled(&spread, &norm, shape, taken.width, &first.bias),
                free: free.map(|free| of_pooled(&free, &norm, shape, taken.width, &[])),
                taken,
                first: self.layer(&first),
                last: self.layer(&weights.bare("policy.last", [planes, width], 1)?),
                places: order.iter().map(|place| place.map(|place| (place / area, place % area))).collect(),
            })));
        }
        if let Some(cells) = &shape.action_cells {
            let first = self.layer(&weights.conv("policy.0", [width; 2], 1)?);
            let last = self.layer(&weights.bare("policy.2", [actions / cells.len(), width], 1)?);
            return Ok(Policy::ByCell(first, last, cells.clone()));
        }
        let conv = self.layer(&weights.conv("policy.0", [HEAD, width], 1)?);
        let matrix = weights.matrix("policy.3", [actions, HEAD * area])?;
        let layer = of_cells(&matrix, area, conv.width);
        Ok(Policy::Dense(conv, layer))
    }
}

impl Value {
    fn read(
        shape: &Shape,
        spec: Spec,
        weights: &Weights<'_>,
        name: &str,
        head: Option<(Layer, bool)>,
        hidden: Layer,
    ) -> Result<Self, String> {
        let outputs = if spec.three_classes { 3 } else { shape.num_values };
        let last = plain(&weights.matrix(name, [outputs, VALUE_HIDDEN])?);
        let win = spec.three_classes.then(|| (1.0 / (1.0 - 4.0 / 3.0 * shape.value_smoothing)) as f32);
        Ok(Self { head, hidden, last, win })
    }
}

/// A matrix over floats that lie side by side.
fn plain(matrix: &Matrix) -> Layer {
    let weight = |output, _, input| matrix.weight(output, 0, input);
    Layer::new(Level::new(), [matrix.outputs(), matrix.inputs], vec![0], weight, &matrix.bias)
}

/// A matrix over all cells of a head: torch has them channel by channel, they lie here cell by cell.
fn of_cells(matrix: &Matrix, area: usize, stride: usize) -> Layer {
    let channels = matrix.inputs / area;
    let weight = |output: usize, _, input: usize| {
        let (cell, channel) = (input / stride, input % stride);
        if channel < channels { matrix.weight(output, 0, channel * area + cell) } else { 0.0 }
    };
    Layer::new(Level::new(), [matrix.outputs(), area * stride], vec![0], weight, &matrix.bias)
}

/// A matrix over what `Pooled` gives, from the means and maxima alone: its batch norm, and the means times the board's
/// side, are in the weights. `more` is added to the bias.
fn of_pooled(matrix: &Matrix, norm: &[(f64, f64)], shape: &Shape, stride: usize, more: &[f32]) -> Layer {
    let channels = norm.len() / 2;
    let factor = ((shape.area() as f64).sqrt() - SIDE) / SIDES;
    // Of the normed means and maxima.
    let normed = |output: usize, input: usize| {
        let side =
            if input < channels { factor * f64::from(matrix.weight(output, 0, 2 * channels + input)) } else { 0.0 };
        f64::from(matrix.weight(output, 0, input)) + side
    };
    let bias: Vec<f32> = (0..matrix.outputs())
        .map(|output| {
            let shifts: f64 = norm.iter().enumerate().map(|(input, (_, shift))| normed(output, input) * shift).sum();
            (f64::from(matrix.bias[output]) + shifts) as f32 + more.get(output).copied().unwrap_or_default()
        })
        .collect();
    let weight = |output: usize, _, input: usize| {
        let (kind, channel) = (input / stride, input % stride);
        let input = kind * channels + channel;
        if channel < channels { (normed(output, input) * norm[input].0) as f32 } else { 0.0 }
    };
    Layer::new(Level::new(), [matrix.outputs(), 2 * stride], vec![0], weight, &bias)
}

/// What planes are multiplied by, `[C + 3, H, W]`: `plane_factors` of `azpy/learning/network.py`.
fn factors(shape: &Shape) -> Vec<f32> {
    let ([planes, height, columns], area) = (shape.obs_shape, shape.area());
    let mut factors = vec![1.0; (planes + OWN_PLANES) * area];
    for (plane, &divisor) in shape.plane_divisors.iter().flatten().enumerate().take(planes) {
        if divisor == area {
            factors[plane * area..][..area].fill(area as f32 / AREA);
        }
    }
    let near = |place: usize, length: usize| 1.0 / (1 + place.min(length - 1 - place)) as f32;
    for cell in 0..area {
        factors[(planes + 1) * area + cell] = near(cell / columns, height);
        factors[(planes + 2) * area + cell] = near(cell % columns, columns);
    }
    factors
}

/// The mean and the maximum of each channel over the board: `pooled` gets [N, 2, stride].
fn pool(head: &[f32], stride: usize, area: usize, count: usize, pooled: &mut Vec<f32>) {
    let pooled = grown(pooled, count * 2 * stride);
    for (cells, pooled) in head.chunks_exact(area * stride).zip(pooled.chunks_exact_mut(2 * stride)).take(count) {
        let (mean, most) = pooled.split_at_mut(stride);
        mean.fill(0.0);
        most.fill(f32::NEG_INFINITY);
        for cell in cells.chunks_exact(stride) {
            mean.iter_mut().zip(cell).for_each(|(mean, number)| *mean += number);
            most.iter_mut().zip(cell).for_each(|(most, number)| *most = most.max(*number));
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

/// The memory, which has so many floats at least.
fn grown(memory: &mut Vec<f32>, floats: usize) -> &mut [f32] {
    if memory.len() < floats {
        memory.resize(floats, 0.0);
    }
    memory
}

/// FNV-1a (Fowler, Noll, Vo), of 64 bits.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)).max(1)
}
