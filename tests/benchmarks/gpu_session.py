"""A session on a rented GPU that ends in time: the acceptance, then training, which the next session resumes.

    python -m tests.benchmarks.gpu_session pack configs/longer.yaml runs/carry model=checkpoints/default
    python -m tests.benchmarks.gpu_session run results --carry runs/carry/first runs/carry/second

`pack` collects what the contrastive stage with `imitation` reads. The folder `first` has the teacher in 8
bits, the small data sets and the configuration; `second` has the texts, as many as fit into `--limit`. `run`
copies both into `--work`, where a later session finds them. It runs the acceptance (`tests.benchmarks.gpu`),
measures the speed of training, and trains until shortly before the end of `--seconds`. A later `run` resumes
there. In a new place, training starts from the model among the results of an earlier session, if their folder
is one of `--carry`.

The results, in a new or empty folder, are files of at most 15 MiB: the figures `gpu.json`, the log of the
training, `session.json`, and the model in float16: `mkdir model && cat model.tar.* | tar x -C model`.
"""

import argparse
import ctypes
import io
import json
import lzma
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.numpy import load_file, save_file

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import build
from simllm.model import saved_model
from train.contrastive.config import ContrastiveConfig
from train.corpus.sources import match_files
from train.distill import texts as training_texts
from train.runtime import config as training_config
from train.runtime.checkpoint import has_saved_states
from train.runtime.distributed import ReportedError, World
from train.runtime.log import read_log
from train.runtime.signals import STOPPED_BY_SIGNAL

ROOT = Path(__file__).parents[2]
CONFIG, DATA, TEACHER, TEXTS = "session.yaml", "data.tar.xz", "teacher.npz", "texts.txt.xz"
MODEL = "model.tar"  # and the number of a part
SUMS = "SHA256SUMS"  # of what is carried
CARRIED = "carried.txt"  # the hashes of what has been unpacked
SCHEDULE = "updates.json"  # the updates of the training, as overrides
PART = 15 << 20  # bytes
SAVING = 40  # seconds for the last state and the results
TRIAL = 40  # updates that measure the speed of training; a quarter of them in a dry run
EVALUATIONS = 4  # of the training


class Packer:
    """Copies the files that a configuration names, and tells their names in the session."""

    def __init__(self, folder):
        self.folder, self.places = folder, {}
        folder.mkdir()

    def __call__(self, pattern):
        """Copy the files that match a pattern; return the pattern that matches the copies."""
        if (ROOT / pattern).is_relative_to(ROOT / "train"):
            return pattern  # comes with the checkout
        if pattern not in self.places:
            place = self.places[pattern] = self.folder / f"{len(self.places)}"
            place.mkdir()
            files = match_files(pattern)
            if not files or not all(file.is_file() for file in files):
                raise InputError(f"{pattern}: a session carries files, and no folders")
            for number, file in enumerate(files):  # equal names may come from several folders
                shutil.copyfile(file, place / f"{number:04}-{file.name}")
        names = [file.name for file in self.places[pattern].iterdir()]
        return f"${{data}}/{self.places[pattern].name}/{names[0] if len(names) == 1 else '*'}"


def pack(config, out, limit, overrides):
    """Collect what a session needs in two folders, each small enough for a transfer."""
    values = training_config.read_values(config, overrides)
    settings = build(ContrastiveConfig, values, str(config))
    if not settings.imitation or len(settings.imitation.teachers) != 1:
        raise InputError(f"{config}: expected `imitation` with one teacher")
    if settings.meaning or settings.language_model:
        raise InputError(f"{config}: a session has no `meaning` and no `language_model`")
    if limit < 3:
        raise InputError(f"--limit {limit}: expected at least 3 MiB")
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{out}: exists; name a new folder") from None
    try:
        _pack(settings, values, out, limit)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)  # made above
        raise


def _pack(settings, values, out, limit):
    first, second = out / "first", out / "second"
    for folder in (first, second):
        folder.mkdir(parents=True)
    copy = Packer(out / "data")
    for source in [*values.get("positives", []), *filter(None, [values.get("overlap")])]:
        source["source"] = copy(source["source"])
    for source in values.get("rated", []):
        source["sources"] = [copy(pattern) for pattern in source["sources"]]
    for key in ("exclude", "dev"):
        values[key] = [copy(pattern) for pattern in values.get(key, [])]
    for key in {"dev_comments", "dev_items"} & values.keys():
        values[key] = copy(values[key])
    with tarfile.open(first / DATA, "w:xz", preset=9) as archive:
        archive.add(copy.folder, "data")
    shutil.rmtree(copy.folder)
    # Only what is committed travels with the checkout, not `runs`.
    if not (ROOT / settings.model).resolve().is_relative_to(ROOT / "checkpoints"):
        write_parts(Path(settings.model), second)
    stored = training_texts.collect_texts(
        settings.imitation, out, World(), exclude=settings.exclude,
        hold_out_contrast=settings.hold_out_contrast, seed=settings.seed,
    )  # fmt: skip
    texts, count = compress(stored.flat, limit << 20)
    (second / TEXTS).write_bytes(texts)
    shutil.rmtree(out / "texts")
    values["imitation"] |= {"texts": [{"source": "${data}/texts.txt", "max_words": 10_000}]}
    pack_teacher(Path(settings.imitation.teachers[0]), first / TEACHER)
    (first / CONFIG).write_text(yaml.safe_dump(values, sort_keys=False))
    for folder in (first, second):
        write_sums(folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{folder}: {size / 2**20:.1f} MiB")
    print(f"{count:,} of {len(stored.flat):,} texts")


def write_parts(model, folder):
    """Write a model folder as a tar archive, cut into parts."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(model, ".")
    data = whole.getvalue()
    for number, start in enumerate(range(0, len(data), PART)):
        (folder / f"{MODEL}.{number:02}").write_bytes(data[start : start + PART])


def compress(texts, limit):
    """Compress texts, one a line, up to `limit` bytes; return the bytes, and how many texts they are."""
    compressor, parts, size = lzma.LZMACompressor(preset=9), [], 0
    count = 0
    for start in range(0, len(texts), 10_000):
        lines = texts[start : start + 10_000]
        parts.append(compressor.compress("".join(f"{text}\n" for text in lines).encode()))
        size += len(parts[-1])
        count += len(lines)
        if size > limit - (2 << 20):  # what the compressor has not given out yet
            break
    return b"".join([*parts, compressor.flush()]), count


def pack_teacher(folder, file):
    """Store a teacher in a file: its matrices in 8 bits with a scale for each row, the rest in float16."""
    arrays = {}
    for source in sorted(folder.rglob("*")):
        if source.suffix == ".json" and source.is_file():
            arrays[f"file/{source.relative_to(folder)}"] = np.frombuffer(source.read_bytes(), np.uint8)
    for name, values in load_file(folder / "model.safetensors").items():
        if values.ndim == 2 and values.dtype.kind == "f":
            scale = np.abs(values).max(1, keepdims=True).astype(np.float32) / 127
            scale[scale == 0] = 1
            arrays[f"scale/{name}"] = scale
            arrays[f"int8/{name}"] = np.round(values / scale).astype(np.int8)
        elif values.dtype.kind == "f":
            arrays[f"float16/{name}"] = values.astype(np.float16)
    np.savez_compressed(file, **arrays)


def unpack_teacher(file, folder):
    """Write the folder of a stored teacher, with weights in float16."""
    folder.mkdir()
    weights = {}
    with np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            kind, _, name = key.partition("/")
            if kind == "file":
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(arrays[key].tobytes())
            elif kind == "int8":
                weights[name] = (arrays[key] * arrays[f"scale/{name}"]).astype(np.float16)
            elif kind == "float16":
                weights[name] = arrays[key]
    save_file(weights, folder / "model.safetensors")


def _carried_files(folder):
    """Return the files in a folder that are for a session, by their names."""
    known = (CONFIG, DATA, TEACHER, TEXTS)
    return {
        file.name: file
        for file in sorted(folder.iterdir())
        if file.name in known or file.name.startswith(f"{MODEL}.")
    }


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before any fork


def _stop_with_parent():
    """Let a new process stop when the session is killed: a rented GPU must not stay busy."""
    if _LIBC:
        _LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def write_sums(folder):
    """Store the hashes of the files in a folder that are for a session."""
    sums = {name: output_file.sha256_of(file) for name, file in _carried_files(folder).items()}
    (folder / SUMS).write_text("".join(f"{hashed}  {name}\n" for name, hashed in sums.items()))


def _check_sums(folder):
    """Check that the files in a folder are those that were carried."""
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder}: no {SUMS}; expected a folder that `pack` or an earlier session has made")
    for line in (folder / SUMS).read_text().splitlines():
        hashed, _, name = line.partition("  ")
        if not (folder / name).is_file() or output_file.sha256_of(folder / name) != hashed:
            raise InputError(f"{folder / name}: missing or damaged; carry it again")


class Session:
    """A session: where it works, where its results go, and when it must have ended."""

    def __init__(self, out, carry, work, seconds, cpu):
        if not cpu and not torch.cuda.is_available():
            raise InputError("no GPU is here; for a dry run, use --device cpu")
        if seconds < SAVING + 20:
            raise InputError(f"--seconds {seconds:g}: expected at least {SAVING + 20}")
        for folder in carry:
            _check_sums(folder)
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            raise InputError(f"{out}: exists; name a new or empty folder for the results")
        self.out, self.work, self.cpu = out, work, cpu
        self.started, self.seconds = time.monotonic(), seconds
        self.asked_to_stop = False
        self.facts = {"seconds": seconds}
        OutputFolder(work, "a session on a GPU").own()
        out.mkdir(parents=True, exist_ok=True)
        self._copy(carry)
        signal.signal(signal.SIGTERM, self._stop)

    def _copy(self, carry):
        """Copy what is carried, unless it differs from that with which the training here has begun."""
        files = _carried_files(self.work)
        for folder in carry:
            found = _carried_files(folder)
            if any(name.startswith(MODEL) for name in found):  # it replaces the model of an earlier folder
                files = {name: file for name, file in files.items() if not name.startswith(MODEL)}
            files |= found
        names = sorted(files.keys() - {CONFIG})
        self.carried = " ".join(f"{name}:{output_file.sha256_of(files[name])}" for name in names)
        if not self.is_unpacked() and has_saved_states(self.work / "run" / "states"):
            raise InputError(
                f"{self.work}: its training began with other data, teacher or model than are carried; "
                "name another folder with --work"
            )
        for name in _carried_files(self.work).keys() - files.keys():
            (self.work / name).unlink()
        for name, file in files.items():
            if file != self.work / name:
                shutil.copyfile(file, self.work / name)

    def is_unpacked(self):
        """Return whether what is carried has been unpacked."""
        file = self.work / "data" / CARRIED
        return file.is_file() and file.read_text() == self.carried

    def _stop(self, number, frame):
        self.asked_to_stop = True

    @property
    def left(self):
        """Seconds until the end of the session."""
        return 0.0 if self.asked_to_stop else self.started + self.seconds - time.monotonic()

    def call(self, module, *arguments, until, log, environment=()):
        """Run a module until `until` seconds before the end of the session; return its exit status."""
        command = [sys.executable, "-m", module, *map(str, arguments)]
        variables = os.environ | dict(environment) | ({"CUDA_VISIBLE_DEVICES": ""} if self.cpu else {})
        with (self.out / log).open("a") as file:
            print("$", shlex.join(command), file=file, flush=True)
            process = subprocess.Popen(
                command, cwd=ROOT, env=variables, stdout=file, stderr=file, preexec_fn=_stop_with_parent
            )
            while process.poll() is None and self.left > until:
                time.sleep(0.1)
            if process.poll() is None:
                process.terminate()
            try:
                status = process.wait(max(SAVING / 2, min(self.left, until) - 10))
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        if status == -signal.SIGTERM:  # it had not yet begun, or was just ending
            status = STOPPED_BY_SIGNAL
        if status not in (0, STOPPED_BY_SIGNAL):
            print(f"{module}: status {status}; the last lines of {log}:", file=sys.stderr)
            print(*(self.out / log).read_text().splitlines()[-5:], sep="\n", file=sys.stderr)
        return status

    def accept(self, limit, parts):
        """Run the acceptance for at most `limit` seconds."""
        limit = max(0, min(limit, self.left - SAVING))
        options = ["--cpu", "--seconds", "0.1"] if self.cpu else []
        options += ["--parts", *parts] if parts else []
        options += ["--limit", str(limit), "--json", str(self.out / "gpu.json")]
        until = self.left - limit - 10
        self.facts["acceptance"] = self.call("tests.benchmarks.gpu", *options, until=until, log="gpu.log")

    def train(self, training_seconds, overrides):
        """Train, or resume the training, until shortly before the end."""
        lacking = [name for name in (CONFIG, DATA, TEACHER, TEXTS) if not (self.work / name).is_file()]
        if lacking:
            print(f"no training: {', '.join(lacking)} not carried")
            return
        if not self.is_unpacked():
            self.unpack()
        values = [*overrides, f"out={self.work / 'run'}", f"imitation.teachers=[{self.work / 'teacher'}]"]
        if (self.work / "start").is_dir():
            values.append(f"model={self.work / 'start'}")
        chosen = self.work / SCHEDULE
        if not chosen.is_file():
            self._choose_updates(chosen, training_seconds, values)
        if chosen.is_file():
            schedule = json.loads(chosen.read_text())
            self.facts["training"] = self._call_training([*values, *schedule])
            done = lines[-1]["update"] if (lines := self._log()) else 0
            updates = schedule[0].partition("=")[2]
            print(f"last evaluation after update {done}; the training has {updates} updates")
            return
        self._forget_trial()
        if self.facts["training"] in (0, STOPPED_BY_SIGNAL):
            print("no training: the time was too short to measure its speed")

    def unpack(self):
        """Unpack what was carried."""
        part = self.work / "unpacking"
        for name in ("unpacking", "data", "teacher", "start"):
            shutil.rmtree(self.work / name, ignore_errors=True)
        (self.work / SCHEDULE).unlink(missing_ok=True)
        part.mkdir()
        with tarfile.open(self.work / DATA) as archive:
            archive.extractall(part, filter="data")
        (part / "data" / "texts.txt").write_bytes(lzma.decompress((self.work / TEXTS).read_bytes()))
        unpack_teacher(self.work / TEACHER, self.work / "teacher")
        if parts := sorted(self.work.glob(f"{MODEL}.*")):
            whole = io.BytesIO(b"".join(file.read_bytes() for file in parts))
            with tarfile.open(fileobj=whole) as archive:
                archive.extractall(self.work / "start", filter="data")
        (part / "data" / CARRIED).write_text(self.carried)
        (part / "data").rename(self.work / "data")  # at the end: the sign that all is there

    def _call_training(self, values):
        data = [("SIMLLM_DATA", str(self.work / "data"))]
        arguments = (self.work / CONFIG, *values)
        return self.call("train.contrastive", *arguments, until=SAVING, log="train.log", environment=data)

    def _choose_updates(self, file, training_seconds, values):
        """Measure the speed in a few updates, and store in a file how many fit into the time."""
        every = (TRIAL // 4 if self.cpu else TRIAL) // 2
        self._forget_trial()
        trial = [f"updates={2 * every}", "warmup_updates=2", f"evaluate_every={every}"]
        began = time.time()
        self.facts["training"] = self._call_training([*values, *trial])
        lines = self._log()
        if self.facts["training"] == 0 and self.left > SAVING:
            seconds = (lines[-1]["seconds"] - lines[-2]["seconds"]) / every  # the first updates warm up
            # The training prepares itself and evaluates like the trial, but finds texts and embeddings.
            stored = [file.stat().st_mtime for file in self.work.glob("run/t*/**/*")]
            beside = time.time() - max(began, *stored) - lines[-1]["seconds"]
            available = (training_seconds or self.left - SAVING) - beside
            updates = max(10, int(0.85 * available / max(seconds, 1e-3)))
            self.facts |= {"seconds_per_update": round(seconds, 4), "seconds_beside": round(beside, 1)}
            chosen = {
                "updates": updates,
                "warmup_updates": updates // 20,
                "evaluate_every": -(-updates // EVALUATIONS),
            }
            self._forget_trial()
            output_file.write(file, json.dumps([f"{key}={value}" for key, value in chosen.items()]))

    def _forget_trial(self):
        """Remove the model and the states of the trial, but not the prepared texts and embeddings."""
        run = self.work / "run"
        (run / "log.jsonl").unlink(missing_ok=True)
        for name in ("states", "model"):
            shutil.rmtree(run / name, ignore_errors=True)

    def _log(self):
        return [json.loads(line) for _, line in read_log(self.work / "run" / "log.jsonl")[0]]

    def export(self):
        """Write the results."""
        run = self.work / "run"
        if lines := self._log():
            shutil.copyfile(run / "log.jsonl", self.out / "log.jsonl")
            self.facts["last"] = lines[-1]
            self.facts["can_resume"] = has_saved_states(run / "states")
        if (run / "model").is_dir():
            model, small = saved_model.load(run / "model"), self.work / "small"
            saved_model.save(
                small, model.encoder, model.tokenizer, model.info, "# Trained in a session\n",
                dtype=torch.float16, head=model.head, keep_edits=False,
            )  # fmt: skip
            write_parts(small, self.out)
        write_sums(self.out)
        self.facts["used_seconds"] = round(time.monotonic() - self.started, 1)
        (self.out / "session.json").write_text(json.dumps(self.facts, indent=1) + "\n")
        print(json.dumps(self.facts, indent=1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    packing = commands.add_parser("pack", help="collect what a session needs")
    packing.add_argument("config", type=Path)
    packing.add_argument("out", type=Path)
    packing.add_argument("overrides", nargs="*", metavar="key=value")
    packing.add_argument("--limit", type=int, default=24, help="MiB of texts (24)")
    running = commands.add_parser("run", help="hold a session")
    running.add_argument("out", type=Path, help="the folder of the results")
    running.add_argument("overrides", nargs="*", metavar="key=value", help="of the training")
    running.add_argument(
        "--carry", type=Path, nargs="*", default=[], help="folders with what the session needs"
    )
    running.add_argument("--work", type=Path, default=Path("runs/gpu-session"), help="its own folder")
    running.add_argument("--seconds", type=float, default=850, help="until the session has ended (850)")
    running.add_argument("--acceptance", type=float, default=400, help="seconds for it; 0: none (400)")
    running.add_argument("--parts", nargs="+", help="of the acceptance (its core)")
    running.add_argument(
        "--training", type=float, help="seconds of training in all sessions; this one's rest"
    )
    running.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    try:
        if options.command == "pack":
            pack(options.config, options.out, options.limit, options.overrides)
            return
        out, work = options.out.absolute(), options.work.absolute()
        session = Session(out, options.carry, work, options.seconds, options.device == "cpu")
        try:
            if options.acceptance:
                session.accept(options.acceptance, options.parts)
            session.train(options.training, options.overrides)
        finally:
            session.export()
    except InputError as error:
        if not isinstance(error, ReportedError):
            print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    states = session.facts.get("acceptance", 0), session.facts.get("training", 0)
    sys.exit(0 if states[0] == 0 and states[1] in (0, STOPPED_BY_SIGNAL) else 1)


if __name__ == "__main__":
    main()
