"""A result file as h5py users see it: layout, attributes, types, values."""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy

PROGRAM = os.path.join(os.environ.get("QG_BUILD_DIR", ""), "tests", "bin", "test_results_file")
ROWS = 10  # of the sample that the program writes
HEX = re.compile("[0-9a-f]{16}")
TYPES = {"m": "i8", "case_id": "u8", "bias": "u1", "seed": "u8", "run": "i8", "seconds": "f8"}


def write(path, *arguments):
    environment = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
    subprocess.run([PROGRAM, "write", path, *arguments], check=True, env=environment,
                   stdout=subprocess.DEVNULL)


class ResultFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "a.h5")
        cls.part_path = os.path.join(cls.folder.name, "part.h5")
        write(cls.path)
        write(cls.part_path, "part")
        cls.file = h5py.File(cls.path, "r")
        cls.part = h5py.File(cls.part_path, "r")

    @classmethod
    def tearDownClass(cls):
        cls.file.close()
        cls.part.close()
        cls.folder.cleanup()

    def test_root_attributes(self):
        attributes = self.file.attrs
        self.assertEqual(set(attributes), {
            "Conventions", "schema_version", "title", "source", "creator_version", "file_time",
            "plan_digest", "content_digest", "complete"})
        self.assertEqual(attributes["Conventions"], "quantgauge-1")
        self.assertEqual(attributes["schema_version"], 1)
        self.assertEqual(attributes["file_time"], "2023-11-14T22:13:20Z")
        self.assertRegex(attributes["plan_digest"], HEX)
        self.assertRegex(attributes["content_digest"], HEX)
        self.assertEqual(attributes["complete"], 1)
        self.assertEqual(self.part.attrs["complete"], 0)
        self.assertEqual(self.part.attrs["content_digest"], attributes["content_digest"])

    def columns(self):
        for group in ("cases", "metrics", "counts", "sums", "partition", "timing"):
            for name, column in self.file[group].items():
                yield group, name, column

    def test_columns(self):
        count = 0
        for group, name, column in self.columns():
            with self.subTest(column=group + "/" + name):
                count += 1
                self.assertEqual(column.shape, (ROWS,))
                self.assertEqual(column.compression, "gzip")
                self.assertEqual(column.compression_opts, 1)
                self.assertEqual(column.shuffle, column.dtype.itemsize > 1)
                self.assertEqual(set(column.attrs), {"units", "long_name", "definition", "better"})
                self.assertTrue(all(isinstance(text, str) for text in column.attrs.values()))
                self.assertIn(column.attrs["better"],
                              {"larger", "smaller", "nearer to zero", "none"})
        self.assertGreater(count, 100)
        self.assertNotIn("order", self.file["cases"])
        self.assertNotIn("order", self.file["plan"])

    def test_types(self):
        for name, kind in TYPES.items():
            self.assertEqual(self.file["cases"][name].dtype, numpy.dtype("<" + kind), name)
        for name, column in self.file["metrics"].items():
            self.assertEqual(column.dtype, numpy.dtype("<f8"), name)
        for name, column in self.file["counts"].items():
            self.assertEqual(column.dtype, numpy.dtype("<i8"), name)

    def test_texts_are_fixed_length_utf8(self):
        column = self.file["cases/format"]
        information = h5py.check_string_dtype(column.dtype)
        self.assertEqual(information.encoding, "utf-8")
        texts = column.asstr()[:]
        self.assertEqual(information.length, max(len(text.encode()) for text in texts))
        self.assertIn("größer € 𝄞", set(texts))
        self.assertEqual(h5py.check_string_dtype(self.file["cases/reference"].dtype).length, 1)

    def test_better(self):
        self.assertEqual(self.file["metrics/qsnr_db"].attrs["better"], "larger")
        self.assertEqual(self.file["metrics/mse"].attrs["better"], "smaller")
        self.assertEqual(self.file["metrics/bias"].attrs["better"], "nearer to zero")
        self.assertEqual(self.file["cases/m"].attrs["better"], "none")
        self.assertEqual(self.file["metrics/qsnr_db"].attrs["units"], "dB")

    def test_what_is_missing(self):
        self.assertTrue(numpy.isnan(self.file["metrics/spearman"][:]).any())
        self.assertTrue((self.file["counts/nan"][:] == -1).any())
        self.assertTrue((self.file["cases/m"][:] == 0).any())
        self.assertTrue(numpy.isnan(self.file["metrics/spearman"].fillvalue))
        self.assertEqual(self.file["counts/nan"].fillvalue, -1)

    def test_plan_and_runs(self):
        self.assertTrue(self.file["plan/text"].asstr()[()].startswith("[sweep]\n"))
        self.assertEqual(list(self.file["plan/argv"].asstr()[:]),
                         ["run_sweep --formats e4m3,mxfp8", "run_sweep --resume"])
        self.assertEqual(list(self.file["runs"]), ["0"])
        self.assertEqual(self.file["runs/0"].attrs["version"], "1.2.3")
        self.assertEqual(set(self.file["cases/run"][:]), {0})

    def test_histograms(self):
        hist = self.file["hist"]
        self.assertEqual(list(hist["row"][:]), [1, 3, 5, 7, 9])
        for kind in ("rel", "ulp"):
            bins = hist[kind].shape[1]
            self.assertEqual(hist[kind].shape, (5, bins))
            self.assertEqual(hist[kind].dtype, numpy.dtype("<i8"))
            self.assertEqual(hist[kind + "_edges"].shape, (bins + 1,))
            self.assertTrue((numpy.diff(hist[kind + "_edges"][:]) > 0).all())
        self.assertEqual(hist["rel_edges"][0], 2.0**-64)

    def test_operands(self):
        operands = self.file["operands"]
        self.assertEqual(set(operands), {"0000000000000001", "fedcba9876543210"})
        self.assertEqual(bytes(operands["fedcba9876543210/codes_a"][:]), b"\0\1\2\377")
        self.assertEqual(operands["fedcba9876543210/codes_a"].dtype, numpy.dtype("u1"))
        self.assertEqual(operands["0000000000000001/codes_a"].shape, (0,))

    def test_dumps(self):
        for group in ("formats", "recipes", "units"):
            lengths = {field.shape for field in self.file[group].values()}
            self.assertEqual(len(lengths), 1, group)
            self.assertNotIn(group, self.part)
        formats = list(self.file["formats/name"].asstr()[:])
        at = formats.index("e4m3")
        self.assertEqual(self.file["formats/max"][at], 448.0)
        self.assertEqual(self.file["formats/min_positive"][at], 2.0**-9)
        self.assertEqual(self.file["formats/bias"][at], 7)
        recipes = list(self.file["recipes/name"].asstr()[:])
        at = recipes.index("mxfp8")
        self.assertEqual(self.file["recipes/element"].asstr()[at], "e4m3")
        self.assertEqual(self.file["recipes/layout"].asstr()[at], "group:32")
        self.assertEqual(self.file["recipes/scale_rule"].asstr()[at], "floor")

    def unit_rows(self, *, unit, **wanted):
        """The rows of /units of a unit whose fields have the wanted values, as dictionaries."""
        columns = {name: (field.asstr() if field.dtype.kind == "S" else field)[:]
                   for name, field in self.file["units"].items()}
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
        return [row for row in rows if row["unit"] == unit and
                all(row[key] == value for key, value in wanted.items())]

    def test_units(self):
        self.assertEqual(set(self.file["units"]), {
            "unit", "operands", "accumulator", "k_least", "k", "model", "length", "fraction",
            "rho", "floor", "scale", "scale_block", "evidence", "evidence_meaning"})
        [row] = self.unit_rows(unit="hopper_wgmma", operands="e4m3 e5m2", accumulator="fp32")
        self.assertEqual(row, {
            "unit": "hopper_wgmma", "operands": "e4m3 e5m2", "accumulator": "fp32",
            "k_least": 32, "k": 32, "model": "T-FDPA", "length": 32, "fraction": 13,
            "rho": "rz e8m13", "floor": -133, "scale": "none", "scale_block": 0,
            "evidence": "V-HW", "evidence_meaning": "equals recorded outputs of the hardware"})
        scales = [row["scale"] for row in self.unit_rows(unit="blackwell_mxf4", evidence="SRC")]
        self.assertEqual(scales, ["e8m0", "ue4m3"])
        [row] = self.unit_rows(unit="exact")
        self.assertEqual((row["operands"], row["evidence"], row["k"]), ("", "", 0))
        self.assertEqual(self.unit_rows(unit="native"), [])

    def test_parts_are_plain(self):
        for name, column in self.part["cases"].items():
            self.assertIsNone(column.compression, name)
            self.assertIsNone(column.chunks, name)
        self.assertEqual(list(self.part["cases/order"][:]), list(range(ROWS)))

    def test_no_times(self):
        time.sleep(1.1)  # into another second
        other = os.path.join(self.folder.name, "b.h5")
        write(other)
        with open(self.path, "rb") as one, open(other, "rb") as two:
            self.assertEqual(one.read(), two.read())


if __name__ == "__main__":
    if not os.access(PROGRAM, os.X_OK):
        print("no " + PROGRAM)
        sys.exit(77)
    unittest.main()
