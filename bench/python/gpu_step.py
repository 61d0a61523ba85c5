"""What loading costs a training step on a GPU: ResNet-18 fed from one batch that stays there, and by loaders.

    python bench/python/gpu_step.py [--images 4096] [--batch 256] [--steps 60] [--device cuda:0] [--side 224]

The images are noise of 224 x 224 pixels in a pack of a temporary folder, in the page cache. Prints one line for each way of
feeding: milliseconds a step (median) and images a second, and how much longer a step is than with the cached batch.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np
import torch

import packds


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--device", default="cuda:0")
    return parser.parse_args()


def written(path: pathlib.Path, images: int, side: int) -> None:
    """A pack of noise."""
    noise = np.random.default_rng(0).integers(0, 256, (side + 64, side + 64, 3), np.uint8)
    with packds.write(path, {"image": "image", "label": "label"}) as writer:
        for number in range(images):
            y, x = number % 64, number // 64 % 64
            writer.add(image=np.ascontiguousarray(noise[y : y + side, x : x + side]), label=number % 1000)


def repeated(loader):
    """The batches of epoch after epoch."""
    while True:
        yield from loader


def step_ms(step, batches, n_steps: int, settle) -> float:
    """The median time of a step, the first fifth left out. Each is waited for in groups of 5, as training does now and then."""
    times = []
    for number in range(n_steps):
        if number % 5 == 0:
            settle()
            started = time.perf_counter()
        step(*next(batches))
        if number % 5 == 4:
            settle()
            times.append((time.perf_counter() - started) * 200)
    return statistics.median(times[len(times) // 5 :])


def main() -> None:
    options = parsed()
    is_gpu = options.device.startswith("cuda")
    where = torch.device(options.device if is_gpu else "cpu")
    if is_gpu:
        import torchvision

        model = torchvision.models.resnet18(num_classes=1000)
    else:
        # So that the program can be tested on a simulated GPU.
        layers = [torch.nn.Conv2d(3, 8, 3, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 1000)]
        model = torch.nn.Sequential(*layers)
    model = model.to(where, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(images, labels) -> None:
        with torch.autocast(where.type, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def settle() -> None:
        if is_gpu:
            torch.cuda.synchronize(where)

    common = {
        "batch_size": options.batch, "augment": "flip", "normalize": "imagenet", "dtype": "bf16",
        "layout": "channels_last", "output": "torch",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "noise.pack"
        written(path, options.images, options.side)
        cached = next(iter(packds.Loader(path, device=options.device, **common)))
        tiers = {tier: packds.Loader(path, device=options.device, tier=tier, **common) for tier in ("resident", "host")}
        on_host = packds.Loader(path, **common)
        ways = {
            "one batch that stays on the GPU": repeated([cached]),
            **{f"packds, tier {tier}": repeated(loader) for tier, loader in tiers.items()},
            "packds on the host, then .to(device)": ((x.to(where), y.to(where)) for x, y in repeated(on_host)),
        }
        first = None
        for name, batches in ways.items():
            took = step_ms(step, batches, options.steps, settle)
            first = first or took
            print(f"{name:<40}{took:9.2f} ms{1000 * options.batch / took:12.0f} images/s{100 * (took / first - 1):+8.1f} %")


main()
