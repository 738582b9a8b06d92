"""Pictures of communities: drawn graphs, histograms, dendrograms, and one page with all of them."""
