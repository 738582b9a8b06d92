"""What ``louvain-um detect`` reads, writes and prints."""
