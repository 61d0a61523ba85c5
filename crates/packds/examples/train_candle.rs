//! Trains a small network on the CPU with candle. The loader normalizes and flips the images. The last argument is the
//! number of epochs: `cargo run --release --example train_candle -- train.pack 3`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use candle_core::{D, Device, Tensor};
use candle_nn::{Linear, Module, Optimizer, SGD, VarBuilder, VarMap, linear, loss};
use packds::augment::Augment;
use packds::loader::{Batch, Loader};
use packds::plan::Order;

const SIDE: usize = 16;
const CLASSES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("expected the path of a pack of RGB images with up to 10 classes")?;
    let epochs: u32 = args.next().map_or(Ok(3), |n| n.parse())?;
    let loader = Loader::builder(packds::open(path)?)
        .batch(32)
        .order(Order::Window { chunks: None })
        .seed(1)
        .augment(Augment::parse(&format!("resize{SIDE}x{SIDE},flip,norm:0.5/0.25,f32,chw"))?)
        .build()?;
    let weights = VarMap::new();
    let builder = VarBuilder::from_varmap(&weights, candle_core::DType::F32, &Device::Cpu);
    let hidden = linear(3 * SIDE * SIDE, 32, builder.pp("hidden"))?;
    let output = linear(32, CLASSES, builder.pp("output"))?;
    let mut optimizer = SGD::new(weights.all_vars(), 0.05)?;
    for number in 0..epochs {
        let (mut losses, mut right, mut seen) = (0.0, 0, 0);
        for batch in loader.epoch(number)? {
            let (images, labels) = tensors(&batch?)?;
            let scores = forward(&hidden, &output, &images)?;
            let loss = loss::cross_entropy(&scores, &labels)?;
            optimizer.backward_step(&loss)?;
            losses += loss.to_scalar::<f32>()?;
            let guessed = scores.argmax(D::Minus1)?.eq(&labels)?.to_dtype(candle_core::DType::U32)?;
            right += guessed.sum_all()?.to_scalar::<u32>()?;
            seen += labels.elem_count();
        }
        let batches = seen / 32;
        println!("epoch {number}: loss {:.3}, {right} of {seen} correct", losses / batches as f32);
    }
    let stats = loader.stats();
    println!(
        "waited {:.1} ms for batches, trained {:.1} ms",
        stats.consumer_waited.as_secs_f64() * 1e3,
        stats.consumer_busy.as_secs_f64() * 1e3
    );
    Ok(())
}

/// A batch as candle's tensors: images `[batch, 3 * SIDE * SIDE]`, labels `[batch]`.
fn tensors(batch: &Batch) -> Result<(Tensor, Tensor), Box<dyn Error>> {
    let images = batch.elements::<f32>("image")?;
    let labels: Vec<u32> =
        batch.elements::<i32>("label")?.iter().map(|label| u32::try_from(*label)).collect::<Result<_, _>>()?;
    Ok((
        Tensor::from_slice(images, (batch.len(), 3 * SIDE * SIDE), &Device::Cpu)?,
        Tensor::from_vec(labels, batch.len(), &Device::Cpu)?,
    ))
}

fn forward(hidden: &Linear, output: &Linear, images: &Tensor) -> candle_core::Result<Tensor> {
    output.forward(&hidden.forward(images)?.relu()?)
}
