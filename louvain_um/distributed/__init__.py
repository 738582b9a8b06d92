"""Detection over several ranks: threads, processes of a cluster, or GPUs of one host."""
