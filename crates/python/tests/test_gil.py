"""Other Python threads run while packds works."""

import contextlib
import threading
import time

import packds


class Ticks:
    """Counts how often a Python thread runs."""

    def __enter__(self):
        self.n, self._stop = 0, False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._stop:
            self.n += 1
            time.sleep(0.001)

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()


def test_a_conversion_lets_other_threads_run(photos, tmp_path):
    with Ticks() as ticks:
        started = time.monotonic()
        packds.convert(photos, tmp_path / "a.pack", resize="1500x1500", jobs=1, progress=False)
        seconds = time.monotonic() - started
    # If the conversion held the GIL, the other thread would run only at the beginning and end.
    assert ticks.n > seconds * 20


def test_waiting_for_a_batch_lets_other_threads_run(file_pack):
    with Ticks() as ticks:
        started = time.monotonic()
        for _ in packds.Loader(file_pack, batch_size=8, augment="rrc500,blur:21/2-2/1", threads=1):
            pass
        seconds = time.monotonic() - started
    assert ticks.n > seconds * 20


def test_asking_where_a_loader_is_lets_other_threads_run(file_pack):
    loader = packds.Loader(file_pack, batch_size=24, augment="rrc1500,blur:51/9-9/1", threads=1, slots=2)
    iteration = iter(loader)

    def wait():
        with contextlib.suppress(packds.OptionError):
            next(iteration)

    waiting = threading.Thread(target=wait)
    waiting.start()
    with Ticks() as ticks:
        started = time.monotonic()
        while waiting.is_alive() and time.monotonic() - started < 1:
            loader.state_dict()
        seconds = time.monotonic() - started
    loader.close()
    waiting.join()
    # If `state_dict` blocked with the GIL held, the other thread would get the GIL only every 50 ms (the switch interval).
    assert ticks.n > seconds * 60
