"""The committed references of the transformers: made again, and what they say of themselves."""

import hashlib
import os
import pathlib
import subprocess
import sys
import unittest

import h5py
import numpy

DATASETS = pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "datasets"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DATASETS))

import make_reference
import seeded_transformer
from sentences import SENTENCES

CLS, SEP = 101, 102


def open_reference(name):
    return h5py.File(make_reference.FILES[name], "r")


def datasets(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


class References(unittest.TestCase):
    def test_the_seeded_reference_comes_out_again(self):
        tensors, attributes = make_reference.make_seeded(None)
        with open_reference("seeded") as file:
            there = datasets(file)
            self.assertEqual(set(there), set(tensors))
            self.assertEqual(len(there), 15)
            for name, values in tensors.items():
                self.assertEqual(there[name].shape, values.shape, name)
                worst = numpy.abs(there[name][()].astype(float) - values).max()
                self.assertLessEqual(worst, 0 if name in ("ids", "mask") else 1e-6, name)
            for key, text in attributes.items():
                self.assertEqual(file.attrs[key].decode("ascii"), text)

    def test_values_have_the_digests_beside_them(self):
        for name in make_reference.FILES:
            with open_reference(name) as file:
                for path, dataset in datasets(file).items():
                    values = dataset[()]
                    self.assertEqual(values.dtype, "<i8" if path == "ids" else "<f4", path)
                    self.assertEqual(hashlib.sha256(values.tobytes()).hexdigest(),
                                     dataset.attrs["digest"].decode("ascii"), path)

    def test_the_files_say_where_they_come_from(self):
        with open_reference("minilm") as file:
            for key in ("provenance", "source_sha256", "licence", "capture", "sentences", "sources"):
                self.assertTrue(file.attrs[key], key)
            self.assertEqual(file.attrs["sentences"].decode("ascii").split("\n"), [s[3] for s in SENTENCES])
            self.assertEqual(len(file.attrs["sources"].decode("ascii").split("\n")), len(SENTENCES))

    def test_sentences_are_in_the_public_domain_and_differ(self):
        self.assertEqual(len({text for _, _, _, text in SENTENCES}), len(SENTENCES))
        for author, work, year, text in SENTENCES:
            self.assertTrue(author and work and text.isascii(), text)
            self.assertLess(year, 1920, work)

    def test_padding_lies_behind_the_tokens(self):
        for name, first, last in (("seeded", 1, 2), ("minilm", CLS, SEP)):
            with open_reference(name) as file:
                ids, mask = file["ids"][()], file["mask"][()]
            for row, weights in zip(ids, mask):
                length = int(weights.sum())
                self.assertEqual(weights.tolist(), [1.0] * length + [0.0] * (len(row) - length))
                self.assertEqual((row[0], row[length - 1]), (first, last))
                self.assertTrue((row[1:length - 1] > last if name == "seeded" else row[:length] > 0).all())
                self.assertTrue((row[length:] == 0).all())

    def test_embeddings_have_length_one(self):
        for name in make_reference.FILES:
            with open_reference(name) as file:
                lengths = numpy.linalg.norm(file["embedding"][()].astype(float), axis=1)
            self.assertLess(numpy.abs(lengths - 1).max(), 1e-6)

    def test_alike_sentences_have_alike_embeddings(self):
        texts = [text for _, _, _, text in SENTENCES]
        with open_reference("minilm") as file:
            embeddings = file["embedding"][()].astype(float)
        cosines = embeddings @ embeddings.T - 2 * numpy.eye(len(texts))
        family = next(i for i, text in enumerate(texts) if text.startswith("Happy families"))
        self.assertTrue(texts[int(cosines[family].argmax())].startswith("Happiness in marriage"))

    def test_philox_gives_its_known_answer(self):
        seed, seeded_transformer.SEED = seeded_transformer.SEED, 0
        words = seeded_transformer.philox_words(0, 4)
        seeded_transformer.SEED = seed
        self.assertEqual([int(word) for word in words], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])

    def test_unknown_names_are_usage_errors(self):
        done = subprocess.run([sys.executable, "-B", str(DATASETS / "make_reference.py"), "bert"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.strip(), "make_reference.py: bert is no reference; there are seeded and minilm")


if __name__ == "__main__":
    unittest.main()
