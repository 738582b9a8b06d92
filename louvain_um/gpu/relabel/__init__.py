"""Labels between levels: relabel, sum, split and number communities."""
