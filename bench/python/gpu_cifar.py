"""Time for a ResNet-9 to reach 93.5 % on CIFAR-10 on a GPU, fed by packds, by tensors on the GPU, and by DataLoader.

    python bench/python/gpu_cifar.py DATA [--target 93.5] [--seeds 0,1] [--workers 0,4,16] [--epochs 24] [--steps N]
                                     [--batch-size 512] [--device cuda]

DATA is the data folder of examples/cifar10_resnet9.py, which does the training, in a separate process per run.
DataLoader runs with the number of workers that gives the most images per second in a second epoch. The time includes
creating the loader and training, but not making packs or testing. Prints a line per run, then the mean time of each
loader and its ratio to the mean time of the tensors.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "cifar10_resnet9.py"
TENSORS = "tensors on the GPU"


def parsed() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, metavar="DATA")
    parser.add_argument("--target", type=float, default=93.5)
    parser.add_argument("--seeds", type=numbers, default=[0, 1])
    parser.add_argument("--workers", type=numbers, default=[0, 4, 16])
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--device", default="cuda", help="also `cpu`, to test this program")
    options = parser.parse_args()
    if options.device.startswith("cuda"):
        import torch

        if not torch.cuda.is_available():
            parser.error(f"--device {options.device}: PyTorch {torch.__version__} finds no GPU")
    return options


def trained(options: argparse.Namespace, folder: pathlib.Path, loader: str, *more: object) -> dict:
    """The example's output for a run."""
    report = folder / "report.json"
    command = [sys.executable, EXAMPLE, options.data, "--packs", folder, "--loaders", loader, "--json", report]
    command += ["--device", options.device, "--batch-size", options.batch_size, *more]
    if options.steps:
        command += ["--steps", options.steps]
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"gpu_cifar: error: {' '.join(map(str, command))}\n{ended.stderr}")
    return json.loads(report.read_text())["runs"][0]


def best_workers(options: argparse.Namespace, folder: pathlib.Path) -> int:
    """The number of DataLoader workers with the most images per second. Prints each rate."""
    rates = {}
    for workers in options.workers:
        run = trained(options, folder, "dataloader", "--workers", workers, "--epochs", 2)
        rates[workers] = run["epochs"][-1]["images_per_s"]
        print(f"DataLoader, {workers} workers: {rates[workers]:,.0f} images/s in epoch {len(run['epochs']) - 1}", flush=True)
    return max(rates, key=rates.__getitem__)


def main() -> None:
    options = parsed()
    print(f"ResNet-9 on CIFAR-10 to {options.target} %, batch {options.batch_size}, {options.device}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        workers = best_workers(options, folder)
        ways = {
            "packds": ["packds"],
            TENSORS: ["memory"],
            f"DataLoader, {workers} workers": ["dataloader", "--workers", workers],
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        print(f"\n{'':<28}{'seed':>6}{'epochs':>8}{'accuracy':>9}{'start, s':>10}{'all, s':>9}")
        for seed in options.seeds:
            for name, way in ways.items():
                run = trained(options, folder, *way, "--seed", seed, "--epochs", options.epochs, "--until", options.target)
                took = run["startup"] + run["seconds"]
                if 100 * run["accuracy"] >= options.target:
                    seconds[name].append(took)
                right = f"{100 * run['accuracy']:.2f}%"
                row = f"{name:<28}{seed:>6}{len(run['epochs']):>8}{right:>9}{run['startup']:>10.1f}{took:>9.1f}"
                print(row, flush=True)
    print()
    for name, reached in seconds.items():
        if len(reached) < len(options.seeds):
            print(f"{name}: {options.target} % was reached by {len(reached)} of {len(options.seeds)} seeds")
            continue
        mean, of_tensors = statistics.mean(reached), seconds[TENSORS]
        ratio = f", {mean / statistics.mean(of_tensors):.2f} of {TENSORS}" if len(of_tensors) == len(reached) else ""
        print(f"{name}: {mean:.1f} s{ratio}")


if __name__ == "__main__":
    main()
