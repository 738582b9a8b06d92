"""Label files: one community per vertex, as CSV, TSV, Parquet, NPZ or JSON."""

from louvain_um.formats.labels.reader import read_labels
from louvain_um.formats.labels.writer import write_labels

__all__ = ["read_labels", "write_labels"]
