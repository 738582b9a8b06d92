"""Which pages a GPU run would access, followed step by step on the CPU."""
