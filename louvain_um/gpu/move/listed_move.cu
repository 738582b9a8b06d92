// Moving on rows in linked blocks, where they lie.
#include "listed.cuh"
#include "move.cu"
