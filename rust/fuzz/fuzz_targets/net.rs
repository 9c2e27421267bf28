//! A network's shape and weights: bytes are read or refused, and whatever is read answers. The shape comes first, with a
//! zero byte behind it.
#![no_main]

use azpy_net::{Net, Scratch};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|&byte| byte == 0) else { return };
    let Ok(shape) = std::str::from_utf8(&bytes[..end]) else { return };
    if let Ok(net) = Net::read(shape, &bytes[end + 1..]) {
        let observations = vec![0.5; net.obs_shape().iter().product()];
        let (mut logits, mut values) = (vec![0.0; net.num_actions()], vec![0.0; net.num_values()]);
        net.evaluate(&mut Scratch::default(), &observations, 1, &mut logits, &mut values);
    }
});
