"""What ``louvain-um simulate`` writes."""
