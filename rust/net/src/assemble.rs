//! From weights by name to layers: which weights a network has, and what of them is computed once, when it is read.
//!
//! Batch norm goes into the weights before it or behind it, and torch's order of numbers becomes that of the layers.

use fearless_simd::Level;

use crate::error::Error;
use crate::layer::Layer;
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

/// The sizes that memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Board {
    pub(crate) height: usize,
    pub(crate) columns: usize,
    /// Planes that the first layer reads.
    pub(crate) planes: usize,
    /// Floats of a cell of the trunk.
    pub(crate) width: usize,
    /// Positions that are answered at a time.
    pub(crate) group: usize,
}

#[derive(Debug)]
pub(crate) enum Trunk {
    Tower {
        /// `[C + 3, H, W]` what planes are multiplied by, with `+conv`.
        factors: Option<Vec<f32>>,
        stem: Layer,
        blocks: Vec<Residual>,
    },
    Mlp(Vec<Layer>),
}

#[derive(Debug)]
pub(crate) struct Residual {
    pub(crate) first: Layer,
    pub(crate) second: Layer,
    /// A convolution, and from what is pooled to what the first layer begins with.
    pub(crate) pool: Option<(Layer, Layer)>,
}

#[derive(Debug)]
pub(crate) enum Policy {
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
pub(crate) struct ConvPolicy {
    pub(crate) taken: Layer,
    pub(crate) spread: Layer,
    pub(crate) first: Layer,
    pub(crate) last: Layer,
    pub(crate) free: Option<Layer>,
    /// For each action its plane and cell; None: the next of `free`.
    pub(crate) places: Vec<Option<(usize, usize)>>,
}

#[derive(Debug)]
pub(crate) struct Value {
    /// A convolution, and whether its channels are pooled. An MLP has none.
    pub(crate) head: Option<(Layer, bool)>,
    pub(crate) hidden: Layer,
    pub(crate) last: Layer,
    /// What a sure win counts, of three classes.
    pub(crate) win: Option<f32>,
}

/// A network's layers.
pub(crate) type Parts = (Board, Trunk, Policy, Value);

/// Makes the layers of a network.
pub(crate) fn assemble(shape: &Shape, spec: Spec, weights: &Weights<'_>) -> Result<Parts, Error> {
    let [planes, height, columns] = shape.obs_shape;
    let planes = planes + if spec.has_any_size { OWN_PLANES } else { 0 };
    let mut board = Board { height, columns, planes, width: 0, group: MOST_IN_GROUP };
    let (trunk, policy, value) = if shape.area() > 1 {
        board.read_tower(shape, spec, weights)?
    } else {
        board.read_mlp(shape, spec, weights)?
    };
    Ok((board, trunk, policy, value))
}

impl Board {
    /// A layer that reads three by three cells, or one cell.
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
    ) -> Result<(Trunk, Policy, Value), Error> {
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

    fn read_mlp(&mut self, shape: &Shape, spec: Spec, weights: &Weights<'_>) -> Result<(Trunk, Policy, Value), Error> {
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
    fn read_pool(&self, name: &str, weights: &Weights<'_>, first: &Matrix) -> Result<(Layer, Layer), Error> {
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

    fn read_policy(&self, shape: &Shape, spec: Spec, weights: &Weights<'_>) -> Result<Policy, Error> {
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
    ) -> Result<Self, Error> {
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
