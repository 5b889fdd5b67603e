"""Score files of pairs in Spark: score_with_spark.py FILES FOLDER."""

import sys
from collections.abc import Iterator

import pandas
from pyspark.sql import SparkSession

from simllm import SimLLM

# One task for each file: a small file counts as 128 MB. (Files in gzip format are never split.)
spark = SparkSession.builder.config("spark.sql.files.openCostInBytes", "128m").getOrCreate()
metric = spark.sparkContext.broadcast(SimLLM())  # is loaded once in each Python worker


def score(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    """Score the pairs of a file, 1,024 at a time."""
    pairs = ((row.candidate, row.reference, row.id) for frame in frames for row in frame.itertuples())
    for chunk, scores in metric.value.stream(pairs):
        yield pandas.DataFrame({"id": [key for *_, key in chunk], "score": scores.values})


pairs = spark.read.json(sys.argv[1], schema="id string, candidate string, reference string")
pairs.mapInPandas(score, "id string, score double").write.parquet(sys.argv[2])
