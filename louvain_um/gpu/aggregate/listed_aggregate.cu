// Aggregation of rows in linked blocks to the compressed rows of the next level.
#include "listed.cuh"
#include "aggregate.cu"
