#!/usr/bin/env python3
"""torchvision's reference training of a ResNet on ImageNet, with packds for data loading.

    python examples/imagenet_resnet.py imagenet --packs packs                         # one GPU, or a CPU
    torchrun --nproc_per_node 8 examples/imagenet_resnet.py imagenet --packs packs    # DistributedDataParallel
    python examples/imagenet_resnet.py photos --packs packs --model resnet18 --steps 5 --batch-size 16   # a quick try

DATA is a folder with train/CLASS/ and val/CLASS/, or with class folders only, which are then also used for testing. The first
run makes the packs: they contain the unchanged files, with an index for faster decoding of random crops.

The features and their names are those of torchvision's references/classification/train.py: SGD with momentum, label smoothing,
a linear warmup followed by a cosine schedule, no weight decay for norms, mixup and cutmix (--mix), policies (--policy), random
erasing (--erase), an average of the weights (--ema). The two loaders in `loaders` replace its data code (ImageFolder, transforms,
samplers, collate functions, set_epoch).

GPUs compute in bfloat16. Needs PyTorch, and torchvision for the nets.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torchvision
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

import packds

SHOWN_EVERY = 50  # steps


class Group:
    """The training processes: one, or those of torchrun."""

    def __init__(self, device: str | None) -> None:
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.on_gpu = kind == "cuda"
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if self.on_gpu else torch.device("cpu")
        if self.on_gpu:
            torch.cuda.set_device(self.device)
        if self.world > 1:
            dist.init_process_group("nccl" if self.on_gpu else "gloo")

    def say(self, text: str) -> None:
        if self.rank == 0:
            print(text, flush=True)

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier()

    def sum(self, numbers: Tensor) -> Tensor:
        if self.world > 1:
            dist.all_reduce(numbers)
        return numbers

    def close(self) -> None:
        if self.world > 1:
            dist.destroy_process_group()


# Data: everything that differs from the reference.


def make_packs(options: argparse.Namespace, group: Group) -> tuple[Path, Path]:
    """The packs for training and testing. The first process makes missing packs."""
    folder = options.packs
    has_splits = (options.data / "train").is_dir()
    paths = [folder / f"{split}.pack" for split in ("train", "val")] if has_splits else [folder / "all.pack"] * 2
    if group.rank == 0 and not all(path.exists() for path in paths):
        folder.mkdir(parents=True, exist_ok=True)
        for split, path in zip(("train", "val"), dict.fromkeys(paths)):
            source = options.data / split if has_splits else options.data
            packds.convert(source, path, mode="encoded", seekable=True, force=True)
    group.wait()
    return paths[0], paths[1]


def loaders(options: argparse.Namespace, group: Group) -> tuple[packds.Loader, packds.Loader]:
    """Training and test batches of this process, on its device. The rank comes from torch.distributed."""
    train, val = make_packs(options, group)
    common: dict[str, Any] = {"normalize": "imagenet", "layout": "channels_last", "output": "torch", "device": group.device}
    common |= {"dtype": "bf16" if group.on_gpu else "f32", "threads": options.threads}
    words = [f"rrc{options.train_size}", "flip", options.policy, f"erase:{options.erase}" if options.erase else None]
    augment = [word for word in (*words, *(("mixup:0.2", "cutmix:1") if options.mix else ())) if word]
    middle = f"resize{options.resize_size},center{options.val_size}"
    return (
        packds.Loader(train, options.batch_size, seed=options.seed, augment=augment, **common),
        packds.Loader(val, options.batch_size, order="sequential", drop_last=False, augment=middle, **common),
    )


# The recipe.


def decayed(net: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Groups of weights: norms are not decayed."""
    norms = {id(weight) for module in net.modules() if isinstance(module, nn.BatchNorm2d) for weight in module.parameters()}
    weights = list(net.parameters())
    return [
        {"params": [weight for weight in weights if id(weight) not in norms], "weight_decay": decay},
        {"params": [weight for weight in weights if id(weight) in norms], "weight_decay": 0.0},
    ]


def schedule(optimizer: torch.optim.Optimizer, steps: int, warmup: int) -> torch.optim.lr_scheduler.LRScheduler:
    """The learning rate: linear from a hundredth over `warmup` steps, then half a cosine to 0."""

    def rate(step: int) -> float:
        if step < warmup:
            return 0.01 + 0.99 * step / warmup
        return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


class Trainer:
    def __init__(self, options: argparse.Namespace, group: Group) -> None:
        self.options, self.group = options, group
        self.train_loader, self.val_loader = loaders(options, group)
        self.steps = options.steps or options.epochs * len(self.train_loader)
        torch.manual_seed(options.seed)
        net = torchvision.models.get_model(options.model, num_classes=len(self.train_loader.dataset.classes))
        self.plain = net.to(group.device, memory_format=torch.channels_last)
        self.net: nn.Module = DistributedDataParallel(self.plain) if group.world > 1 else self.plain
        self.average = self.averaged() if options.ema else None
        groups = decayed(self.plain, options.weight_decay)
        self.optimizer = torch.optim.SGD(groups, options.lr * options.batch_size * group.world / 1024, momentum=0.9)
        self.schedule = schedule(self.optimizer, self.steps, self.steps * options.warmup_epochs // options.epochs)
        self.done = 0

    def averaged(self) -> AveragedModel:
        # As in the reference: a decay for this batch size, and averaged norm statistics.
        alpha = min(1.0, 1e-5 * self.group.world * self.options.batch_size * self.options.epochs)

        def average(mean: Tensor, weight: Tensor, _: Tensor | int) -> Tensor:
            return mean.lerp(weight, alpha) if mean.is_floating_point() else weight

        return AveragedModel(self.plain, self.group.device, avg_fn=average, use_buffers=True)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.group.device.type, torch.bfloat16, enabled=self.group.on_gpu)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        with self.autocast():
            # Labels are class ids, or soft labels with --mix.
            loss = cross_entropy(self.net(images), labels, label_smoothing=self.options.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        if self.average is not None:
            self.average.update_parameters(self.plain)
        self.done += 1
        return loss.detach()

    def epoch(self) -> None:
        """Trains until the loader's epoch or the number of steps is complete."""
        number, began, n_images = self.train_loader.epoch, time.perf_counter(), 0
        self.net.train()
        for images, labels in itertools.islice(self.train_loader, self.steps - self.done):
            loss = self.step(images, labels)
            n_images += len(images) * self.group.world
            if self.done % SHOWN_EVERY == 0 or self.done == self.steps:
                rate = n_images / (time.perf_counter() - began)
                self.group.say(f"epoch {number}, step {self.done} of {self.steps}: loss {loss:.3f}, {rate:,.0f} images/s")

    @torch.no_grad()
    def accuracy(self) -> tuple[float, float]:
        """Top-1 and top-5 accuracy on the test images."""
        net = (self.plain if self.average is None else self.average).eval()
        counts = torch.zeros(3, device=self.group.device, dtype=torch.float64)
        for images, labels in self.test_batches():
            with self.autocast():
                best = net(images).topk(min(5, len(self.val_loader.dataset.classes))).indices
            hits = best == labels[:, None]
            counts += torch.stack([hits[:, 0].sum(), hits.sum(), torch.tensor(len(labels), device=hits.device)])
        first, five, total = self.group.sum(counts).tolist()
        return first / total, five / total

    def test_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """This process's share, without the padding of the last batch, so that each image counts once."""
        self.val_loader.set_epoch(0)
        for batch in self.val_loader.batches():
            n = len(batch) - batch.padding
            if n:
                yield batch["image"][:n], batch["label"][:n]

    # Saving and resuming, even in the middle of an epoch.

    def state(self) -> dict[str, Any]:
        parts = {"net": self.plain, "optimizer": self.optimizer, "schedule": self.schedule}
        parts |= {"loader": self.train_loader} | ({} if self.average is None else {"average": self.average})
        return parts

    def save(self, path: Path) -> None:
        if self.group.rank == 0:
            states = {name: part.state_dict() for name, part in self.state().items()}
            torch.save(states | {"done": self.done}, path.with_suffix(".saving"))
            path.with_suffix(".saving").replace(path)

    def load(self, path: Path) -> None:
        saved = torch.load(path, map_location=self.group.device)
        for name, part in self.state().items():
            part.load_state_dict(saved[name])
        self.done = saved["done"]

    def run(self) -> None:
        checkpoint: Path | None = self.options.checkpoint
        if checkpoint is not None and checkpoint.exists():
            self.load(checkpoint)
            self.group.say(f"resuming after step {self.done}")
        while self.done < self.steps:
            self.epoch()
            first, five = self.accuracy()
            self.group.say(f"after step {self.done}: {100 * first:.2f} % correct, {100 * five:.2f} % among the best five")
            if checkpoint is not None:
                self.save(checkpoint)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("data", type=Path, metavar="DATA")
    add("--packs", type=Path, default=Path("packs"), metavar="FOLDER", help="folder for the packs [packs]")
    add("--model", default="resnet50", help="a torchvision model [resnet50]")
    add("--epochs", type=int, default=90, help="[90]")
    add("--steps", type=int, help="steps instead of epochs; the schedule is scaled to them")
    add("--batch-size", type=int, default=128, help="batch size per process [128]")
    add("--lr", type=float, default=0.5, help="peak learning rate, for 1024 images per step [0.5]")
    add("--warmup-epochs", type=int, default=5, help="[5]")
    add("--weight-decay", type=float, default=5e-5, help="[5e-5]")
    add("--label-smoothing", type=float, default=0.1, help="[0.1]")
    add("--mix", action="store_true", help="mixup and cutmix")
    add("--policy", metavar="WORD", help="trivialaugment, randaugment, autoaugment: the reference's --auto-augment")
    add("--erase", type=float, default=0.0, metavar="P", help="probability of random erasing [0]")
    add("--ema", action="store_true", help="test with averaged weights")
    add("--train-size", type=int, default=176, help="side of training images [176]")
    add("--resize-size", type=int, default=232, help="short side of test images [232]")
    add("--val-size", type=int, default=224, help="side of test images [224]")
    add("--threads", type=int, default=max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", 1))))
    add("--seed", type=int, default=0, help="[0]")
    add("--checkpoint", type=Path, metavar="FILE", help="checkpoint, written after each epoch and resumed if it exists")
    add("--device", choices=("cuda", "cpu"), help="[cuda if available, else cpu]")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is not a folder")
    return options


def main() -> None:
    options = arguments()
    group = Group(options.device)
    try:
        Trainer(options, group).run()
    finally:
        group.close()


if __name__ == "__main__":
    main()
