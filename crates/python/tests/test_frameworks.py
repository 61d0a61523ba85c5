"""JAX, Lightning and Accelerate. If one is missing, its tests are skipped. scripts/setup installs all of them."""

import json
import os
import subprocess
import sys
import textwrap
from subprocess import PIPE

import numpy as np
import pytest

import packds
from conftest import free_port, module_or_skip


@pytest.fixture
def jax():
    return module_or_skip("jax", "scripts/setup installs it")


@pytest.fixture
def lightning(torch):
    return module_or_skip("lightning", "scripts/setup installs it")


def test_batches_become_jax_arrays_without_a_copy(numbered, jax):
    from packds.jax import arrays

    for batch in packds.Loader(numbered, batch_size=8):
        shared = arrays(batch)
        for ours, theirs in zip(batch, shared):
            assert isinstance(theirs, jax.Array)
            assert theirs.unsafe_buffer_pointer() == ours.ctypes.data
            np.testing.assert_array_equal(np.asarray(theirs), ours)


def test_jax_arrays_stay_as_they_are(numbered, jax):
    plain = packds.Loader(numbered, batch_size=50, seed=2)
    kept = list(packds.Loader(numbered, batch_size=50, seed=2, output="jax"))
    for (images, labels), (expected, expected_labels) in zip(kept, plain):
        np.testing.assert_array_equal(np.asarray(images), expected)
        np.testing.assert_array_equal(np.asarray(labels), expected_labels)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_jax_takes_every_type_of_images(numbered, jax, dtype):
    images, _ = next(iter(packds.Loader(numbered, batch_size=8, dtype=dtype, order="sequential", output="jax")))
    exact, _ = next(iter(packds.Loader(numbered, batch_size=8, dtype="f32", order="sequential")))
    assert images.dtype == {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}[dtype]
    np.testing.assert_allclose(np.asarray(images, np.float32), exact, atol=1 / 128)


def test_batches_are_divided_among_devices(numbered, jax):
    code = """
        import sys
        import jax, numpy as np, packds
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        from packds.jax import arrays

        sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
        for batch in packds.Loader(sys.argv[1], batch_size=8):
            images, labels = arrays(batch, sharding)
            assert [shard.data.shape[0] for shard in labels.addressable_shards] == [4, 4]
            np.testing.assert_array_equal(np.asarray(images), batch[0])
    """
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", textwrap.dedent(code), numbered]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# The Lightning code of docs/how-to/pytorch.md.
LIGHTNING = """
    import json, pathlib, sys
    import lightning, torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    import packds

    try:
        import torch.distributed._shard.sharded_tensor
    except ValueError:
        # Debian's PyTorch 1.13 cannot import it under Python 3.11; it is for tensors divided among processes.
        lightning.LightningModule._register_sharded_tensor_state_dict_hooks_if_available = lambda self: None

    class Net(lightning.LightningModule):
        def __init__(self, pack):
            super().__init__()
            self.pack, self.seen = pack, []
            self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))

        def train_dataloader(self):
            return packds.Loader(self.pack, 50, seed=3, dtype="f32", output="torch")

        def on_train_epoch_start(self):
            if self.trainer.train_dataloader.epoch != self.current_epoch:
                self.trainer.train_dataloader.set_epoch(self.current_epoch)

        def training_step(self, batch, _):
            images, labels = batch
            self.seen.append(labels.tolist())
            return torch.nn.functional.cross_entropy(self.net(images), labels % 4)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

        def on_train_end(self):
            pathlib.Path(f"seen-{self.global_rank}.json").write_text(json.dumps(self.seen))

    def fit(start=None, callbacks=(), **options):
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
        trainer = lightning.Trainer(callbacks=list(callbacks), **quiet, **options)
        trainer.fit(Net(sys.argv[1]), ckpt_path=start)

    if __name__ == "__main__":
"""


def fitted(folder, pack, code, ranks=1):
    """Runs LIGHTNING followed by this code. Returns the labels of each step of each rank."""
    script = folder / "fit.py"
    script.write_text(textwrap.dedent(LIGHTNING) + textwrap.indent(textwrap.dedent(code), "    "))
    command = [sys.executable, "-W", "ignore", script, pack]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


def epochs(pack, batch_size):
    """The labels of the batches of two epochs."""
    loader = packds.Loader(pack, batch_size, seed=3, rank=None)
    return [labels.tolist() for _ in range(2) for _, labels in loader]


def test_lightning_trains_with_the_loaders_epochs(numbered, tmp_path, lightning):
    [seen] = fitted(tmp_path, numbered, "fit(max_epochs=2, enable_checkpointing=False)")
    assert seen == epochs(numbered, 50)


def test_lightnings_processes_share_the_global_batches(numbered, tmp_path, lightning):
    code = "fit(max_epochs=2, devices=2, strategy='ddp_spawn', enable_checkpointing=False)"
    one, other = fitted(tmp_path, numbered, code, ranks=2)
    assert [mine + yours for mine, yours in zip(one, other)] == epochs(numbered, 100)


@pytest.mark.parametrize("steps", [7, 20])
def test_lightning_goes_on_from_its_checkpoints(numbered, tmp_path, lightning, steps):
    if steps == 20 and lightning.__version__.startswith("2.2."):
        pytest.xfail("Lightning 2.2 repeats the first batch of the epoch after a checkpoint at its end")
    saving = f"ModelCheckpoint('.', filename='a', every_n_train_steps={steps}, save_top_k=1, monitor=None)"
    code = f"""
        fit(max_steps={steps}, callbacks=[{saving}])
        fit("a.ckpt", max_epochs=2, enable_checkpointing=False)
    """
    [seen] = fitted(tmp_path, numbered, code)
    assert seen == epochs(numbered, 50)[steps:]


ACCELERATE = """
    import json, sys
    import torch
    from accelerate import Accelerator
    import packds

    accelerator = Accelerator(cpu=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.01))
    batch_size = 100 // accelerator.num_processes
    loader = packds.Loader(sys.argv[1], batch_size, seed=3, dtype="f32", output="torch", device=accelerator.device)
    accelerator.register_for_checkpointing(loader)
    seen = []

    def train(steps):
        for images, labels in loader:
            accelerator.backward(torch.nn.functional.cross_entropy(net(images), labels % 4))
            optimizer.step()
            optimizer.zero_grad()
            seen.append(accelerator.gather(labels).tolist())
            if len(seen) == steps:
                break

    train(4)
    accelerator.save_state("state")
    train(7)
    del seen[4:]
    accelerator.load_state("state")
    train(None)
    if accelerator.is_main_process:
        print(json.dumps(seen))
    accelerator.end_training()
"""


@pytest.mark.parametrize("world", [1, 2])
def test_accelerate_trains_and_goes_on_with_the_same_global_batches(numbered, tmp_path, torch, world):
    module_or_skip("accelerate", "scripts/setup installs it")
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ACCELERATE), numbered]
    running = []
    for rank in range(world):
        environment = os.environ | (group | {"RANK": str(rank), "LOCAL_RANK": str(rank)} if world > 1 else {})
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True, env=environment))
    said = [process.communicate(timeout=120) for process in running]
    assert all(process.returncode == 0 for process in running), said
    seen = json.loads(said[0][0].splitlines()[-1])
    assert seen == epochs(numbered, 100)[:10]


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32"])
def test_numpy_batches_go_to_other_libraries(numbered, dtype):
    for images, labels in packds.Loader(numbered, 500, dtype=dtype):
        for array in (images, labels):
            assert np.shares_memory(np.from_dlpack(array), array)


def test_numpy_batches_of_bfloat16_go_to_other_libraries_as_bits(numbered):
    module_or_skip("ml_dtypes", "scripts/setup installs it")
    images, _ = next(iter(packds.Loader(numbered, 500, dtype="bf16")))
    with pytest.raises(BufferError):
        images.__dlpack__()
    assert np.shares_memory(np.from_dlpack(images.view(np.uint16)), images)


def test_jax_knows_batches_with_names(numbered, jax):
    from packds.jax import arrays

    for output in ("numpy", "jax"):
        batch = next(iter(packds.Loader(numbered, 8, fields=["image", "label"], output=output)))
        total = jax.jit(lambda batch: batch["image"].sum() + batch["label"].sum())(batch)
        assert int(total) == int(batch["image"].sum()) + int(batch["label"].sum())
        shared = arrays(batch)
        assert isinstance(shared, packds.NamedBatch) and isinstance(shared["label"], jax.Array)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_float_labels_are_float32_in_jax(tmp_path, jax, dtype):
    with packds.write(tmp_path / "a.pack", {"image": "image", "target": dtype}, keep_order=True) as writer:
        for number in range(4):
            writer.add(image=np.zeros((8, 8, 3), np.uint8), target=number / 4)
    [(_, targets)] = packds.Loader(tmp_path / "a.pack", 4, order="sequential", output="jax")
    assert targets.dtype == np.float32 and targets.tolist() == [0, 0.25, 0.5, 0.75]


def test_lists_of_labels_are_float32_in_jax(tmp_path, jax):
    with packds.write(tmp_path / "b.pack", {"image": "image", "labels": "labels"}, keep_order=True) as writer:
        writer.extend(image=np.zeros((4, 8, 8, 3), np.uint8), labels=[[0], [1, 2], [], [2]])
    [(_, labels)] = packds.Loader(tmp_path / "b.pack", 4, order="sequential", output="jax")
    assert labels.dtype == np.float32 and labels.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]
